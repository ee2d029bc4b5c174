"""compare: two architectures side by side."""

import os
from pathlib import Path

import click

from intop.cli.options import (
    config_option,
    figures_options,
    json_option,
    subcommand,
    workload_option,
)
from intop.cli.output import output_folder, print_result, say, say_figures, show_result, write_page
from intop.cli.running import stored_context
from intop.errors import UsageError
from intop.report.plain import inert


@subcommand(
    "compare",
    "intop compare x86 arm",
    "intop compare x86 arm --workload slt --json",
    "intop compare x86 arm --markdown > comparison.md",
    "intop compare x86 arm --markdown --output compare.md --figures images",
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
def command(
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
    from intop.inspect.compare import compare as stage
    from intop.report.comparison import sections
    from intop.report.comparison_page import page

    if one == other:
        raise UsageError(f"{one} can't be compared with itself: intop compare x86 arm")
    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other")
    if output is not None and not as_markdown:
        raise UsageError("--output is for the page of --markdown: say --markdown, too")
    with stored_context(config, None, workload) as context:
        folder = output_folder(figures, "--figures") if figures else None
        found = stage(context, one, other, force=force)
    drawn = say_figures(folder, figure_format, {f"{one} and {other}": found}) if folder else {}
    if not as_markdown:
        show_result(found, sections, as_json=as_json)
        return
    base = Path.cwd() if output is None else output.parent
    text = page(found, {os.path.relpath(path, base): title for path, title in drawn.items()})
    if output is None:
        print_result(text)
        return
    write_page(output, f"{inert(text)}\n")
    say(f"written: {output}")
