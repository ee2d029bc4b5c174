"""verify: a verdict by measurement."""

from typing import Any

import click

from intop.cli import dry_run, values
from intop.cli.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    subcommand,
)
from intop.cli.running import exit_by, run_stage


@subcommand(
    "verify",
    "intop verify",
    "intop verify --arch x86 --workload slt",
    "intop verify --default ubuntu-18.04",
    "intop verify --figures figures",
)
@stage_options
@only_option
@figures_options
@click.option(
    "--default",
    "against",
    default="default",
    shell_complete=values.baselines,
    help="The baseline that stands for the default.  [default: the host's own values]",
)
@dry_run_option(dry_run.of_stages("pick", "judge"))
def command(against: str, **options: Any) -> None:
    """Measure the finalists against the default, and give a verdict.

    It is a gain if P99 is lower and nothing else is worse than [guardrails] of the file accepts;
    "gain, but" says what the rounds can't exclude, and "no gain: it costs" what is worse. The exit
    code is 3 when no verdict is a gain.
    """
    from intop.report.verdict import verdict as text
    from intop.stages.verify import judged_latencies
    from intop.stages.verify import verify as stage

    exit_by(run_stage(lambda task: stage(task, against), text, drawn=judged_latencies, **options))
