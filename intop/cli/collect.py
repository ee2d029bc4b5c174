"""collect: trials that fill the space."""

from typing import Any

import click

from intop.cli import dry_run
from intop.cli.options import (
    Command,
    dry_run_option,
    examples,
    figures_options,
    force_option,
    new_option,
    samples_option,
    stage_options,
)
from intop.cli.running import run_stage


@click.command(
    "collect",
    cls=Command,
    epilog=examples(
        "intop collect", "intop collect --arch arm", "intop collect --samples 20 --new"
    ),
)
@stage_options
@samples_option
@new_option
@force_option
@figures_options
@dry_run_option(dry_run.of_stages("collect"))
def command(samples: int | None, new: bool, **options: Any) -> None:
    """Measure configurations that fill the space of the chosen parameters (SDS, DDS)."""
    from intop.report import text
    from intop.stages.collect import collect as stage

    run_stage(lambda task: stage(task, samples), text.collected, begins=True, new=new, **options)
