"""train: models of the trials, or of a table in a file.

With --data it needs no study, no host and no store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from intop.command.options import (
    dask_address,
    figures_options,
    fit_on_option,
    models_option,
    only_option,
    stage_options,
    subcommand,
    together,
)
from intop.command.output import interruptible, output_folder, print_result, say_figures
from intop.command.running import connect_to_none, run_stage
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.table import Recipe, Table
    from intop.domain.training import Training
    from intop.learn.tuning_effort import Effort

TRIALS, FOLDS, SEED = 20, 5, 1

table_options = together(
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
"""The options of --data. None has a default here, so that what was typed can be known."""


@subcommand(
    "train",
    "intop train",
    "intop train --workload dlt --json",
    "intop train --models models",
    "intop train --figures figures",
    "intop train --fit-on dask=tcp://scheduler:8786",
    "intop train --data trials.csv                              exported trials",
    "intop train --data runs.csv --target p95_ms",
    "intop train --data runs.csv --target p95_ms --ignore worker --failed 1000000",
)
@stage_options
@only_option
@figures_options
@fit_on_option
@models_option("Also save the fitted models in this folder.")
@table_options
def command(
    data: Path | None,
    models: Path | None,
    config: Path | None,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    figures: Path | None,
    **options: Any,
) -> None:
    """Fit the model families and show their errors.

    Errors are of configurations that a model has not seen (STM and DTM of the paper).

    With --data the models learn a table, and nothing is stored. A table may come from anybody. One
    that `intop export` wrote needs no further option, and gives the campaign's errors.
    """
    asked: dict[str, Any] = {"arch": arch, "workload": workload, "as_json": as_json}
    asked["figures"] = figures
    if data is not None:
        _train_table(data, **asked, **options)
        return
    _check_without_data(options)
    from intop.campaign.train.stage import train as stage
    from intop.campaign.train.view import trained

    run_stage(
        lambda task: stage(task, models), trained, connect=connect_to_none, config=config, **asked
    )


def _check_without_data(options: Mapping[str, Any]) -> None:
    """Raises UsageError for options of --data without it."""
    for name, value in options.items():
        if value not in (None, ()):
            option = {"ignored": "ignore", "families": "family"}.get(name, name)
            raise UsageError(f"--{option} belongs to --data: a study's file says it for its trials")


@dataclass(frozen=True, kw_only=True)
class _Job:
    """A table to fit models to, and how."""

    title: str
    table: "Table"
    effort: "Effort"
    unit: str = ""
    foreign: bool = False
    """Whether what was read of it is shown."""


def _train_table(
    data: Path,
    *,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    figures: Path | None,
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
    source = click.get_current_context().get_parameter_source
    if ParameterSource.COMMANDLINE in map(source, ("config", "models")):
        raise UsageError("--data needs no study: leave --config and --models out")
    if target is not None and (arch or workload):
        raise UsageError("--arch and --workload are for exported trials: leave --target out")
    with interruptible("of a table nothing is stored"):
        from intop.campaign.train.foreign import check_size, chosen_families
        from intop.document.machine import to_json

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
        trainings = {job.title: _trained(job, chosen, dask, shows=not as_json) for job in jobs}
        if as_json and target is not None:
            (job,) = jobs
            print_result(to_json({"table": job.table.inventory, "training": trainings[job.title]}))
        elif as_json:
            print_result(to_json(trainings))
        if folder:
            say_figures(folder, trainings)


def _trained(job: _Job, families: Sequence[str], dask: str | None, *, shows: bool) -> "Training":
    from intop.campaign.train import view as report
    from intop.campaign.train.foreign import train_table
    from intop.document.progress import progress
    from intop.document.text import show

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
    from intop.learn.tuning_effort import Effort

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
    """Return a job for each architecture and workload of an export. Raises UsageError."""
    from intop.config.exported import read_exports, read_recipes
    from intop.domain.table import schema_of
    from intop.learn.tuning_effort import Effort

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
            effort=Effort(**_recipes_effort(recipe, changes)),
            unit=recipe.unit,
        )
        for recipe, table in zip(wanted, read_exports(data, wanted), strict=True)
    ]


def _recipes_effort(recipe: "Recipe", changes: Mapping[str, int]) -> dict[str, Any]:
    """Return the arguments of an export's effort; whoever types --trials wants as many."""
    names = ("folds", "trials", "timeout_s", "seed", "repeats", "level", "time_s", "enough")
    limits = {name: getattr(recipe, name) for name in names} | dict(changes)
    return limits | {"time_s": None, "enough": 0.0} if "trials" in changes else limits
