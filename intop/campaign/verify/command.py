"""verify: a verdict by measurement."""

import sys
from typing import TYPE_CHECKING, Any

import click

from intop.command import dry_run, values
from intop.command.exit_codes import NO_GAIN
from intop.command.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    study_of,
    subcommand,
)
from intop.command.running import beginning, exit_by, run_stage
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.verdict import Verdict
    from intop.domain.workload import Workload
    from intop.run.context import Task


def _asked(
    against: str, more: int | None, configuration: str | None, **options: Any
) -> dry_run.Asked:
    from intop.campaign.verify.across import AcrossRequest

    if more is not None:
        raise UsageError("the verdict says how long further pairs take: leave --dry-run out")
    if configuration is None:
        return dry_run.Asked(
            stages=("pick", "trim", "judge"), options=without_configuration(**options)
        )
    workloads, options = asked_workloads(against, configuration, **options)
    request = AcrossRequest(workloads=workloads)
    return dry_run.Asked(stages=("across",), options=options, request=request)


@subcommand(
    "verify",
    "intop verify",
    "intop verify --arch x86 --workload slt",
    "intop verify --default ubuntu-18.04",
    "intop verify --more 10                        further pairs of an undecided verdict",
    "intop verify --figures figures",
    "intop verify --workload all --configuration winner       in all workloads, in the same rounds",
    "intop verify --configuration winner --from slt --rounds 10",
    "intop verify --configuration ubuntu-18.04 --workload dlt",
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
@click.option(
    "--configuration",
    metavar="NAME",
    shell_complete=values.configurations,
    help="Measure this one in place of the finalists: winner, which is the verdict's, or a "
    "baseline. In all workloads of the file, tuned or not, unless --workload names one.",
)
@click.option(
    "--from",
    "origin",
    metavar="WORKLOAD",
    shell_complete=values.workloads,
    help="With --configuration: whose winner.  [default: each workload's that has one]",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=2),
    help="With --configuration: how often each workload is measured.  [default: judge_pairs of the "
    "file]",
)
@click.option(
    "--again",
    is_flag=True,
    help="With --configuration: measure again; what was measured stays in the store.",
)
@dry_run_option(dry_run.measuring_as(_asked))
def command(against: str, more: int | None, configuration: str | None, **options: Any) -> None:
    """Compare the best candidates with the default.

    The verdict is a gain if P99 is lower and no guardrail of the file is broken. "Gain, but" names
    what the rounds can't exclude. "No gain: it costs" names what is worse. The exit code is 3 when
    no verdict is a gain.

    --more goes on with further pairs of the same campaign where the verdict is undecided. The new
    verdict replaces the old one. All looks together hold at the level, since a part of the error
    rate is kept for them.

    --configuration compares the winner, or a baseline, with the default in all workloads of the
    file. The exit code is 3 if it is worse in one workload, or a gain in none.
    """
    if more is not None and (against != "default" or configuration is not None):
        raise UsageError(
            "--more goes on with the verdict's own two sides: leave --default and --configuration "
            "out"
        )
    if configuration is not None:
        _across(against, configuration, **options)
        return
    options = without_configuration(**options)
    from intop.campaign.verify.judge import judged_latencies, verify, verify_more
    from intop.campaign.verify.view import verdict as text

    def stage(task: "Task") -> "Verdict":
        return verify(task, against) if more is None else verify_more(task, more)

    exit_by(run_stage(stage, text, drawn=judged_latencies, **options))


def without_configuration(
    *, origin: str | None, rounds: int | None, again: bool, **options: Any
) -> dict[str, Any]:
    """The other options. Raises UsageError for those that belong to --configuration."""
    if origin or rounds or again:
        raise UsageError("--from, --rounds and --again belong to --configuration")
    return options


def asked_workloads(
    against: str, configuration: str, **options: Any
) -> "tuple[tuple[Workload, ...], dict[str, Any]]":
    """The workloads to measure in, and the options as for the subjects that it is measured for.

    Raises UsageError for what can't be asked for.
    """
    from intop.run.context import chosen_workloads

    if against != "default":
        raise UsageError(
            "--default says what a verdict is against, and --configuration measures against the "
            "same: leave --default out"
        )
    study, origin, named = study_of(options["config"]), options.pop("origin"), options["workload"]
    workloads = chosen_workloads(study, named) if named else tuple(study.workloads.values())
    if configuration != "winner":
        if origin is not None:
            raise UsageError(f"--from says whose winner, and {configuration} is nobody's")
        # Trials are stored with one of the workloads.
        origin = (named and workloads[0].name) or chosen_workloads(study, None)[0].name
    return workloads, options | {"workload": origin}


def _across(
    against: str, configuration: str, *, rounds: int | None, again: bool, **options: Any
) -> None:
    from intop.campaign.verify.across import AcrossRequest, AcrossWorkloads
    from intop.campaign.verify.across_view import across_section
    from intop.run.executor import execute

    workloads, options = asked_workloads(against, configuration, **options)
    request = AcrossRequest(
        workloads=workloads, configuration=configuration, rounds=rounds, again=again
    )
    results = run_stage(
        lambda task: execute(AcrossWorkloads(task, request)),
        across_section,
        choose=None if configuration == "winner" else beginning(),
        **options,
    )
    if not all(across.is_gain for across in results.values()):
        sys.exit(NO_GAIN)
