"""`intop train --data`: models of a foreign table. It needs no study, no host and no store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from intop.cli.options import F, interruptible, output_folder, print_result, say_figures
from intop.errors import UsageError

TRIALS, FOLDS, SEED = 20, 5, 1


def table_options(command: F) -> F:
    """All that --data takes. Nothing has a default here, so that what was said can be told."""
    options = (
        click.option(
            "--data",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE.csv[.gz]",
            help="Fit this table in place of a campaign's trials: a row for each trial.",
        ),
        click.option(
            "--target",
            metavar="COLUMN",
            help="With --data: the column to predict, by its name or its number from 1.",
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
            help=f"With --data: tries of hyper-parameters in each fold.  [default: {TRIALS}]",
        ),
        click.option(
            "--folds",
            type=click.IntRange(min=2, max=20),
            help=f"With --data: folds to measure the error in.  [default: {FOLDS}]",
        ),
        click.option(
            "--seed",
            type=click.IntRange(min=0, max=2**32 - 1),
            help=f"With --data: the seed of all that is random.  [default: {SEED}]",
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


def train(
    data: Path,
    *,
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
    """Fit the families to a table, and print their held-out errors."""
    said = click.get_current_context().get_parameter_source
    if ParameterSource.COMMANDLINE in map(said, ("config", "arch", "workload", "models")):
        raise UsageError(
            "--data needs no study: leave --config, --arch, --workload and --models out"
        )
    if target is None:
        raise UsageError("--data needs --target COLUMN: which column the models are to predict")
    with interruptible("of a table nothing is stored"):
        from intop.config.table import Roles, read_table
        from intop.pipeline.foreign import check_size, chosen_families, train_table
        from intop.report import table as report
        from intop.report import text
        from intop.report.machine import to_json
        from intop.report.progress import progress

        folder = output_folder(figures, "--figures") if figures else None
        chosen = chosen_families(families)
        table = read_table(data, Roles(target=target, **roles))
        folds = FOLDS if folds is None else folds
        check_size(table, folds)
        title = f"{data.name} {table.inventory.target}"
        if not as_json:
            text.show(report.inventory(title, table))
        with progress() as shown:
            found = train_table(
                table,
                chosen,
                folds=folds,
                trials=TRIALS if trials is None else trials,
                seed=SEED if seed is None else seed,
                progress=shown,
            )
        if as_json:
            print_result(to_json({"table": table.inventory, "training": found}))
        else:
            text.show(text.errors(title, found))
        if folder:
            say_figures(folder, figure_format, {title: found})
