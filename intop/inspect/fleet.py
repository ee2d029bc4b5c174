"""All campaigns and workers of a store."""

from intop.domain.job import CampaignProgress, Fleet
from intop.store import Store, shown


def fleet(url: str, store: Store | None) -> Fleet:
    """What is going on in a store; nothing where there is none yet."""
    if store is None:
        return Fleet(store=shown(url), campaigns=(), workers=())
    counts, jobs = store.counts(), store.jobs.waiting()
    campaigns: list[CampaignProgress] = []
    for one in store.campaigns():
        planned, measured = counts.get(one.id, (0, 0))
        waiting, held = jobs.get(one.id, (0, 0))
        campaigns.append(
            CampaignProgress(
                campaign=one.id,
                study=one.study,
                started_at=one.started_at,
                finished_at=one.finished_at,
                planned=planned,
                measured=measured,
                waiting=waiting,
                held=held,
            )
        )
    return Fleet(store=shown(url), campaigns=tuple(campaigns), workers=tuple(store.workers.all()))
