"""What `intop store` has to say, as documents."""

from collections.abc import Iterator, Sequence

from intop.domain.upkeep import Amounts, Checked, Copied, Vacuumed
from intop.report.document.columns import numbers, texts
from intop.report.document.model import Block, Table, Verbatim


def copies(found: Sequence[Copied]) -> Iterator[Block]:
    """A row for each campaign."""
    yield Table(
        columns=(
            *texts("campaign", "study", "begun", ""),
            *numbers("plans", "trials", "results"),
        ),
        rows=tuple(
            (
                str(one.campaign),
                one.study,
                one.started_at,
                f"{'there already' if one.was_there else 'copied'} as {one.copy}",
                *_cells(one.amounts),
            )
            for one in found
        ),
    )


def check(found: Checked) -> Iterator[Block]:
    """What there is, and a line for each problem."""
    amounts = found.amounts
    problems = len(found.problems) + found.unlisted
    there = ", ".join(
        [
            _some(found.campaigns, "campaign"),
            f"{_some(amounts.plans, 'place')} in plans",
            _some(amounts.trials, "trial"),
            _some(amounts.results, "result"),
        ]
    )
    lines = [f"{found.store}: {there}: {_some(problems, 'problem') if problems else 'sound'}"]
    lines += [f"  {problem}" for problem in found.problems]
    lines += [f"  and {found.unlisted} more"] if found.unlisted else []
    yield Verbatim(tuple(lines))


def vacuumed(found: Vacuumed) -> Iterator[Block]:
    """One line."""
    sizes = f"{found.before / 1e6:.1f} MB before, {found.after / 1e6:.1f} MB now"
    yield Verbatim((f"{found.store}: {sizes}",))


def _some(number: int, noun: str) -> str:
    """Such as 1,000 trials, 1 trial."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cells(amounts: Amounts) -> tuple[str, str, str]:
    return f"{amounts.plans:,}", f"{amounts.trials:,}", f"{amounts.results:,}"
