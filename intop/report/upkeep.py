"""The results of `intop store` as documents."""

from collections.abc import Iterator, Sequence

from intop.domain.upkeep import Amounts, Checked, Copied, Vacuumed
from intop.report.document.columns import numbers, texts
from intop.report.document.model import Block, Table, Verbatim


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
    """One line."""
    sizes = f"{vacuumed.before / 1e6:.1f} MB before, {vacuumed.after / 1e6:.1f} MB now"
    yield Verbatim((f"{vacuumed.store}: {sizes}",))


def _some(number: int, noun: str) -> str:
    """Such as 1,000 trials, 1 trial."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cells(amounts: Amounts) -> tuple[str, str, str]:
    return f"{amounts.plans:,}", f"{amounts.trials:,}", f"{amounts.results:,}"
