"""A soak as a document: what drifted, whether there is a leak, and what ended it."""

from collections.abc import Iterator, Sequence

from intop.document.columns import Column
from intop.document.model import Notes, Section, Table
from intop.domain.baseline import HOST
from intop.domain.soak import PAUSE_S, WARM_UP_S, WARM_UP_SHARE, Soak, SoakBlock, Trend
from intop.sentences import broken_limit, soak_sentence
from intop.words import counted, duration, percent

ROWS = 12
"""Rows of the table over time: blocks are put together where there are more."""


def soak(title: str, soak: Soak) -> Section:
    """Return the trends, the soak over time, and remarks."""
    growth, over_time = soak_tables(soak)
    return Section(
        title=f"{title}: {soak_sentence(soak)}",
        blocks=(
            growth,
            Section(title=over_time.title, blocks=(over_time,)),
            Notes(tuple(soak_notes(soak))),
        ),
    )


def soak_tables(soak: Soak) -> tuple[Table, Table]:
    """Trends, and blocks over time."""
    return _trends(soak), _over_time(soak)


def _trends(soak: Soak) -> Table:
    return Table(
        name="soak-trends",
        title="Growth in an hour",
        origin="measured",
        columns=(
            Column("quantity", "text"),
            Column("first"),
            Column("last"),
            Column(f"an hour ({percent(soak.level)} interval)", "difference"),
            Column("unit", "text"),
            Column("floor"),
            Column("verdict", "text"),
        ),
        rows=tuple(
            (
                "P99 in ms" if trend.quantity == "P99" else trend.quantity,
                trend.first,
                trend.last,
                trend.per_hour,
                trend.unit,
                trend.floor,
                trend.growth,
            )
            for trend in soak.trends
        ),
    )


def _over_time(soak: Soak) -> Table:
    size = -(-len(soak.blocks) // ROWS) or 1
    parts = [soak.blocks[n : n + size] for n in range(0, len(soak.blocks), size)]
    return Table(
        name="soak-blocks",
        title=f"over time: {counted(size, 'block')} of {soak.block_s:g} s in each row, means and "
        "the highest P99",
        origin="measured",
        columns=(
            Column("after", "text"),
            Column("reached", unit="requests/s"),
            Column("P50", unit="ms"),
            Column("highest P99", unit="ms"),
            Column("failed", unit="%"),
            Column("nginx memory", unit="MiB"),
            Column("nginx files"),
            Column("TIME_WAIT"),
            Column("what was wrong", "prose"),
        ),
        rows=tuple(
            (
                duration(part[0].hours * 3600),
                _mean([block.achieved_rps for block in part]),
                _mean([block.p50_ms for block in part]),
                max((block.p99_ms for block in part if block.p99_ms is not None), default=None),
                100 * sum(block.error_share for block in part) / len(part),
                _mean([block.nginx_memory_mib for block in part]),
                _mean([block.nginx_files for block in part]),
                _mean([block.time_wait for block in part]),
                _wrong(part),
            )
            for part in parts
        ),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _wrong(part: Sequence[SoakBlock]) -> str | None:
    """Return such as: 2 disturbed; None where all blocks are ok."""
    kinds = [block.status for block in part if block.status != "ok"]
    return ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds)) or None


def soak_notes(soak: Soak) -> Iterator[str]:
    """Return remarks about the soak's end, its load, its certainty and its gaps."""
    if soak.broken:
        count = counted(len(soak.blocks), "block")
        yield f"Ended after {count} of {soak.planned}: {broken_limit(soak)}."
    yield (
        f"{soak.host} has {soak.applied or f'nothing of intop applied ({HOST})'}. Load: "
        f"{soak.rate_rps:g} requests/s in blocks of {soak.block_s:g} s, each after "
        f"{soak.warmup_s:g} s of load that is not counted. Nothing was set or restarted between "
        "them."
    )
    if soak.load_share is not None and soak.pause_s is not None:
        yield (
            f"Between two blocks there was no load for {soak.pause_s:.2f} s on average: load "
            f"{100 * soak.load_share:.2f} % of the time."
        )
    if soak.interruptions:
        yield (
            f"{counted(soak.interruptions, 'interruption')} of more than {PAUSE_S:g} s without "
            "load, as of a soak that was stopped and went on: the load balancer rested meanwhile."
        )
    if soak.restarts:
        yield (
            f"Processes of nginx were started {counted(soak.restarts, 'time')} meanwhile. Each "
            "part between has a height of its own, and a warm-up."
        )
    if soak.changed:
        yield f"Not as in the first block: {'; '.join(soak.changed)}."
    yield (
        f"Growth is of means of ten batches of blocks, without a warm-up of {WARM_UP_S / 60:g} min "
        f"(at most 1/{1 / WARM_UP_SHARE:g} of the time). A quantity grows where the whole interval "
        "is above the floor, and is steady where all of it is below. A leak is growth of nginx's "
        "memory (anonymous, of all of its processes) or of its open files; a host's own has other "
        "programs in it."
    )
    if any(trend.growth == "not known" for trend in soak.trends if _is_leak(trend)):
        yield "Whether there is a leak, a longer soak can tell: --hours."


def _is_leak(trend: Trend) -> bool:
    return trend.quantity.startswith("nginx")
