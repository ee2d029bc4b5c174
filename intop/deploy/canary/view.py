"""A canary as a document: its outcome, both sides of each quantity, and what does not count."""

from collections.abc import Iterator

from intop.document.columns import Column
from intop.document.model import Notes, Section, Table
from intop.domain.canary import MOVES_THE_END, Canary, SideRatio
from intop.words import counted, percent


def canary_section(title: str, canary: Canary) -> Section:
    """Return the outcome, a table and remarks."""
    tables = (_table(canary),) if canary.sides else ()
    return Section(
        title=f"{title}: {canary_sentence(canary)}",
        blocks=(*tables, Notes(tuple(canary_notes(canary)))),
    )


def canary_sentence(canary: Canary) -> str:
    """Return such as: gain: P99 is 1.52 times lower, at least 1.21 times."""
    if canary.blurred and canary.outcome in ("gain", "harm") and not canary.stopped:
        return f"{_outcome(canary)}, by nginx's own times, which the clients may not notice"
    return _outcome(canary)


def _outcome(canary: Canary) -> str:
    p99 = next((side for side in canary.sides if side.quantity == "P99"), None)
    match canary.outcome:
        case "gain" if p99 is not None and p99.high is not None:
            return (
                f"gain: P99 is {1 / p99.ratio:.2f} times lower, at least {1 / p99.high:.2f} times"
            )
        case "harm" if canary.stopped:
            return f"harm: {canary.stopped}"
        case "harm":
            worse = (_worse(side) for side in canary.sides if _is_worse(side, canary.margin))
            return f"harm: {', '.join(worse)}"
        case "no difference":
            return f"no difference: P99 changes by less than {percent(canary.margin - 1)}"
        case _:
            return f"undecided after {counted(canary.pairs, 'pair')}"


def _is_worse(side: SideRatio, margin: float) -> bool:
    return side.low is not None and side.low > margin


def _worse(side: SideRatio) -> str:
    verb = "are" if side.quantity.endswith("s") else "is"
    return f"{side.quantity} {verb} {side.ratio:.2f} times higher, at least {side.low:.2f} times"


def _table(canary: Canary) -> Table:
    return Table(
        name="canary",
        title="Both sides, on real traffic",
        origin="measured",
        columns=(
            Column("quantity", "text"),
            Column("default"),
            Column("canary"),
            Column("canary / default"),
            Column("whenever one looks", "text"),
            Column(f"if one looked only now ({percent(canary.level)})", "text"),
        ),
        rows=tuple(
            (
                _name(side),
                *(_shown(side, value) for value in (side.default, side.canary)),
                side.ratio,
                _bounds(side.low, side.high),
                _bounds(side.fixed_low, side.fixed_high),
            )
            for side in canary.sides
        ),
    )


def _name(side: SideRatio) -> str:
    return f"{side.quantity} in %" if _is_share(side) else f"{side.quantity} in ms"


def _is_share(side: SideRatio) -> bool:
    return side.quantity in ("slow requests", "failed requests")


def _shown(side: SideRatio, value: float) -> float:
    return 100 * value if _is_share(side) else value


def _bounds(low: float | None, high: float | None) -> str | None:
    """Return such as 0.60 to 0.85; None where nothing is known."""
    if low is None and high is None:
        return None
    if low is None:
        return f"below {high:.2f}"
    return f"above {low:.2f}" if high is None else f"{low:.2f} to {high:.2f}"


def canary_notes(canary: Canary) -> Iterator[str]:
    """Yield what was counted, what the columns mean, and what does not count."""
    yield (
        f"{', '.join(canary.hosts)} had {canary.title} in "
        f"{canary.canary_requests:,} requests and the "
        f"default in {canary.requests:,}: {counted(canary.pairs, 'pair')} of {canary.planned} at "
        f"most, blocks of {canary.block_s} s after {canary.washout_s} s that are not counted."
    )
    if canary.only_new:
        yield "Only requests of connections count that began in their block."
    else:
        yield (
            "Requests of connections from before a block count, too. Parameters that act on new "
            "connections only look smaller than they are. To leave such requests out, add "
            "$connection to log_format."
        )
    if canary.sides:
        yield (
            "The order of a pair is drawn by chance, and opposite on every second host. So the "
            "bounds of each row hold at "
            f"{percent(canary.level)} for all looks together, whatever the traffic does. They take "
            f"the ratio as constant. A request is slow above {canary.slow_ms:.0f} ms. A harm is a "
            f"ratio certainly above {canary.margin:g}, or a block beyond a limit."
        )
    for key in canary.blurred:
        yield (
            f"{key}: {MOVES_THE_END[key]}. So $request_time changes although the clients' "
            "own times may not. Look at theirs before you decide."
        )
    yield (
        "nginx's $request_time ends when the last byte is in the socket's buffer, so the way to "
        "the client is not in it."
    )
    yield from (f"Left out: {line}." for line in canary.left_out)
