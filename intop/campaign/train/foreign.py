"""train --data: models of a table in a file."""

from collections.abc import Sequence
from functools import partial

from intop.document.progress import Progress
from intop.domain.table import Table
from intop.domain.training import Training
from intop.errors import UsageError
from intop.learn.ceiling import ceiling
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples
from intop.learn.tuning import fewest_rows, limits, train_all
from intop.learn.tuning_effort import Effort

MOST_FEATURES = 1_000
"""Features of one configuration. With ten times as many, a try in one fold took a minute."""
MOST_NUMBERS = 5_000_000
"""Features of all configurations together, such as 100 of 50,000."""


def chosen_families(names: Sequence[str]) -> list[str]:
    """Return the families of these names, in any case; all for none. Raises UsageError."""
    known = {name.casefold(): name for name in FAMILIES}
    if unknown := [name for name in names if name.casefold() not in known]:
        raise UsageError(f"--family {unknown[0]}: there are {', '.join(FAMILIES)}")
    return list(dict.fromkeys(known[name.casefold()] for name in names)) or list(FAMILIES)


def check_size(table: Table, folds: int) -> None:
    """Raises UsageError for a table that is too small for so many folds, or too large."""
    listed = table.inventory
    if listed.configurations < (fewest := fewest_rows(folds)):
        raise UsageError(
            f"{listed.path}: has {listed.configurations} configurations, and {folds} folds need at "
            f"least {fewest}: measure more, or say fewer --folds"
        )
    features = sum(len(v.features) for v in table.variables)
    most = min(MOST_FEATURES, MOST_NUMBERS // listed.configurations)
    if features > most:
        raise UsageError(
            f"{listed.path}: its {len(table.variables)} variables make {features} features, and "
            f"models of {listed.configurations} configurations take {most} at most: leave columns "
            "out by --ignore"
        )


def train_table(
    table: Table,
    families: Sequence[str],
    effort: Effort,
    *,
    progress: Progress,
    unit: str = "",
    dask: str | None = None,
) -> Training:
    """Tune these families on a table that `check_size` has let pass, and measure their error.

    On the Dask cluster whose scheduler is at `dask`, or in processes here. Nothing is stored.
    """
    inventory = table.inventory
    samples = Samples(
        variables=table.variables, values=table.values, measured=table.measured, lent=table.lent
    )
    for line in limits(families, samples, effort):
        progress.say(f"{inventory.path}: {line}")
    try:
        outcome = train_all(
            families,
            samples,
            effort=effort,
            dask=dask,
            begin=partial(progress.begin, f"{inventory.path}: train"),
            progress=progress.step,
        )
    finally:
        progress.end()
    return Training(
        keys=tuple(dict.fromkeys(v.key for v in table.variables)),
        fitted=tuple(fitted for fitted, _ in outcome),
        errors=tuple(error for _, error in outcome),
        trials=inventory.trials,
        configurations=inventory.configurations,
        lent=samples.lent,
        ceiling=ceiling(samples.own),
        target=inventory.target,
        unit=unit,
    )
