"""tune: all stages after one another."""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.command import dry_run
from intop.command.options import (
    dry_run_option,
    fit_on_option,
    force_option,
    new_option,
    only_option,
    stage_options,
    subcommand,
)
from intop.command.output import print_result, say
from intop.command.running import connect_unless_workers, exit_by, stored_context
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.campaign.tune import Tuned
    from intop.config.study import Study
    from intop.run.context import Context, Task
    from intop.store import Campaign, Store


def _asked(new: bool, resume: bool, **options: Any) -> dry_run.Asked:
    """Return all stages of tune; where tune would ask, the latest campaign goes on."""
    from intop.inspect.dry_run import of_tune

    _check_new(new=new, resume=resume)
    return dry_run.Asked(stages=of_tune(), options=options | {"new": new})


def _check_new(*, new: bool, resume: bool) -> None:
    if new and resume:
        raise UsageError("--new and --resume exclude each other")


@subcommand("tune", "intop tune", "intop tune --new", "intop tune --arch x86 --resume --json")
@stage_options
@only_option
@new_option
@force_option
@fit_on_option
@click.option("--resume", is_flag=True, help="Go on with the latest campaign.")
@dry_run_option(dry_run.measuring_as(_asked))
def command(new: bool, resume: bool, as_json: bool, **options: Any) -> None:
    """Run all stages, from screening to the verdict.

    It ends with the verdicts on one screen. Afterwards, `intop report` and the command of each
    stage show the details.

    An interrupted tune goes on where it stopped. Where the store has a campaign of this study, tune
    asks whether to go on with it.
    """
    from intop.campaign.tune import tune as stage
    from intop.document.machine import to_json
    from intop.document.text import show
    from intop.report.outcome_view import outcome
    from intop.sentences import verdict_sentence

    _check_new(new=new, resume=resume)

    def choose(store: "Store", study: "Study") -> "Campaign":
        return _campaign_to_tune(store, study, new=new, resume=resume)

    with stored_context(**options, choose=choose, connect=connect_unless_workers) as context:

        def done(tuned: "Tuned") -> None:
            sentence = verdict_sentence(tuned.verdict)
            context.progress.say(f"{tuned.arch} {tuned.workload}: {sentence}")

        results = stage(context, done, lambda task, name: _say_what_is_left(context, task, name))
        if as_json:
            print_result(to_json(results))
        else:
            show(*outcome(results))
    exit_by({f"{tuned.arch} {tuned.workload}": tuned.verdict for tuned in results})


def _say_what_is_left(context: "Context", task: "Task", stage: str) -> None:
    """Say how long the rest of the whole run takes, not only of this stage."""
    from intop.inspect.status import campaign_status
    from intop.words import duration

    left_s = campaign_status(context.study, context.store, context.archs, context.workloads).left_s
    left = "" if left_s is None else f"; the whole run takes about {duration(left_s)} from here"
    context.progress.say(f"{task.title}: {stage} begins{left}")


def _campaign_to_tune(store: "Store", study: "Study", *, new: bool, resume: bool) -> "Campaign":
    """Return the campaign that a user wants. Raises UsageError when nobody can be asked."""
    from intop.run import campaigns
    from intop.store import shown

    latest = store.latest(study.name)
    if latest is None or (new and not store.is_empty(latest)):
        return campaigns.new(store, study)
    if resume or store.is_empty(latest):
        _say_if_finished(latest, study)
        return latest
    end = "is finished" if latest.finished_at else "is not finished"
    store_name, since = shown(study.store), latest.started_at
    text = f"{store_name} has a campaign of {study.name} from {since}, which {end}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{text}. Say --resume to go on with it, or --new to start anew beside it")
    say(f"{text}.")
    answer = click.prompt(
        "Resume it, start anew beside it, or quit?",
        type=click.Choice(["resume", "new", "quit"]),
        default="resume",
        err=True,
    )
    if answer == "quit":
        sys.exit(0)
    if answer == "new":
        return campaigns.new(store, study)
    _say_if_finished(latest, study)
    return latest


def _say_if_finished(campaign: "Campaign", study: "Study") -> None:
    """Say that a finished campaign measures only what it lacks, and whether the file is newer."""
    if campaign.finished_at is None:
        return
    line = f"campaign {campaign.id} is finished: intop measures only stages that it has not yet"
    if Path(study.path).stat().st_mtime > datetime.fromisoformat(campaign.finished_at).timestamp():
        line += f". {study.path} was changed since. To use all of it, run: intop tune --new"
    say(line)
