"""A soak as a document: what drifted, whether there is a leak, and what ended it."""

from collections.abc import Iterator, Sequence

from intop.domain.baseline import HOST
from intop.domain.soak import PAUSE_S, WARM_UP_S, WARM_UP_SHARE, Soak, SoakBlock, Trend
from intop.report.document.columns import Column
from intop.report.document.model import Notes, Section, Table
from intop.report.words import counted, duration, interval, number, percent

ROWS = 12
"""Of the table over time: blocks are put together where there are more."""


def soak(title: str, found: Soak) -> Section:
    """What drifted, the soak over time, and what is to be known about it."""
    growth, over_time = soak_tables(found)
    return Section(
        title=f"{title}: {sentence(found)}",
        blocks=(
            growth,
            Section(title=over_time.title, blocks=(over_time,)),
            Notes(tuple(soak_notes(found))),
        ),
    )


def sentence(found: Soak) -> str:
    """Such as: soak of 1 h 0 min: no leak, nginx's memory +0.1 MiB/h (-0.2 to +0.4)."""
    told = f"soak of {duration(found.hours * 3600)}: "
    if found.broken:
        told += f"ended early, {_limit(found)}; "
    told += {"not known": "whether there is a leak is not known"}.get(found.leak, found.leak)
    memory = next((t for t in found.trends if t.quantity == "nginx memory"), None)
    if memory is None or memory.per_hour is None:
        return told
    one = memory.per_hour
    return (
        f"{told}, nginx's memory {interval(one.value, one.low, one.high, '+')} "
        f"{memory.unit} an hour"
    )


def soak_tables(found: Soak) -> tuple[Table, Table]:
    """Trends, and blocks over time."""
    return _trends(found), _over_time(found)


def _trends(found: Soak) -> Table:
    return Table(
        name="soak-trends",
        title="Growth in an hour",
        origin="measured",
        columns=(
            Column("quantity", "text"),
            Column("first"),
            Column("last"),
            Column(f"an hour ({percent(found.level)} interval)", "difference"),
            Column("unit", "text"),
            Column("floor"),
            Column("verdict", "text"),
        ),
        rows=tuple(
            (
                "P99 in ms" if one.quantity == "P99" else one.quantity,
                one.first,
                one.last,
                one.per_hour,
                one.unit,
                one.floor,
                one.growth,
            )
            for one in found.trends
        ),
    )


def _over_time(found: Soak) -> Table:
    size = -(-len(found.blocks) // ROWS) or 1
    parts = [found.blocks[n : n + size] for n in range(0, len(found.blocks), size)]
    return Table(
        name="soak-blocks",
        title=f"over time: {counted(size, 'block')} of {found.block_s:g} s in each row, means and "
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
                _mean([one.achieved_rps for one in part]),
                _mean([one.p50_ms for one in part]),
                max((one.p99_ms for one in part if one.p99_ms is not None), default=None),
                100 * sum(one.error_share for one in part) / len(part),
                _mean([one.nginx_memory_mib for one in part]),
                _mean([one.nginx_files for one in part]),
                _mean([one.time_wait for one in part]),
                _wrong(part),
            )
            for part in parts
        ),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _wrong(part: Sequence[SoakBlock]) -> str | None:
    """Such as: 2 disturbed; None where all blocks are ok."""
    kinds = [one.status for one in part if one.status != "ok"]
    return ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds)) or None


def soak_notes(found: Soak) -> Iterator[str]:
    """What ended it, what was soaked, how sure that is, and what it left out."""
    if found.broken:
        made = counted(len(found.blocks), "block")
        yield f"Ended after {made} of {found.planned}: {_limit(found)}."
    yield (
        f"{found.host} has {found.applied or f'nothing of intop applied ({HOST})'}. Load: "
        f"{found.rate_rps:g} requests/s in blocks of {found.block_s:g} s, each after "
        f"{found.warmup_s:g} s of load that is not counted. Nothing was set or restarted between "
        "them."
    )
    if found.load_share is not None and found.pause_s is not None:
        yield (
            f"Between two blocks there was no load for {found.pause_s:.2f} s on average: load "
            f"{100 * found.load_share:.2f} % of the time."
        )
    if found.interruptions:
        yield (
            f"{counted(found.interruptions, 'interruption')} of more than {PAUSE_S:g} s without "
            "load, as of a soak that was stopped and went on: the load balancer rested meanwhile."
        )
    if found.restarts:
        yield (
            f"Processes of nginx were started {counted(found.restarts, 'time')} meanwhile. Each "
            "part between has a height of its own, and a warm-up."
        )
    if found.changed:
        yield f"Not as in the first block: {'; '.join(found.changed)}."
    yield (
        f"Growth is of means of ten batches of blocks, without a warm-up of {WARM_UP_S / 60:g} min "
        f"(at most 1/{1 / WARM_UP_SHARE:g} of the time). A quantity grows where the whole interval "
        "is above the floor, and is steady where all of it is below. A leak is growth of nginx's "
        "memory (anonymous, of all of its processes) or of its open files; a host's own has other "
        "programs in it."
    )
    if any(one.growth == "not known" for one in found.trends if _is_leak(one)):
        yield "Whether there is a leak, a longer soak can tell: --hours."


def _is_leak(one: Trend) -> bool:
    return one.quantity.startswith("nginx")


def _limit(found: Soak) -> str:
    """Such as: P99 above 50 ms in 3 blocks in a row."""
    limits = found.limits
    what = {
        "P99": f"P99 above {number(limits.p99_ms or 0.0)} ms",
        "errors": f"more than {100 * (limits.errors or 0.0):g} % of requests failed",
        "memory": f"nginx's memory above {number(limits.memory_mib or 0.0)} MiB",
        "no answers": "no request was answered",
    }.get(found.broken, "")
    return f"{what} in {counted(limits.in_a_row, 'block')}" + (
        " in a row" if limits.in_a_row > 1 else ""
    )
