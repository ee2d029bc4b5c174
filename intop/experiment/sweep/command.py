"""sweep: the winner and others along a load."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from intop.command import dry_run, values
from intop.command.options import (
    dry_run_option,
    figures_options,
    force_option,
    stage_options,
    study_of,
    subcommand,
)
from intop.command.running import beginning, run_stage

if TYPE_CHECKING:
    from intop.experiment.sweep.request import SweepRequest

REQUESTED = ("names", "axis", "points", "rounds", "seconds", "limit_ms")
"""The options that say what to sweep over."""


def _asked(**options: Any) -> dry_run.Asked:
    request, options = asked_sweep(**options)
    return dry_run.Asked(stages=("sweep",), options=options, request=request)


@subcommand(
    "sweep",
    "intop sweep                                         the rate, from a quarter to twice of it",
    "intop sweep --points 50,100,150,200 --limit-ms 50   and what each carries within it",
    "intop sweep ubuntu-18.04 --points 0.5x,1x,1.5x      this baseline, too",
    "intop sweep --over connections --closed --points 10,50,100,500",
    "intop sweep --over cores --points 1,2,4             nginx's worker processes",
    "intop sweep --workload slt --over file --points /small.html,/large.jpg",
    "intop sweep --figures figures",
)
@click.argument("names", nargs=-1, metavar="[BASELINE]...", shell_complete=values.baselines)
@stage_options
@click.option(
    "--over",
    "axis",
    type=click.Choice(["rate", "connections", "cores", "file"]),
    default="rate",
    show_default=True,
    help="What is varied. Cores are nginx's worker processes, each tied to a processor. A file is "
    "the one static path that all requests ask for.",
)
@click.option(
    "--points",
    metavar="POINT,...",
    help="Numbers, or multiples such as 0.5x of what the workload has; or paths of files.  "
    "[default: a quarter to twice the rate, a quarter to four times the connections]",
)
@click.option(
    "--closed",
    is_flag=True,
    help="A closed loop: each connection asks again once it has its answer, at no given rate.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=3),
    default=3,
    show_default=True,
    help="How often each point is measured.",
)
@click.option(
    "--seconds",
    type=click.IntRange(min=1, max=3600),
    help="Duration of each trial.  [default: as the workload has it]",
)
@click.option(
    "--limit-ms",
    type=click.FloatRange(min=0, min_open=True),
    help="Find the capacity: the highest rate at which the judged latency is within this limit.",
)
@click.option("--again", is_flag=True, help="Measure again; what was measured stays in the store.")
@force_option
@figures_options
@dry_run_option(dry_run.measuring_as(_asked))
def command(again: bool, **options: Any) -> None:
    """Measure the winner and the default along a load.

    The host's own values, the winner and the named baselines meet at each point in interleaved
    rounds. The result is what each of them carries: the knee is where more load brings no more
    answers. Failures are results here. An interrupted sweep goes on. A finished one is read from
    the store.
    """
    from intop.experiment.sweep.stage import SweepAlong
    from intop.experiment.sweep.view import sweep_section
    from intop.run.executor import execute

    request, options = asked_sweep(**options)
    request = replace(request, again=again)
    run_stage(
        lambda task: execute(SweepAlong(task, request)).latest,
        sweep_section,
        choose=beginning(),
        **options,
    )


def asked_sweep(*, closed: bool, **options: Any) -> "tuple[SweepRequest, dict[str, Any]]":
    """Return what to sweep over, and the options that all stages have.

    Raises UsageError for what one of the workloads can't have, before anything is measured.
    """
    from intop.experiment.sweep.request import SweepRequest
    from intop.run.context import chosen_workloads

    own = {name: options.pop(name) for name in REQUESTED}
    request = SweepRequest(loop="closed" if closed else "open", **own)
    for workload in chosen_workloads(study_of(options["config"]), options["workload"]):
        request.points_for(workload)
    return request, options
