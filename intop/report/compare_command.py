"""compare: two sides of a store, or one side over time."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from intop.command import values
from intop.command.options import (
    config_option,
    figures_options,
    json_option,
    subcommand,
    workload_option,
)
from intop.command.output import (
    output_folder,
    print_result,
    say,
    say_figures,
    show_result,
    write_page,
)
from intop.command.running import stored_context
from intop.errors import UsageError
from intop.words import inert

if TYPE_CHECKING:
    from intop.run.context import Context


@subcommand(
    "compare",
    "intop compare x86 arm",
    "intop compare x86 arm --workload slt --json",
    "intop compare kernel:6.1 kernel:6.12          the latest campaign with each",
    "intop compare campaign:1,x86 campaign:4,x86   before and after",
    "intop compare --over-time x86                 all campaigns of the study",
    "intop compare x86 arm --markdown > comparison.md",
    "intop compare x86 arm --markdown --output compare.md --figures images",
)
@click.argument("sides", nargs=-1, metavar="SIDE...", shell_complete=values.archs)
@config_option
@workload_option
@json_option
@click.option(
    "--over-time",
    is_flag=True,
    help="All campaigns of the study in turn, for one SIDE or all.",
)
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
def command(
    sides: tuple[str, ...],
    config: Path | None,
    workload: str | None,
    as_json: bool,
    over_time: bool,
    as_markdown: bool,
    output: Path | None,
    force: bool,
    figures: Path | None,
) -> None:
    """Compare architectures, campaigns or kernels.

    Only measured trials are compared. A SIDE is an architecture (x86, arm), a campaign by its
    number (campaign:3), or a value of any condition of the trials (kernel:6.1, nginx:1.22,
    cpu:EPYC). With commas it must be all of them: campaign:3,x86. It belongs to the study's latest
    campaign that has such trials. study:NAME takes another study of the same store.

    Rate, script, connections, link and all else of the load must be equal. Otherwise nothing is
    compared (exit code 1), unless --force is given, and then the result says so. All other
    differences are named. A workload that only one side has measured is named with the command that
    measures it.

    --over-time shows the latency of default and winner campaign by campaign, and what changed from
    one to the next.
    """
    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other")
    if len(sides) == 2 and sides[0] == sides[1]:
        raise UsageError(f"{sides[0]} can't be compared with itself: name two sides")
    if output is not None and not as_markdown:
        raise UsageError("--output is for the page of --markdown: say --markdown, too")
    if over_time:
        if len(sides) > 1:
            raise UsageError(
                "--over-time is about one side, or all. Run: intop compare --over-time x86"
            )
        if as_markdown or force:
            raise UsageError("--over-time has neither --markdown nor --force")
    elif len(sides) != 2:
        raise UsageError(
            f"two sides are compared, not {len(sides)}. Run such as: intop compare x86 arm, or "
            "intop compare campaign:1 campaign:2"
        )
    with stored_context(config, None, workload) as context:
        folder = output_folder(figures, "--figures") if figures else None
        if over_time:
            _show_over_time(context, "".join(sides), folder, as_json=as_json)
            return
        _show_sides(
            context,
            *sides,
            force=force,
            as_json=as_json,
            as_markdown=as_markdown,
            output=output,
            folder=folder,
        )


def _show_sides(
    context: "Context",
    first: str,
    second: str,
    *,
    force: bool,
    as_json: bool,
    as_markdown: bool,
    output: Path | None,
    folder: Path | None,
) -> None:
    from intop.report.compare import compare as stage
    from intop.report.compare_page import page
    from intop.report.compare_view import sections

    comparison = stage(context, first, second, force=force)
    drawn = say_figures(folder, {f"{first} and {second}": comparison}) if folder else {}
    if not as_markdown:
        show_result(comparison, sections, as_json=as_json)
        return
    base = Path.cwd() if output is None else output.parent
    text = page(comparison, {os.path.relpath(path, base): title for path, title in drawn.items()})
    if output is None:
        print_result(text)
        return
    write_page(output, f"{inert(text)}\n")
    say(f"written: {output}")


def _show_over_time(context: "Context", side: str, folder: Path | None, *, as_json: bool) -> None:
    from intop.report import compare_view as report
    from intop.report.history import histories

    results = histories(context, side)
    if folder:
        say_figures(folder, {history.title: history for history in results})
    show_result(results, report.histories, as_json=as_json)
