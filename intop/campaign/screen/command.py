"""screen: which parameters matter."""

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


@subcommand("screen", "intop screen", "intop screen --arch x86 --workload slt --samples 60")
@stage_options
@only_option
@samples_option
@new_option
@force_option
@figures_options
@dry_run_option(dry_run.measuring("screen"))
def command(samples: int | None, new: bool, **options: Any) -> None:
    """Find the parameters that act, and freeze the others.

    Static and dynamic requests are ranked apart (SRP and DRP of the paper).
    """
    from intop.campaign.screen import view as report
    from intop.campaign.screen.stage import screen as stage
    from intop.campaign.screen.stage import workloads_agree

    run_stage(
        lambda task: stage(task, samples),
        report.ranking,
        choose=beginning(new=new),
        also=(workloads_agree, report.agreement),
        **options,
    )
