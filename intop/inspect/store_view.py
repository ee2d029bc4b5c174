"""A store as a document: its campaigns and workers, and the results of `intop store`."""

from collections.abc import Iterator, Sequence

from intop.document.columns import numbers, texts
from intop.document.model import Block, Paragraph, Section, Table, Verbatim
from intop.domain.job import CampaignProgress, Fleet, Spot, WorkerStatus
from intop.domain.upkeep import Amounts, Checked, Copied, Vacuumed
from intop.words import counted, duration


def fleet(fleet: Fleet) -> list[Block]:
    """The campaigns, then the workers."""
    alive = sum(worker.is_alive for worker in fleet.workers)
    title = (
        f"{fleet.store}: {counted(len(fleet.campaigns), 'campaign')}, {counted(alive, 'worker')}"
    )
    blocks: list[Block] = []
    if fleet.campaigns:
        blocks.append(_campaigns(fleet.campaigns))
    if fleet.workers:
        blocks.append(_workers(fleet.workers))
    else:
        blocks.append(Paragraph("No worker is at work.", command="intop worker"))
    return [Section(title=title, blocks=tuple(blocks))]


def _campaigns(campaigns: tuple[CampaignProgress, ...]) -> Table:
    return Table(
        columns=(
            *numbers("campaign"),
            *texts("study", "begun", "state"),
            *numbers("measured", "planned", "waiting", "held"),
        ),
        rows=tuple(
            (
                str(campaign.campaign),
                campaign.study,
                campaign.started_at[:16].replace("T", " "),
                "finished" if campaign.finished_at else "open",
                str(campaign.measured),
                str(campaign.planned),
                str(campaign.waiting or ""),
                str(campaign.held or ""),
            )
            for campaign in campaigns
        ),
    )


def _workers(workers: tuple[WorkerStatus, ...]) -> Table:
    return Table(
        columns=(
            *texts("worker", "last heard of", "at"),
            *numbers("trials", "trouble"),
            *texts("serves"),
        ),
        rows=tuple(
            (
                worker.name,
                f"{duration(worker.silent_s)} ago" + ("" if worker.is_alive else ": lost"),
                worker.doing if worker.is_alive else "",
                str(worker.trials),
                str(worker.failures or ""),
                _served(worker.reach),
            )
            for worker in workers
        ),
    )


def _served(spots: tuple[Spot, ...]) -> str:
    """Return such as: web x86 1, 2, 3; web arm 1."""
    by_cluster: dict[str, list[str]] = {}
    for spot in spots:
        by_cluster.setdefault(f"{spot.study} {spot.arch}", []).append(str(spot.replica + 1))
    return "; ".join(f"{name} {', '.join(places)}" for name, places in by_cluster.items())


def copies(campaigns: Sequence[Copied]) -> Iterator[Block]:
    """A row for each campaign."""
    yield Table(
        columns=(
            *texts("campaign", "study", "begun", ""),
            *numbers("plans", "trials", "results"),
        ),
        rows=tuple(
            (
                str(campaign.campaign),
                campaign.study,
                campaign.started_at,
                f"{'there already' if campaign.was_there else 'copied'} as {campaign.copy}",
                *_cells(campaign.amounts),
            )
            for campaign in campaigns
        ),
    )


def check(checked: Checked) -> Iterator[Block]:
    """Return the amounts in a store, and a line for each problem."""
    amounts = checked.amounts
    problems = len(checked.problems) + checked.unlisted
    there = ", ".join(
        [
            _some(checked.campaigns, "campaign"),
            f"{_some(amounts.plans, 'place')} in plans",
            _some(amounts.trials, "trial"),
            _some(amounts.results, "result"),
        ]
    )
    lines = [f"{checked.store}: {there}: {_some(problems, 'problem') if problems else 'sound'}"]
    lines += [f"  {problem}" for problem in checked.problems]
    lines += [f"  and {checked.unlisted} more"] if checked.unlisted else []
    yield Verbatim(tuple(lines))


def vacuumed(vacuumed: Vacuumed) -> Iterator[Block]:
    """Return one line about the clean-up."""
    sizes = f"{vacuumed.before / 1e6:.1f} MB before, {vacuumed.after / 1e6:.1f} MB now"
    yield Verbatim((f"{vacuumed.store}: {sizes}",))


def _some(number: int, noun: str) -> str:
    """Return such as 1,000 trials, 1 trial."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cells(amounts: Amounts) -> tuple[str, str, str]:
    return f"{amounts.plans:,}", f"{amounts.trials:,}", f"{amounts.results:,}"
