"""pilot: how long trials are."""

from typing import Any

from intop.command import dry_run
from intop.command.options import (
    dry_run_option,
    force_option,
    new_option,
    stage_options,
    subcommand,
)
from intop.command.running import beginning, run_stage


@subcommand("pilot", "intop pilot", "intop pilot --arch x86 --workload slt", "intop pilot --json")
@stage_options
@new_option
@force_option
@dry_run_option(dry_run.measuring("pilot"))
def command(new: bool, **options: Any) -> None:
    """Choose how long trials are, by measuring the default.

    The default runs in trials of several durations. The first stage of a campaign does this by
    itself where the file has no duration_s. Where it has one, that stays, and pilot rates it.
    """
    from intop.campaign.pilot.stage import pilot as stage
    from intop.campaign.pilot.view import pilot as text

    run_stage(stage, text, choose=beginning(new=new), **options)
