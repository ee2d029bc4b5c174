"""A canary as a document: its outcome, both sides of each quantity, and what does not count."""

from collections.abc import Iterator

from intop.document.columns import Column
from intop.document.model import Notes, Section, Table
from intop.domain.canary import (
    DELIVERY,
    MOVES_THE_END,
    RETRANSMITTED,
    Canary,
    SideRatio,
)
from intop.words import counted, percent


def canary_section(title: str, canary: Canary) -> Section:
    """Return the outcome, a table and remarks."""
    return Section(
        title=f"{title}: {canary_sentence(canary)}",
        blocks=(*canary_tables(canary), Notes(tuple(canary_notes(canary)))),
    )


def canary_tables(canary: Canary) -> tuple[Table, ...]:
    """Return the table of both sides; none before the first pair."""
    return (_table(canary),) if canary.sides else ()


def canary_sentence(canary: Canary) -> str:
    """Return such as: gain: P99 is 1.52 times lower, at least 1.21 times."""
    if canary.is_blurred and canary.outcome in ("gain", "harm") and not canary.stopped:
        return f"{_outcome(canary)}, by nginx's own times, which the clients may not notice"
    return _outcome(canary)


def _outcome(canary: Canary) -> str:
    name = canary.judged_by
    judge = canary.side(name)
    match canary.outcome:
        case "gain" if judge is not None and judge.high is not None:
            times, least = 1 / judge.ratio, 1 / judge.high
            return f"gain: {name} is {times:.2f} times lower, at least {least:.2f} times"
        case "harm" if canary.stopped:
            return f"harm: {canary.stopped}"
        case "harm":
            return f"harm: {', '.join(_worse(side) for side in canary.sides if side.is_harm)}"
        case "no difference":
            return f"no difference: {name} changes by less than {percent(canary.margin - 1)}"
        case _:
            return f"undecided after {counted(canary.pairs, 'pair')}"


def _worse(side: SideRatio) -> str:
    verb = "are" if side.unit == "%" else "is"
    if side.better == "higher":
        times, least, word = 1 / side.ratio, 1 / (side.high or side.ratio), "lower"
    else:
        times, least, word = side.ratio, side.low or side.ratio, "higher"
    return f"{side.quantity} {verb} {times:.2f} times {word}, at least {least:.2f} times"


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
                f"{side.quantity} in {side.unit}" if side.unit else side.quantity,
                *(_shown(side, value) for value in (side.default, side.canary)),
                side.ratio,
                _bounds(side.low, side.high) if side.limit is not None else "only shown",
                _bounds(side.fixed_low, side.fixed_high),
            )
            for side in canary.sides
        ),
    )


def _shown(side: SideRatio, value: float) -> float:
    return 100 * value if side.unit == "%" else value


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
    yield from _limited(canary)
    yield from _not_seen(canary)
    yield from (f"Left out: {line}." for line in canary.left_out)


def _limited(canary: Canary) -> Iterator[str]:
    """Yield the limits of metrics that have their own."""
    for side in canary.sides:
        if side.limit not in (None, canary.margin):
            worse = "higher" if side.better == "lower" else "lower"
            yield f"For {side.quantity} a harm is certainly {side.limit:g} times {worse}."


def _not_seen(canary: Canary) -> Iterator[str]:
    """Yield what nginx's times don't see, and what does."""
    for key in canary.blurred:
        moved = f"{key}: {MOVES_THE_END[key]}. So $request_time changes although the clients' own"
        if canary.is_blurred:
            yield f"{moved} times may not. Look at theirs before you decide."
        else:
            yield f"{moved} times may not. The verdict uses delivery time."
    yield (
        "nginx's $request_time ends when the last byte is in the socket's buffer, so the way to "
        "the client is not in it."
    )
    if canary.side(DELIVERY):
        yield (
            "Delivery time has this way in it: the time in which nginx's connections had data that "
            "clients had not acknowledged, for each MB that they acknowledged (the kernel's "
            "TCP_INFO). It leaves out a connection's data after its last sample, and connections "
            "that begin and end between two samples."
        )
    if canary.side(RETRANSMITTED):
        yield "Retransmitted segments are a share of all that the host sent, to backends too."
