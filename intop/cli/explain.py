"""explain: what a winner's gain is made of."""

from typing import Any

from intop.cli import dry_run
from intop.cli.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    subcommand,
)
from intop.cli.running import exit_by, run_stage


@subcommand(
    "explain",
    "intop explain",
    "intop explain --arch x86 --workload slt --figures figures",
    "intop explain --json",
)
@stage_options
@only_option
@figures_options
@dry_run_option(dry_run.of_stages("explain"))
def command(**options: Any) -> None:
    """Find the fewest changes of the winner that keep its gain, by measurement.

    Each key is left out of the winner, and changed alone; what does not matter is dropped, and
    the rest is judged against the default in fresh rounds, beside the whole winner. The exit code
    is 3 when no verdict is a gain, and then nothing is measured.
    """
    from intop.domain.verdict import Verdict
    from intop.report.explain import explanation as text
    from intop.stages.explain import explain as stage

    found = run_stage(stage, text, **options)
    exit_by(
        {title: one if isinstance(one, Verdict) else one.verdict for title, one in found.items()}
    )
