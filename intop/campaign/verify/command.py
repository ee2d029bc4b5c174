"""verify: a verdict by measurement."""

from typing import TYPE_CHECKING, Any

import click

from intop.command import dry_run, values
from intop.command.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    subcommand,
)
from intop.command.running import exit_by, run_stage
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.verdict import Verdict
    from intop.run.context import Task


def _asked(against: str, more: int | None, **options: Any) -> dry_run.Asked:  # noqa: ARG001
    if more is not None:
        raise UsageError(
            f"{more} further pairs are at most {2 * more} trials of the keys of before, and have "
            "no dry run: leave --dry-run out"
        )
    return dry_run.Asked(stages=("pick", "trim", "judge"), options=options)


@subcommand(
    "verify",
    "intop verify",
    "intop verify --arch x86 --workload slt",
    "intop verify --default ubuntu-18.04",
    "intop verify --more 10                 further pairs of an undecided verdict",
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
@click.option(
    "--more",
    type=click.IntRange(min=1),
    metavar="N",
    help="Go on with N further pairs of the same winner, where the verdict is not clear yet.",
)
@dry_run_option(dry_run.measuring_as(_asked))
def command(against: str, more: int | None, **options: Any) -> None:
    """Compare the best candidates with the default.

    The verdict is a gain if latency is lower and no guardrail of the file is broken. "Gain, but"
    names what the rounds can't exclude. "No gain: it costs" names what is worse. The exit code is
    3 when no verdict is a gain.

    --more goes on with further pairs of the same campaign where the verdict is undecided. The new
    verdict replaces the old one. All looks together hold at the level, since a part of the error
    rate is kept for them.

    `intop across` measures a configuration that you name, and `intop contest` several.
    """
    if more is not None and against != "default":
        raise UsageError("--more goes on with the verdict's own two sides: leave --default out")
    from intop.campaign.verify.judge import judged_latencies, verify, verify_more
    from intop.campaign.verify.view import verdict as text

    def stage(task: "Task") -> "Verdict":
        return verify(task, against) if more is None else verify_more(task, more)

    exit_by(run_stage(stage, text, drawn=judged_latencies, **options))
