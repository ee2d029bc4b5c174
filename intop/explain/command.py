"""explain: the changes that a winner's gain is made of."""

from typing import Any

from intop.command import dry_run
from intop.command.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    subcommand,
)
from intop.command.running import exit_by, run_stage


@subcommand(
    "explain",
    "intop explain",
    "intop explain --arch x86 --workload slt --figures figures",
    "intop explain --json",
)
@stage_options
@only_option
@figures_options
@dry_run_option(dry_run.measuring("explain"))
def command(**options: Any) -> None:
    """Measure which changes make the gain, and keep only these.

    intop first tries the few changes of which the models expect most. If these lose part of the
    gain, it leaves each change out of the winner, and makes each one alone. The changes that matter
    are judged against the default in fresh rounds, beside the whole winner. The exit code is 3 when
    no verdict is a gain, and then nothing is measured.

    `intop causes` tests the mechanisms behind the gain.
    """
    from intop.domain.verdict import Verdict
    from intop.explain.stage import explain as stage
    from intop.explain.view import explanation as text

    results = run_stage(stage, text, **options)
    exit_by(
        {
            title: outcome if isinstance(outcome, Verdict) else outcome.verdict
            for title, outcome in results.items()
        }
    )
