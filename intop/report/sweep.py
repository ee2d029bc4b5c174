"""A sweep as a document: what each arm is worth along a load, and what it can carry."""

from collections.abc import Iterator, Mapping

from intop.domain.percentiles import PERCENTS, requests_for
from intop.domain.sweep import UNITS, ArmAt, Axis, Capacity, Knee, Sweep
from intop.report.document.columns import Column
from intop.report.document.model import Notes, Section, Table
from intop.report.words import counted, interval, number, percent

ALONG: Mapping[Axis, str] = {
    "rate": "at other rates",
    "connections": "with other numbers of connections",
    "cores": "with other numbers of workers",
    "file": "with other files",
}


def sweep(title: str, found: Sweep) -> Section:
    """The tables of points, what each arm carries, and what the sweep can't tell."""
    return Section(
        title=f"{title}: {sentence(found)}",
        blocks=(*sweep_tables(found), Notes(tuple(sweep_notes(found)))),
    )


def sweep_tables(found: Sweep) -> tuple[Table, Table]:
    """Latencies, and what was answered at what cost: a row for each arm at each point."""
    name, unit = f"sweep-{found.axis}-{found.loop}", UNITS[found.axis] or "file"
    level, heading = percent(found.level), _heading(found)
    rows = [(point.label, one) for point in found.points for one in point.arms]
    latencies = Table(
        name=name,
        title=f"{heading}: latencies",
        origin="measured",
        columns=(
            Column(unit, "text"),
            Column("arm", "text"),
            Column(f"P99 ({level} interval)", "span", "ms"),
            Column(f"{found.reference} / its own", "span"),
            Column("mean", unit="ms"),
        ),
        rows=tuple((label, one.arm, one.p99_ms, one.ratio, one.mean_ms) for label, one in rows),
    )
    answered = Table(
        name=f"{name}-answered",
        title=f"{heading}: what was answered",
        origin="measured",
        columns=(
            Column(unit, "text"),
            Column("arm", "text"),
            Column("reached", unit="requests/s"),
            Column("received", unit="MB/s"),
            Column("CPU", unit="%"),
            Column("memory", unit="MiB"),
            Column("what fails", "prose"),
        ),
        rows=tuple(
            (
                label,
                one.arm,
                one.achieved_rps,
                one.received_mb_s,
                None if one.cpu is None else 100 * one.cpu,
                one.memory_mib,
                _failures(one),
            )
            for label, one in rows
        ),
    )
    return latencies, answered


def sentence(found: Sweep) -> str:
    """Such as: at other rates: tuned gain at 50, 100, worse at 150 requests/s."""
    parts = [
        f"{name} {told}" for name in _names(found)[1:] if (told := _outcomes(found, name))
    ] or [f"{found.reference} alone"]
    parts += [_carries(one) for one in found.capacities if one.ratio is not None]
    return f"{ALONG[found.axis]}: {'; '.join(parts)}"


def sweep_notes(found: Sweep) -> Iterator[str]:
    """What each arm carries, how it was measured, and what it can't tell."""
    yield from (_capacity(found, one) for one in found.capacities)
    yield from (_knee(found, one) for one in found.knees)
    load = (
        "A closed loop: each connection asks again once it has its answer, so a slow server is "
        "asked less often, and its latencies leave out who would have come meanwhile."
        if found.loop == "closed"
        else "An open loop: requests are due at a constant rate, and latencies count from then."
    )
    yield (
        f"{counted(found.rounds, 'round')} with each point once for each arm. {load} Each interval "
        "holds for itself; above 1 is better than the reference."
    )
    yield (
        "Overloaded is what missed its rate by 5 % or failed in more than 1 % of its requests; "
        "failed is what answered nothing."
    )
    enough = requests_for(PERCENTS["P99"])
    few = [
        f"{point.label} ({least})"
        for point in found.points
        if (least := min((a.fewest_requests or 0 for a in point.arms), default=0)) < enough
    ]
    if few:
        yield (
            f"A trial's P99 rests on fewer than ten slower requests where it has fewer than "
            f"{enough:,}: at {', '.join(few)}."
        )


def _capacity(found: Sweep, one: Capacity) -> str:
    """Such as: Capacity: tuned carries 138 (130 to 146) requests/s at P99 <= 50 ms."""
    at = f"at P99 <= {number(found.limit_ms or 0.0)} ms"
    if one.rps is None:
        where = {
            "above": f"more than {found.points[-1].value:g} requests/s",
            "below": f"less than {found.points[0].value:g} requests/s",
        }
        told = where.get(one.outside, "a rate that these rounds don't agree on")
        return f"Capacity: {one.arm} carries {told} {at}."
    told = interval(one.rps.value, one.rps.low, one.rps.high)
    compared = "" if one.ratio is None else f": {_more(one)} than {found.reference}"
    return f"Capacity: {one.arm} carries {told} requests/s {at}{compared}."


def _carries(one: Capacity) -> str:
    return f"{one.arm} carries {_more(one)}"


def _more(one: Capacity) -> str:
    """Such as: 38 % more (20 to 58)."""
    if one.ratio is None:
        return ""
    shares = [100 * (value - 1) for value in (one.ratio.value, one.ratio.low, one.ratio.high)]
    if shares[0] < 0:
        shares = [-shares[0], -shares[2], -shares[1]]
        return "{:.0f} % less ({:.0f} to {:.0f})".format(*shares)
    return "{:.0f} % more ({:.0f} to {:.0f})".format(*shares)


def _knee(found: Sweep, one: Knee) -> str:
    last = f"{found.points[-1].value:g} {UNITS[found.axis]}"
    if one.value is None:
        return f"Knee: {one.arm} has none up to {last}."
    told = interval(one.value.value, one.value.low, one.value.high)
    if found.loop == "closed":
        return f"Knee: from {told} {UNITS[found.axis]} on, {one.arm} answers hardly more."
    return f"Knee: {one.arm} answers at most {told} requests/s, whatever is asked."


def _outcomes(found: Sweep, arm: str) -> str:
    """Such as: gain at 50, 100, worse at 150 requests/s."""
    told: dict[str, list[str]] = {}
    for point in found.points:
        for one in point.arms:
            if one.arm == arm:
                told.setdefault(one.outcome, []).append(point.label)
    parts = [f"{outcome} at {', '.join(places)}" for outcome, places in told.items()]
    return f"{', '.join(parts)} {UNITS[found.axis]}".rstrip()


def _failures(one: ArmAt) -> str | None:
    """Such as: tuned: 2 of 5 overloaded, 1 of 5 failed; None where nothing did."""
    parts = [f"{one.overloaded} of {one.trials} overloaded"] if one.overloaded else []
    parts += [f"{one.failed} of {one.trials} failed"] if one.failed else []
    return f"{one.arm}: {', '.join(parts)}" if parts else None


def _heading(found: Sweep) -> str:
    words = ALONG[found.axis] + (", in a closed loop" if found.loop == "closed" else "")
    return words[0].upper() + words[1:]


def _names(found: Sweep) -> list[str]:
    return [arm.name for arm in found.arms]
