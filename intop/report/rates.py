"""A sweep over rates as a document: what a winner is worth at each rate."""

from collections.abc import Iterator

from intop.domain.percentiles import PERCENTS, requests_for
from intop.domain.rate_sweep import AtRate, RateSweep, SideAtRate
from intop.report.document.columns import Column, span
from intop.report.document.model import Notes, Section, Table
from intop.report.numbers import counted, percent


def rates(title: str, found: RateSweep) -> Section:
    """The table of rates, with what it can't tell."""
    return Section(title=f"{title}: {sentence(found)}", blocks=(rate_table(found), _notes(found)))


def rate_table(found: RateSweep) -> Table:
    """A row for each rate."""
    default = found.reference
    return Table(
        name="rates",
        title="The winner at other rates",
        origin="measured",
        columns=(
            Column("rate", "text"),
            Column("requests/s"),
            *(Column(f"{name} P99", unit="ms") for name in (default, "tuned")),
            Column(f"ratio ({percent(found.level)} interval)", "span"),
            *(Column(f"{name} reached") for name in (default, "tuned")),
            Column("what fails", "prose"),
        ),
        rows=tuple(
            (
                f"{one.times:g} times",
                one.rate_rps,
                one.default.p99_ms,
                one.tuned.p99_ms,
                span(one.ratio),
                one.default.achieved_rps,
                one.tuned.achieved_rps,
                _failures(found, one),
            )
            for one in found.rates
        ),
    )


def sentence(found: RateSweep) -> str:
    """Such as: at other rates: 0.5 times gain, 1 times gain, 1.5 times worse."""
    return f"at other rates: {', '.join(map(_short, found.rates))}"


def rate_notes(found: RateSweep) -> Iterator[str]:
    """How it was measured, and what it can't tell."""
    yield (
        f"{counted(found.rounds, 'round')} with each rate once on both sides. Ratios are of P99 "
        f"alone, each interval for itself; above 1 the tuned side is better."
    )
    yield (
        "Overloaded is what missed the rate by 5 % or failed in more than 1 % of its requests; "
        "failed is what answered nothing."
    )
    enough = requests_for(PERCENTS["P99"])
    few = [
        f"{one.times:g} times the rate {one.fewest_requests}"
        for one in found.rates
        if one.fewest_requests is not None and one.fewest_requests < enough
    ]
    if few:
        yield (
            f"A single trial's P99 rests on fewer than ten slower requests, since it has fewer "
            f"than {enough:,}: at {', '.join(few)}."
        )


def _notes(found: RateSweep) -> Notes:
    return Notes(tuple(rate_notes(found)))


def _short(one: AtRate) -> str:
    return f"{one.times:g} times {one.outcome}"


def _failures(found: RateSweep, one: AtRate) -> str | None:
    """Such as: default: 2 of 5 overloaded, 1 of 5 failed; None where nothing did."""
    sides = {found.reference: _side(one.default), "tuned": _side(one.tuned)}
    return "; ".join(f"{name}: {told}" for name, told in sides.items() if told) or None


def _side(side: SideAtRate) -> str:
    parts = [f"{side.overloaded} of {side.trials} overloaded"] if side.overloaded else []
    parts += [f"{side.failed} of {side.trials} failed"] if side.failed else []
    return ", ".join(parts)
