"""A sweep as a document: what each arm is worth along a load, and what it can carry."""

from collections.abc import Iterator

from intop.document.columns import Column
from intop.document.model import Notes, Section, Table
from intop.domain.histogram import PERCENTS, requests_for
from intop.domain.sweep import UNITS, ArmAt, Capacity, Knee, Sweep
from intop.sentences import ALONG, more_or_less, sweep_sentence
from intop.words import capital, counted, interval, number, percent


def sweep_section(title: str, sweep: Sweep) -> Section:
    """Return the tables of points, what each arm carries, and what the sweep can't tell."""
    return Section(
        title=f"{title}: {sweep_sentence(sweep)}",
        blocks=(*sweep_tables(sweep), Notes(tuple(sweep_notes(sweep)))),
    )


def sweep_tables(sweep: Sweep) -> tuple[Table, Table]:
    """Return latencies, and what was answered at what cost: a row for each arm at each point."""
    return _latencies(sweep), _answered(sweep)


def _latencies(sweep: Sweep) -> Table:
    return Table(
        name=_name(sweep),
        title=f"{_heading(sweep)}: latencies",
        origin="measured",
        columns=(
            Column(_unit(sweep), "text"),
            Column("arm", "text"),
            Column(f"{sweep.judged_by} ({percent(sweep.level)} interval)", "span", "ms"),
            Column(f"{sweep.reference} / its own", "span"),
            Column("mean", unit="ms"),
        ),
        rows=tuple((label, a.arm, a.judged_ms, a.ratio, a.mean_ms) for label, a in _rows(sweep)),
    )


def _answered(sweep: Sweep) -> Table:
    return Table(
        name=f"{_name(sweep)}-answered",
        title=f"{_heading(sweep)}: what was answered",
        origin="measured",
        columns=(
            Column(_unit(sweep), "text"),
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
                a.arm,
                a.achieved_rps,
                a.received_mb_s,
                None if a.cpu is None else 100 * a.cpu,
                a.memory_mib,
                _failures(a),
            )
            for label, a in _rows(sweep)
        ),
    )


def sweep_notes(sweep: Sweep) -> Iterator[str]:
    """Yield what each arm carries, how it was measured, and what it can't tell."""
    yield from (_capacity(sweep, capacity) for capacity in sweep.capacities)
    yield from (_knee(sweep, knee) for knee in sweep.knees)
    load = (
        "A closed loop: each connection asks again once it has its answer, so a slow server is "
        "asked less often, and its latencies leave out who would have come meanwhile."
        if sweep.loop == "closed"
        else "An open loop: requests are due at a constant rate, and latencies count from then."
    )
    yield (
        f"{counted(sweep.rounds, 'round')} with each point once for each arm. {load} Each interval "
        "holds for itself; above 1 is better than the reference."
    )
    yield (
        "Overloaded is what missed its rate by 5 % or failed in more than 1 % of its requests; "
        "failed is what answered nothing."
    )
    percent_of = PERCENTS.get(sweep.judged_by)
    enough = 0 if percent_of is None else requests_for(percent_of)
    fewest = [min((a.fewest_requests or 0 for a in p.arms), default=0) for p in sweep.points]
    labels = [point.label for point in sweep.points]
    few = [f"{label} ({n})" for label, n in zip(labels, fewest, strict=True) if n < enough]
    if few:
        yield (
            f"A trial's {sweep.judged_by} rests on fewer than ten slower requests where it has "
            f"fewer than {enough:,}: at {', '.join(few)}."
        )


def _capacity(sweep: Sweep, capacity: Capacity) -> str:
    """Return such as: Capacity: tuned carries 138 (130 to 146) requests/s at P99 <= 50 ms."""
    at = f"at {sweep.judged_by} <= {number(sweep.limit_ms or 0.0)} ms"
    if (rps := capacity.rps) is None:
        where = {
            "above": f"more than {sweep.points[-1].value:g} requests/s",
            "below": f"less than {sweep.points[0].value:g} requests/s",
        }.get(capacity.outside, "a rate that these rounds don't agree on")
        return f"Capacity: {capacity.arm} carries {where} {at}."
    carried = f"{interval(rps.value, rps.low, rps.high)} requests/s"
    more = f": {more_or_less(capacity.ratio)} than {sweep.reference}" if capacity.ratio else ""
    return f"Capacity: {capacity.arm} carries {carried} {at}{more}."


def _knee(sweep: Sweep, knee: Knee) -> str:
    unit = UNITS[sweep.axis]
    if (at := knee.value) is None:
        return f"Knee: {knee.arm} has none up to {sweep.points[-1].value:g} {unit}."
    value = interval(at.value, at.low, at.high)
    if sweep.loop == "closed":
        return f"Knee: from {value} {unit} on, {knee.arm} answers hardly more."
    return f"Knee: {knee.arm} answers at most {value} requests/s, whatever is asked."


def _failures(arm_at: ArmAt) -> str | None:
    """Return such as: tuned: 2 of 5 overloaded, 1 of 5 failed; None where nothing did."""
    counts = {"overloaded": arm_at.overloaded, "failed": arm_at.failed}
    parts = [f"{count} of {arm_at.trials} {status}" for status, count in counts.items() if count]
    return f"{arm_at.arm}: {', '.join(parts)}" if parts else None


def _rows(sweep: Sweep) -> Iterator[tuple[str, ArmAt]]:
    """Yield each arm at each point, with the point's label."""
    for point in sweep.points:
        for arm_at in point.arms:
            yield point.label, arm_at


def _name(sweep: Sweep) -> str:
    return f"sweep-{sweep.axis}-{sweep.loop}"


def _unit(sweep: Sweep) -> str:
    return UNITS[sweep.axis] or "file"


def _heading(sweep: Sweep) -> str:
    words = ALONG[sweep.axis] + (", in a closed loop" if sweep.loop == "closed" else "")
    return capital(words)
