"""watch: the default for a while."""

from typing import Any

from intop.command import dry_run
from intop.command.options import dry_run_option, figures_options, stage_options, subcommand
from intop.command.running import run_stage


@subcommand("watch", "intop watch", "intop watch --json")
@stage_options
@figures_options
@dry_run_option(dry_run.measuring("watch"))
def command(**options: Any) -> None:
    """Measure the default for a while."""
    from builders.watch.stage import Watch
    from builders.watch.view import watched
    from intop.run.executor import execute

    run_stage(lambda task: execute(Watch(task)), watched, **options)
