"""transfer: what one architecture's measurements are worth on another."""

from pathlib import Path
from typing import Any

import click

from intop.command import dry_run
from intop.command.options import (
    config_option,
    dry_run_option,
    fit_on_option,
    json_option,
    subcommand,
    workload_option,
)
from intop.command.output import say, show_result
from intop.command.running import connect_to, connect_to_none, stored_context
from intop.errors import ResultMissingError, UsageError


def _asked(first: str, second: str, no_measure: bool, **options: Any) -> dry_run.Asked:
    _check_two(first, second)
    if no_measure:
        raise UsageError("--no-measure writes nothing to any host: leave --dry-run out")
    return dry_run.Asked(stages=("transfer",), options=options, archs=(first, second))


def _check_two(first: str, second: str) -> None:
    """Raises UsageError where both are the same architecture."""
    if first == second:
        raise UsageError(f"{first} has nothing to transfer to itself: intop transfer x86 arm")


@subcommand(
    "transfer",
    "intop transfer x86 arm",
    "intop transfer x86 arm --workload slt --rounds 20",
    "intop transfer x86 arm --no-measure --json",
    "intop transfer x86 arm --again                 measure again",
)
@click.argument("first", type=click.Choice(["x86", "arm"]))
@click.argument("second", type=click.Choice(["x86", "arm"]))
@config_option
@workload_option
@json_option
@fit_on_option
@click.option("--no-measure", is_flag=True, help="Only what stored trials say; touches no host.")
@click.option(
    "--rounds",
    type=click.IntRange(min=2),
    help="How often each configuration is measured.  [default: judge_pairs of the file]",
)
@click.option("--again", is_flag=True, help="Measure again; what was measured stays in the store.")
@dry_run_option(dry_run.measuring_as(_asked))
def command(
    first: str,
    second: str,
    config: Path | None,
    workload: str | None,
    as_json: bool,
    no_measure: bool,
    rounds: int | None,
    again: bool,
) -> None:
    """Use one architecture's measurements on another.

    First it says how many measurements the other's trials save, by the models of stored trials.
    Then it measures on each architecture, in interleaved rounds: the default, its own winner, the
    other's winner, and a compromise that the models of both find good.
    """
    from intop.experiment.transfer.stage import transfer, transfer_sections
    from intop.run.context import chosen_archs

    _check_two(first, second)
    if no_measure and (again or rounds is not None):
        raise UsageError("--no-measure goes with neither --again nor --rounds")
    results = {}
    missing: list[str] = []
    connect = connect_to_none if no_measure else connect_to
    with stored_context(config, None, workload, connect=connect, writes=True) as context:
        for arch in (first, second):
            chosen_archs(context.study, arch)
        for chosen in context.workloads:
            try:
                results[chosen.name] = transfer(
                    context,
                    (first, second),
                    chosen,
                    measure=not no_measure,
                    rounds=rounds,
                    again=again,
                )
            except ResultMissingError as error:
                missing.append(str(error))
    if not results:
        raise ResultMissingError("\n".join(missing))
    show_result(
        results,
        lambda each: (part for result in each.values() for part in transfer_sections(result)),
        as_json=as_json,
    )
    for line in missing:
        say(line)
