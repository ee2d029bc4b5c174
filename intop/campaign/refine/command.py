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
    """Measure where the models expect most.

    It goes on from what collect has measured, a few trials at a time. It ends when the file's
    refine_trials are spent, or when nothing better is expected. It also learns from earlier
    campaigns of the same space, unless the file says warm_start = false.
    """
    from intop.campaign.refine.stage import refine as stage
    from intop.campaign.refine.view import refined as text

    run_stage(stage, text, **options)
