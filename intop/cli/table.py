"""`intop train --data`: models of a table in a file. It needs no study, no host and no store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from intop.cli.options import F, dask_address
from intop.cli.output import interruptible, output_folder, print_result, say_figures
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.table import Table
    from intop.domain.training import Training
    from intop.stages.foreign import Effort

TRIALS, FOLDS, SEED = 20, 5, 1


def table_options(command: F) -> F:
    """All that --data takes. Nothing has a default here, so that what was said can be told."""
    options = (
        click.option(
            "--data",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Fit this table in place of a campaign's trials, a row for each trial: CSV (also "
            ".gz, .bz2, .xz, .zip) or .parquet.",
        ),
        click.option(
            "--target",
            metavar="COLUMN",
            help="With --data: the column to predict, by its name or its number from 1.  "
            "[default: as the campaign that `intop export` wrote the table of]",
        ),
        click.option(
            "--group",
            multiple=True,
            metavar="COLUMN",
            help="With --data: rows that are equal in these are trials of one configuration; "
            "may be said several times.  [default: rows of equal inputs are]",
        ),
        click.option(
            "--failed",
            multiple=True,
            metavar="VALUE",
            help="With --data: what the target of failed trials is.",
        ),
        click.option(
            "--ignore",
            "ignored",
            multiple=True,
            metavar="COLUMN",
            help="With --data: no input, such as another target; may be said several times.",
        ),
        click.option(
            "--family",
            "families",
            multiple=True,
            metavar="NAME",
            help="With --data: only this family of models; may be said several times.",
        ),
        click.option(
            "--trials",
            type=click.IntRange(min=1),
            help="With --data: tries of hyper-parameters in a fold.  "
            f"[default: {TRIALS}, or an export's]",
        ),
        click.option(
            "--folds",
            type=click.IntRange(min=2, max=20),
            help=f"With --data: folds to measure the error in.  [default: {FOLDS}, or an export's]",
        ),
        click.option(
            "--seed",
            type=click.IntRange(min=0, max=2**32 - 1),
            help=f"With --data: seed of all that is random.  [default: {SEED}, or an export's]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def without_data(options: Mapping[str, Any]) -> None:
    """Raises UsageError when one of these options is said where there is no --data."""
    for name, value in options.items():
        if value not in (None, ()):
            option = {"ignored": "ignore", "families": "family"}.get(name, name)
            raise UsageError(f"--{option} belongs to --data: a study's file says it for its trials")


@dataclass(frozen=True, kw_only=True)
class _Job:
    """A table to fit models to, and how. Of a foreign one it is shown what was read of it."""

    title: str
    table: "Table"
    effort: "Effort"
    unit: str = ""
    foreign: bool = False


def train(
    data: Path,
    *,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    figures: Path | None,
    figure_format: str,
    target: str | None,
    families: tuple[str, ...],
    trials: int | None,
    folds: int | None,
    seed: int | None,
    **roles: tuple[str, ...],
) -> None:
    """Fit the families to a table, and print their held-out errors.

    Without a target it must be an export of trials, and the models are made as its campaign's.
    """
    said = click.get_current_context().get_parameter_source
    if ParameterSource.COMMANDLINE in map(said, ("config", "models")):
        raise UsageError("--data needs no study: leave --config and --models out")
    if target is not None and (arch or workload):
        raise UsageError("--arch and --workload are for exported trials: leave --target out")
    with interruptible("of a table nothing is stored"):
        from intop.report.machine import to_json
        from intop.stages.foreign import check_size, chosen_families

        folder = output_folder(figures, "--figures") if figures else None
        chosen, dask = chosen_families(families), dask_address()
        efforts = {"trials": trials, "folds": folds, "seed": seed}
        changes = {name: value for name, value in efforts.items() if value is not None}
        if target is None:
            jobs = _exported(data, arch, workload, changes, roles)
        else:
            jobs = [_foreign(data, target, changes, roles)]
        for job in jobs:
            check_size(job.table, job.effort.folds)
        found = {job.title: _trained(job, chosen, dask, shows=not as_json) for job in jobs}
        if as_json and target is not None:
            (job,) = jobs
            print_result(to_json({"table": job.table.inventory, "training": found[job.title]}))
        elif as_json:
            print_result(to_json(found))
        if folder:
            say_figures(folder, figure_format, found)


def _trained(job: _Job, families: Sequence[str], dask: str | None, *, shows: bool) -> "Training":
    from intop.report import train as report
    from intop.report.document.text import show
    from intop.report.progress import progress
    from intop.stages.foreign import train_table

    if shows and job.foreign:
        show(report.inventory(job.title, job.table))
    with progress() as shown:
        training = train_table(
            job.table, families, job.effort, progress=shown, unit=job.unit, dask=dask
        )
    if shows:
        show(report.errors(job.title, training))
    return training


def _foreign(
    data: Path, target: str, changes: Mapping[str, int], roles: Mapping[str, tuple[str, ...]]
) -> _Job:
    from intop.config.table import Roles, read_table
    from intop.stages.foreign import Effort

    table = read_table(data, Roles(target=target, **roles))
    effort = Effort(**({"trials": TRIALS, "folds": FOLDS, "seed": SEED} | dict(changes)))
    title = f"{data.name} {table.inventory.target}"
    return _Job(title=title, table=table, effort=effort, foreign=True)


def _exported(
    data: Path,
    arch: str | None,
    workload: str | None,
    changes: Mapping[str, int],
    roles: Mapping[str, tuple[str, ...]],
) -> list[_Job]:
    """A job for each architecture and workload of an export. Raises UsageError."""
    from intop.config.exported import read_exports, read_recipes
    from intop.domain.table import schema_of
    from intop.stages.foreign import Effort

    recipes = read_recipes(data)
    if not recipes or any(roles.values()):
        raise UsageError(
            "--data needs --target COLUMN: which column the models are to predict. (Exported "
            f"trials need no more than {schema_of(data).name} beside them.)"
        )
    wanted = [r for r in recipes if arch in (None, r.arch) and workload in (None, r.workload)]
    if not wanted:
        raise UsageError(f"{data} has trials of {', '.join(r.title for r in recipes)}")
    return [
        _Job(
            title=recipe.title,
            table=table,
            effort=Effort(
                **{f.name: getattr(recipe, f.name) for f in fields(Effort)} | dict(changes)
            ),
            unit=recipe.unit,
        )
        for recipe, table in zip(wanted, read_exports(data, wanted), strict=True)
    ]
