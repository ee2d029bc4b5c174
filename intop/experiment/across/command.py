"""across: one configuration under all workloads."""

import sys
from typing import TYPE_CHECKING, Any

import click

from intop.command import dry_run, values
from intop.command.exit_codes import NO_GAIN
from intop.command.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    study_of,
    subcommand,
)
from intop.command.running import beginning, run_stage
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.workload import Workload

WINNER = "winner"


def _asked(configuration: str, **options: Any) -> dry_run.Asked:
    from intop.experiment.across.stage import AcrossRequest

    workloads, options = asked_workloads(configuration, **options)
    request = AcrossRequest(workloads=workloads)
    return dry_run.Asked(stages=("across",), options=options, request=request)


@subcommand(
    "across",
    "intop across                                 the winner, in all workloads of the file",
    "intop across --from slt --rounds 10          the winner of slt",
    "intop across ubuntu-18.04 --workload dlt     a baseline, in one workload",
    "intop across --figures figures",
)
@click.argument("configuration", default=WINNER, shell_complete=values.configurations)
@stage_options
@only_option
@figures_options
@click.option(
    "--from",
    "origin",
    metavar="WORKLOAD",
    shell_complete=values.workloads,
    help="The workload whose winner it is.  [default: each workload's that has one]",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=2),
    help="How often each workload is measured.  [default: judge_pairs of the file]",
)
@click.option("--again", is_flag=True, help="Measure again; what was measured stays in the store.")
@dry_run_option(dry_run.measuring_as(_asked))
def command(configuration: str, *, rounds: int | None, again: bool, **options: Any) -> None:
    """Measure one configuration under all workloads.

    CONFIGURATION is winner, which is the verdict's, or the name of a baseline. It meets the default
    under every workload of the file, tuned or not, in the same interleaved rounds. --workload names
    a single one. `intop plan --configuration` deploys by the result. The exit code is 3 if it is
    worse in one workload, or a gain in none.
    """
    from intop.experiment.across.stage import AcrossRequest, AcrossWorkloads
    from intop.experiment.across.view import across_section
    from intop.run.executor import execute

    workloads, options = asked_workloads(configuration, **options)
    request = AcrossRequest(
        workloads=workloads, configuration=configuration, rounds=rounds, again=again
    )
    results = run_stage(
        lambda task: execute(AcrossWorkloads(task, request)),
        across_section,
        choose=None if configuration == WINNER else beginning(),
        **options,
    )
    if not all(across.is_gain for across in results.values()):
        sys.exit(NO_GAIN)


def asked_workloads(
    configuration: str, *, origin: str | None, **options: Any
) -> "tuple[tuple[Workload, ...], dict[str, Any]]":
    """Return the workloads to measure in, and the options of the subjects that it is measured for.

    Raises UsageError for what can't be asked for.
    """
    from intop.run.context import chosen_workloads

    study, named = study_of(options["config"]), options["workload"]
    workloads = chosen_workloads(study, named) if named else tuple(study.workloads.values())
    if configuration != WINNER:
        if origin is not None:
            raise UsageError(f"--from says whose winner, and {configuration} is nobody's")
        # Trials are stored with one of the workloads.
        origin = (named and workloads[0].name) or chosen_workloads(study, None)[0].name
    return workloads, options | {"workload": origin}
