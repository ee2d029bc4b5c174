"""refine: trials that are chosen by all trials before them."""

from typing import Any

from intop.command import dry_run
from intop.command.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    subcommand,
)
from intop.command.running import run_stage


@subcommand(
    "refine",
    "intop refine",
    "intop refine --arch x86 --workload slt --figures figures",
    "intop refine --json",
)
@stage_options
@only_option
@figures_options
@dry_run_option(dry_run.measuring("refine"))
def command(**options: Any) -> None:
    """Measure what is most telling by all trials so far, a few at a time.

    Goes on from what collect has measured, until the refine_trials of the file are spent or nothing
    better is expected. Learns from earlier campaigns of the same space, too, unless the file says
    warm_start = false.
    """
    from intop.campaign.refine.stage import refine as stage
    from intop.campaign.refine.view import refined as text

    run_stage(stage, text, **options)
