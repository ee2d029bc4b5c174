"""The command line: parse, wire, call, print, exit code. Nothing is decided here.

Heavy libraries are imported in the commands that need them, so that `--help` is instant.
"""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop import __version__
from intop.cli import (
    apply,
    completion,
    dry_run,
    explain,
    export,
    hosts,
    lab,
    models,
    plan,
    refine,
    report,
    table,
    transfer,
    values,
)
from intop.cli.exit_codes import INTERRUPTED
from intop.cli.options import (
    Group,
    arch_option,
    config_option,
    dry_run_option,
    examples,
    figures_options,
    force_option,
    json_option,
    models_option,
    new_option,
    output_folder,
    print_result,
    samples_option,
    say,
    say_figures,
    say_stopped,
    show_result,
    stage_options,
    study_of,
    workload_option,
)
from intop.cli.running import connect_to, exit_by, opened_context, run_stage, stored_context
from intop.errors import IntopError, UsageError
from intop.report.plain import inert

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.pipeline.context import Context
    from intop.pipeline.tuning import Tuned
    from intop.store import Campaign, Store


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "intop lab up && intop tune && intop lab down    the whole study on this machine",
        "intop doctor -c cluster.toml                    can my own clusters be measured?",
        "intop collect --arch arm                        one stage, one architecture",
        "intop compare x86 arm",
    )
    + "\n\nExit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 no significant gain, "
    "4 drift of what was applied, 130 interrupted.",
)
@click.version_option(__version__, prog_name="intop")
def cli() -> None:
    """Tune the Linux kernel parameters of Nginx clusters, and prove the result by measurement.

    The stages screen, collect, refine, train, search, verify and explain can be run one by one;
    tune runs them all. Each can be interrupted and picks up where it stopped. Hosts are always
    given back as they were; only apply leaves values there.
    """


cli.add_command(completion.command)
cli.add_command(lab.group)
cli.add_command(apply.command)
cli.add_command(hosts.status)
cli.add_command(hosts.rollback)
cli.add_command(models.command)
cli.add_command(refine.command)
cli.add_command(explain.command)
cli.add_command(plan.command)
cli.add_command(export.command)
cli.add_command(transfer.command)
cli.add_command(report.command)


# -- the stages ----------------------------------------------------------------------------------


@cli.command(
    epilog=examples("intop doctor", "intop doctor --arch arm --json", "intop doctor --write-test")
)
@config_option
@arch_option
@json_option
@click.option(
    "--write-test",
    "writes",
    is_flag=True,
    help="Also write keys their own values, to see whether the kernel takes them.",
)
@dry_run_option(dry_run.of_doctor)
def doctor(config: Path | None, arch: str | None, as_json: bool, writes: bool) -> None:
    """Check that every host can be reached, read and measured.

    Changes nothing: what --write-test writes are the keys' own values.
    """
    from intop.pipeline.context import chosen_archs, clusters_of, taking_part
    from intop.pipeline.doctor import examine
    from intop.report import doctor as report

    study = study_of(config)
    archs = chosen_archs(study, arch)
    if arch is None:
        archs = taking_part(study, archs, lambda _: False, say)
    connect = connect_to(study, archs)
    found = [
        one
        for name in archs
        for one in examine(clusters_of(study, name), study, connect, writes=writes)
    ]
    show_result(found, lambda each: report.examined(*each), as_json=as_json)
    if any(one.problems for one in found):
        sys.exit(1)


@cli.command(
    epilog=examples("intop pilot", "intop pilot --arch x86 --workload slt", "intop pilot --json")
)
@stage_options
@new_option
@force_option
@dry_run_option(dry_run.of_stages("pilot"))
def pilot(new: bool, **options: Any) -> None:
    """Choose how long trials are, by measuring the default in trials of several durations.

    The first stage of a campaign does so by itself where the file has no duration_s. Where it has
    one, that stands, and this says what it is worth.
    """
    from intop.pipeline.pilot import pilot as stage
    from intop.report.pilot import pilot as text

    run_stage(stage, text, begins=True, new=new, **options)


@cli.command(epilog=examples("intop screen", "intop screen --arch x86 --workload slt --samples 60"))
@stage_options
@samples_option
@new_option
@force_option
@figures_options
@dry_run_option(dry_run.of_stages("screen"))
def screen(samples: int | None, new: bool, **options: Any) -> None:
    """Rank all parameters by SGBRT importance and choose the ones to tune (SRP, DRP)."""
    from intop.pipeline.sampling import screen as stage
    from intop.pipeline.sampling import workloads_agree
    from intop.report import ranks, text

    run_stage(
        lambda task: stage(task, samples),
        text.ranking,
        begins=True,
        new=new,
        also=(workloads_agree, ranks.agreement),
        **options,
    )


@cli.command(
    epilog=examples("intop collect", "intop collect --arch arm", "intop collect --samples 20 --new")
)
@stage_options
@samples_option
@new_option
@force_option
@figures_options
@dry_run_option(dry_run.of_stages("collect"))
def collect(samples: int | None, new: bool, **options: Any) -> None:
    """Measure configurations that fill the space of the chosen parameters (SDS, DDS)."""
    from intop.pipeline.sampling import collect as stage
    from intop.report import text

    run_stage(lambda task: stage(task, samples), text.collected, begins=True, new=new, **options)


@cli.command(
    epilog=examples(
        "intop train",
        "intop train --workload dlt --json",
        "intop train --models models",
        "intop train --figures figures",
        "intop train --data trials.csv                              exported trials",
        "intop train --data runs.csv --target p95_ms",
        "intop train --data runs.csv --target p95_ms --ignore worker --failed 1000000",
    )
)
@stage_options
@figures_options
@models_option("Also save the fitted models in this folder.")
@table.table_options
def train(
    data: Path | None,
    models: Path | None,
    config: Path | None,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    figures: Path | None,
    figure_format: str,
    **options: Any,
) -> None:
    """Fit the six model families and report their held-out errors (STM, DTM).

    With --data they are fitted to a table, and nothing is stored: to what somebody measured,
    or to trials that `intop export` wrote, which takes no further option and gives the same errors.
    """
    shown: dict[str, Any] = {"as_json": as_json, "figures": figures, "figure_format": figure_format}
    if data is not None:
        table.train(data, arch=arch, workload=workload, **shown, **options)
        return
    table.without_data(options)
    from intop.pipeline.modelling import train as stage
    from intop.report.components import trained as text

    asked: dict[str, Any] = {"config": config, "arch": arch, "workload": workload}
    run_stage(lambda task: stage(task, models), text, measures=False, **asked, **shown)


@cli.command(
    epilog=examples(
        "intop search",
        "intop search --workload dlt",
        "intop search --models models",
        "intop search --objectives p99,cpu --figures figures",
        "intop search --algorithm annealing",
    )
)
@stage_options
@figures_options
@models_option("Search models saved in this folder, in place of fitting the campaign's.")
@click.option(
    "--algorithm",
    type=click.Choice(["genetic", "annealing", "swarm", "evolution", "random"]),
    default="genetic",
    show_default=True,
    help="How to search; the others are there to be compared with.",
)
@click.option(
    "--objectives",
    metavar="NAME,NAME",
    help="Search for the front of two or three of p99, cpu and throughput, by NSGA-II.",
)
def search(models: Path | None, algorithm: str, objectives: str | None, **options: Any) -> None:
    """Search the models for promising configurations, by a genetic algorithm or another.

    With --objectives none is the best one: what is found is a front, beside the candidates that
    verify measures.
    """
    if objectives is not None:
        _search_front(objectives, models, algorithm, **options)
        return
    from intop.pipeline.modelling import search as stage
    from intop.report import text

    run_stage(lambda task: stage(task, models, algorithm), text.search, measures=False, **options)


def _search_front(objectives: str, models: Path | None, algorithm: str, **options: Any) -> None:
    from intop.pipeline.fronts import chosen_objectives, search_front
    from intop.report.front import tradeoff

    if models is not None:
        raise UsageError("--models has models of P99 only: leave it out with --objectives")
    if algorithm != "genetic":
        raise UsageError(f"--objectives is searched by NSGA-II: leave out --algorithm {algorithm}")
    chosen = chosen_objectives(objectives)
    run_stage(lambda task: search_front(task, chosen), tradeoff, measures=False, **options)


@cli.command(
    epilog=examples(
        "intop verify",
        "intop verify --arch x86 --workload slt",
        "intop verify --default ubuntu-18.04",
        "intop verify --figures figures",
    )
)
@stage_options
@figures_options
@click.option(
    "--default",
    "against",
    default="default",
    shell_complete=values.baselines,
    help="The baseline that stands for the default.  [default: the host's own values]",
)
@dry_run_option(dry_run.of_stages("pick", "judge"))
def verify(against: str, **options: Any) -> None:
    """Measure the finalists against the default, and give a verdict."""
    from intop.pipeline.verifying import judged_latencies
    from intop.pipeline.verifying import verify as stage
    from intop.report.verdict import verdict as text

    exit_by(run_stage(lambda task: stage(task, against), text, drawn=judged_latencies, **options))


@cli.command(
    epilog=examples(
        "intop contest                                       all baselines",
        "intop contest ubuntu-18.04 openeuler-25.09 --rounds 20",
        "intop contest --default ubuntu-18.04                the same trials, judged against that",
        "intop contest --again                               measure anew",
    )
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
@click.option("--again", is_flag=True, help="Measure anew; what was measured stays in the store.")
@force_option
@dry_run_option(dry_run.of_contest)
def contest(
    names: tuple[str, ...], rounds: int | None, reference: str, again: bool, **options: Any
) -> None:
    """Measure published sets of values, such as those of blog posts, against each other.

    The host's own values, all baselines or the named ones, and the tuned configuration once there
    is a verdict, in interleaved rounds. Baselines come with intop, or from the folder that
    [study] baselines names.
    """
    from intop.pipeline.contest import contest as stage
    from intop.report.contest import contest as text

    run_stage(
        lambda task: stage(task, names, rounds=rounds, reference=reference, again=again),
        text,
        begins=True,
        **options,
    )


@cli.command(
    epilog=examples(
        "intop compare x86 arm",
        "intop compare x86 arm --workload slt --json",
        "intop compare x86 arm --markdown > comparison.md",
        "intop compare x86 arm --markdown --output compare.md --figures images",
    )
)
@click.argument("one", type=click.Choice(["x86", "arm"]))
@click.argument("other", type=click.Choice(["x86", "arm"]))
@config_option
@workload_option
@json_option
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print a page in Markdown, with its figures."
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write the page of --markdown to.",
)
@click.option("--force", is_flag=True, help="Compare what was measured under other conditions.")
@figures_options
def compare(
    one: str,
    other: str,
    config: Path | None,
    workload: str | None,
    as_json: bool,
    as_markdown: bool,
    output: Path | None,
    force: bool,
    figures: Path | None,
    figure_format: str,
) -> None:
    """Lay two architectures side by side, from measured trials only.

    Rate, script, connections, link and all else of the load must be equal; where they differ
    nothing is compared (exit code 1), unless by --force, and then the result says so. Other
    kernels, emulation or nginx are named beside the figures.

    A workload that only one side has measured is named with the command that measures it, and
    the others are compared. The exit code is 1 when there is none to compare.
    """
    from intop.pipeline.comparing import compare as stage
    from intop.report import comparison as report
    from intop.report.comparison_page import page

    if one == other:
        raise UsageError(f"{one} can't be compared with itself: intop compare x86 arm")
    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other")
    if output is not None and not as_markdown:
        raise UsageError("--output is for the page of --markdown: say --markdown, too")
    folder = output_folder(figures, "--figures") if figures else None
    with stored_context(config, None, workload) as context:
        found = stage(context, one, other, force=force)
    drawn = say_figures(folder, figure_format, {f"{one} and {other}": found}) if folder else {}
    if not as_markdown:
        show_result(found, lambda one: [report.as_text(one)], as_json=as_json)
        return
    base = Path.cwd() if output is None else output.parent
    text = page(found, {os.path.relpath(path, base): title for path, title in drawn.items()})
    if output is None:
        print_result(text)
        return
    try:
        output.write_text(f"{inert(text)}\n", encoding="utf-8")
    except OSError as error:
        raise IntopError(f"the page can't be written: {error}") from error
    say(f"written: {output}")


@cli.command(
    epilog=examples("intop tune", "intop tune --new", "intop tune --arch x86 --resume --json")
)
@stage_options
@new_option
@force_option
@click.option("--resume", is_flag=True, help="Go on with the latest campaign.")
@dry_run_option(dry_run.of_tune)
def tune(new: bool, resume: bool, as_json: bool, **options: Any) -> None:
    """Run all stages, from screening to the fewest keys that keep a gain. Resumable.

    In the end what was tuned is compared.

    Where the store has a campaign of this study already, it asks whether to go on with that one.
    """
    from intop.pipeline.tuning import tune as stage
    from intop.report import text
    from intop.report.explain import explanation, smallest
    from intop.report.machine import to_json
    from intop.report.refine import refined
    from intop.report.verdict import sentence, verdict

    if new and resume:
        raise UsageError("--new and --resume exclude each other")

    def done(tuned: "Tuned") -> None:
        if not as_json:
            title = f"{tuned.arch} {tuned.workload}"
            text.show(
                text.ranking(title, tuned.ranking),
                *([refined(title, tuned.refined)] if tuned.refined else []),
                text.errors(title, tuned.training),
                text.search(title, tuned.search),
                verdict(title, tuned.verdict),
            )
            if tuned.explanation is not None:
                text.show(explanation(title, tuned.explanation))

    def choose(store: "Store", study: "Study") -> "Campaign":
        return _campaign_to_tune(store, study, new=new, resume=resume)

    with opened_context(**options, choose=choose) as context:
        found = stage(context, done)
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
    exit_by([one.verdict for one in found])


# -- wiring --------------------------------------------------------------------------------------


def _show_comparison(context: "Context") -> None:
    """What compare would say, where there are two architectures."""
    from intop.errors import IncomparableError
    from intop.pipeline.comparing import compare as stage
    from intop.report import comparison as report
    from intop.report.text import show

    if len(context.archs) < 2:
        return
    try:
        show(report.as_text(stage(context, *context.archs)))
    except IncomparableError as error:
        say(str(error))


def _campaign_to_tune(store: "Store", study: "Study", *, new: bool, resume: bool) -> "Campaign":
    """The campaign that a user wants. Raises UsageError when nobody is there to ask."""
    from intop.pipeline import campaigns

    latest = store.latest(study.name)
    if latest is None or (new and not store.is_empty(latest)):
        return campaigns.new(store, study)
    if resume or store.is_empty(latest):
        return latest
    state = "is finished" if latest.finished_at else "is not finished"
    told = f"{study.store} has a campaign of {study.name} from {latest.started_at}, which {state}"
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


class _Stop:
    """The first signal stops the work, so that the hosts are given back; later ones wait for it."""

    def __init__(self) -> None:
        self._stopping = False

    def __call__(self, _signal: int, _frame: object) -> None:
        if not self._stopping:
            self._stopping = True
            raise KeyboardInterrupt
        say("intop: giving the hosts back; this takes some seconds")


def main() -> None:
    """The entry point: errors become one message and an exit code."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    stop = _Stop()
    for name in signals:
        signal.signal(name, stop)
    try:
        # Without click's own handling; the code of --help and --version comes back as a value.
        code = cli(prog_name=completion.PROGRAM, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except IntopError as error:
        say(f"intop: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever read the results has heard enough, such as head. Nothing can be told there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        say_stopped(
            ". The hosts are as they were found, and everything that was measured "
            "is stored: the same command (tune with --resume) goes on from here"
        )
        sys.exit(INTERRUPTED)
    finally:
        # All is given back by now: what is still to end are our own idle processes.
        for name in signals:
            signal.signal(name, signal.SIG_DFL)
