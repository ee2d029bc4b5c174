"""tune: all stages after one another."""

import sys
from typing import TYPE_CHECKING, Any

import click

from intop.cli import dry_run
from intop.cli.options import (
    dry_run_option,
    fit_on_option,
    force_option,
    new_option,
    only_option,
    stage_options,
    subcommand,
)
from intop.cli.output import print_result, say
from intop.cli.running import connect_unless_workers, exit_by, stored_context
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.run.context import Context, Task
    from intop.stages.tune import Tuned
    from intop.store import Campaign, Store


@subcommand("tune", "intop tune", "intop tune --new", "intop tune --arch x86 --resume --json")
@stage_options
@only_option
@new_option
@force_option
@fit_on_option
@click.option("--resume", is_flag=True, help="Go on with the latest campaign.")
@dry_run_option(dry_run.of_tune)
def command(new: bool, resume: bool, as_json: bool, **options: Any) -> None:
    """Run all stages, from screening to the fewest keys that keep a gain. Resumable.

    In the end what was tuned is compared.

    Where the store has a campaign of this study already, it asks whether to go on with that one.
    """
    from intop.report.document.text import show
    from intop.report.explain import explanation, smallest
    from intop.report.machine import to_json
    from intop.report.refine import refined
    from intop.report.screen import ranking
    from intop.report.search import search
    from intop.report.train import errors
    from intop.report.verdict import sentence, verdict
    from intop.stages.tune import tune as stage

    if new and resume:
        raise UsageError("--new and --resume exclude each other")

    def done(tuned: "Tuned") -> None:
        if not as_json:
            title = f"{tuned.arch} {tuned.workload}"
            show(
                ranking(title, tuned.ranking),
                *([refined(title, tuned.refined)] if tuned.refined else []),
                errors(title, tuned.training),
                search(title, tuned.search),
                verdict(title, tuned.verdict),
            )
            if tuned.explanation is not None:
                show(explanation(title, tuned.explanation))

    def choose(store: "Store", study: "Study") -> "Campaign":
        return _campaign_to_tune(store, study, new=new, resume=resume)

    with stored_context(**options, choose=choose, connect=connect_unless_workers) as context:
        found = stage(context, done, lambda task, name: _say_what_is_left(context, task, name))
        if as_json:
            print_result(to_json(found))
        else:
            print_result("Verdicts")
            for one in found:
                print_result(f"  {one.arch} {one.workload}: {sentence(one.verdict)}")
                if one.explanation is not None:
                    print_result(f"    {smallest(one.explanation)}")
            print_result("")
            _show_comparison(context)
    exit_by({f"{one.arch} {one.workload}": one.verdict for one in found})


def _say_what_is_left(context: "Context", task: "Task", stage: str) -> None:
    """How long all that is left of the whole run takes, not of this stage alone."""
    from intop.inspect.status import campaign_status
    from intop.report.words import duration

    left_s = campaign_status(context.study, context.store, context.archs, context.workloads).left_s
    left = "" if left_s is None else f"; the whole run takes about {duration(left_s)} from here"
    context.progress.say(f"{task.title}: {stage} begins{left}")


def _show_comparison(context: "Context") -> None:
    """What compare would say, where there are two architectures."""
    from intop.errors import IncomparableError
    from intop.inspect.compare import compare as stage
    from intop.report.comparison import sections
    from intop.report.document.text import show

    if len(context.archs) < 2:
        return
    try:
        show(*sections(stage(context, *context.archs)))
    except IncomparableError as error:
        say(str(error))


def _campaign_to_tune(store: "Store", study: "Study", *, new: bool, resume: bool) -> "Campaign":
    """The campaign that a user wants. Raises UsageError when nobody is there to ask."""
    from intop.run import campaigns
    from intop.store import shown

    latest = store.latest(study.name)
    if latest is None or (new and not store.is_empty(latest)):
        return campaigns.new(store, study)
    if resume or store.is_empty(latest):
        return latest
    state = "is finished" if latest.finished_at else "is not finished"
    store_name, since = shown(study.store), latest.started_at
    told = f"{store_name} has a campaign of {study.name} from {since}, which {state}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{told}. Say --resume to go on with it, or --new to start anew beside it")
    say(told + ".")
    answer = click.prompt(
        "Resume it, start anew beside it, or quit?",
        type=click.Choice(["resume", "new", "quit"]),
        default="resume",
        err=True,
    )
    if answer == "quit":
        sys.exit(0)
    return latest if answer == "resume" else campaigns.new(store, study)
