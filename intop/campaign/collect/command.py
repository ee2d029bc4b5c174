"""collect: trials that fill the space."""

from typing import Any

from intop.command import dry_run
from intop.command.options import (
    dry_run_option,
    figures_options,
    force_option,
    new_option,
    only_option,
    samples_option,
    stage_options,
    subcommand,
)
from intop.command.running import beginning, run_stage


@subcommand(
    "collect", "intop collect", "intop collect --arch arm", "intop collect --samples 20 --new"
)
@stage_options
@only_option
@samples_option
@new_option
@force_option
@figures_options
@dry_run_option(dry_run.measuring("collect"))
def command(samples: int | None, new: bool, **options: Any) -> None:
    """Measure configurations that fill the space.

    The space has the parameters that screening selected (SDS and DDS of the paper).
    """
    from intop.campaign.collect.stage import collect as stage
    from intop.campaign.collect.view import collected

    run_stage(lambda task: stage(task, samples), collected, choose=beginning(new=new), **options)
