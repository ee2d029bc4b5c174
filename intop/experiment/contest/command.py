"""contest: published sets of values against each other."""

from typing import Any

import click

from intop.command import dry_run, values
from intop.command.options import dry_run_option, force_option, stage_options, subcommand
from intop.command.running import beginning, run_stage


def _asked(names: tuple[str, ...], **options: Any) -> dry_run.Asked:
    from intop.experiment.contest.stage import ContestRequest

    return dry_run.Asked(stages=("contest",), options=options, request=ContestRequest(names=names))


@subcommand(
    "contest",
    "intop contest                                       all baselines",
    "intop contest ubuntu-18.04 openeuler-25.09 --rounds 20",
    "intop contest --default ubuntu-18.04                the same trials, judged against that",
    "intop contest --again                               measure again",
)
@click.argument("names", nargs=-1, metavar="[BASELINE]...", shell_complete=values.baselines)
@stage_options
@click.option(
    "--rounds",
    type=click.IntRange(min=2),
    help="How often each of them is measured.  [default: judge_pairs of the file]",
)
@click.option(
    "--default",
    "reference",
    default="default",
    shell_complete=values.baselines,
    help="Which of them the others are judged against; measures nothing.  "
    "[default: the host's own values]",
)
@click.option("--again", is_flag=True, help="Measure again; what was measured stays in the store.")
@force_option
@dry_run_option(dry_run.measuring_as(_asked))
def command(
    names: tuple[str, ...], rounds: int | None, reference: str, again: bool, **options: Any
) -> None:
    """Measure published sets of values against each other.

    The host's own values, the baselines and the winner meet in interleaved rounds. Without names
    all baselines take part. They come with intop, or from the folder that [study] baselines names.
    """
    from intop.experiment.contest.stage import ContestRequest, MultiArm, contest_section
    from intop.run.executor import execute

    request = ContestRequest(names=names, rounds=rounds, reference=reference, again=again)
    run_stage(
        lambda task: execute(MultiArm(task, request)),
        contest_section,
        choose=beginning(),
        **options,
    )
