"""All campaigns and workers of a store, as a document."""

from intop.domain.job import CampaignProgress, Fleet, Spot, WorkerStatus
from intop.report.document.columns import numbers, texts
from intop.report.document.model import Block, Paragraph, Section, Table
from intop.report.numbers import counted
from intop.report.progress import duration


def fleet(found: Fleet) -> list[Block]:
    """The campaigns, then the workers."""
    alive = sum(worker.is_alive for worker in found.workers)
    title = (
        f"{found.store}: {counted(len(found.campaigns), 'campaign')}, {counted(alive, 'worker')}"
    )
    blocks: list[Block] = []
    if found.campaigns:
        blocks.append(_campaigns(found.campaigns))
    if found.workers:
        blocks.append(_workers(found.workers))
    else:
        blocks.append(Paragraph("No worker is at work.", command="intop worker"))
    return [Section(title=title, blocks=tuple(blocks))]


def _campaigns(found: tuple[CampaignProgress, ...]) -> Table:
    return Table(
        columns=(
            *numbers("campaign"),
            *texts("study", "begun", "state"),
            *numbers("measured", "planned", "waiting", "held"),
        ),
        rows=tuple(
            (
                str(one.campaign),
                one.study,
                one.started_at[:16].replace("T", " "),
                "finished" if one.finished_at else "open",
                str(one.measured),
                str(one.planned),
                str(one.waiting or ""),
                str(one.held or ""),
            )
            for one in found
        ),
    )


def _workers(found: tuple[WorkerStatus, ...]) -> Table:
    return Table(
        columns=(
            *texts("worker", "last heard of", "at"),
            *numbers("trials", "trouble"),
            *texts("serves"),
        ),
        rows=tuple(
            (
                one.name,
                f"{duration(one.silent_s)} ago" + ("" if one.is_alive else ": lost"),
                one.doing if one.is_alive else "",
                str(one.trials),
                str(one.failures or ""),
                _served(one.reach),
            )
            for one in found
        ),
    )


def _served(spots: tuple[Spot, ...]) -> str:
    """Such as: web x86 1, 2, 3; web arm 1."""
    by_cluster: dict[str, list[str]] = {}
    for spot in spots:
        by_cluster.setdefault(f"{spot.study} {spot.arch}", []).append(str(spot.replica + 1))
    return "; ".join(f"{name} {', '.join(places)}" for name, places in by_cluster.items())
