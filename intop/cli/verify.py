"""verify: a verdict by measurement."""

from typing import TYPE_CHECKING, Any

import click

from intop.cli import dry_run, values
from intop.cli.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    subcommand,
)
from intop.cli.running import exit_by, run_stage
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.rate_sweep import RateSweep
    from intop.domain.verdict import Verdict
    from intop.run.context import Task


@subcommand(
    "verify",
    "intop verify",
    "intop verify --arch x86 --workload slt",
    "intop verify --default ubuntu-18.04",
    "intop verify --rates 0.5,1,1.5          and then the winner at other rates",
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
    "--rates",
    metavar="TIMES,...",
    help="Then measure the winner and the default at these multiples of the workload's rate.",
)
@click.option(
    "--rate-rounds",
    type=click.IntRange(min=4),
    help="How often each rate is measured.  [default: half of judge_pairs, at least 4]",
)
@dry_run_option(dry_run.of_verify)
def command(against: str, rates: str | None, rate_rounds: int | None, **options: Any) -> None:
    """Measure the finalists against the default, and give a verdict.

    It is a gain if P99 is lower and nothing else is worse than [guardrails] of the file accepts;
    "gain, but" says what the rounds can't exclude, and "no gain: it costs" what is worse. The exit
    code is 3 when no verdict is a gain.
    """
    from intop.report.rates import rates as rates_text
    from intop.report.verdict import verdict as text
    from intop.stages.rates import at_rates
    from intop.stages.verify import judged_latencies
    from intop.stages.verify import verify as stage

    times = asked_times(rates, rate_rounds)
    sweeps: dict[str, RateSweep] = {}

    def measured(task: "Task") -> "Verdict":
        found = stage(task, against)
        if times:
            sweeps[f"{task.title} at other rates"] = at_rates(task, found, times, rate_rounds)
        return found

    exit_by(
        run_stage(
            measured,
            text,
            drawn=judged_latencies,
            also=(lambda _: sweeps, lambda title, found: rates_text(_subject(title), found)),
            **options,
        )
    )


def asked_times(rates: str | None, rounds: int | None) -> tuple[float, ...]:
    """The multiples of --rates, none without it. Raises UsageError."""
    from intop.domain.rate_sweep import times_of

    if rates is None:
        if rounds is not None:
            raise UsageError("--rate-rounds belongs to --rates")
        return ()
    try:
        return times_of(rates)
    except ValueError as error:
        raise UsageError(f"--rates: {error}") from error


def _subject(title: str) -> str:
    return title.removesuffix(" at other rates")
