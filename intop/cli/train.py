"""train: models of the trials, or of a table."""

from pathlib import Path
from typing import Any

from intop.cli import table
from intop.cli.options import (
    figures_options,
    fit_on_option,
    models_option,
    only_option,
    stage_options,
    subcommand,
)
from intop.cli.running import connect_to_none, run_stage


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
@table.table_options
def command(
    data: Path | None,
    models: Path | None,
    config: Path | None,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    figures: Path | None,
    figure_format: str,
    **options: Any,
) -> None:
    """Fit the six model families and report their held-out errors (STM, DTM).

    With --data they are fitted to a table, and nothing is stored: to what somebody measured,
    or to trials that `intop export` wrote, which takes no further option and gives the same errors.
    """
    asked: dict[str, Any] = {"arch": arch, "workload": workload, "as_json": as_json}
    asked |= {"figures": figures, "figure_format": figure_format}
    if data is not None:
        table.train(data, **asked, **options)
        return
    table.without_data(options)
    from intop.report.train import trained
    from intop.stages.train import train as stage

    run_stage(
        lambda task: stage(task, models), trained, connect=connect_to_none, config=config, **asked
    )
