"""report: one HTML file of all that a campaign has found."""

from pathlib import Path

import click

from intop.cli.options import stage_options, subcommand
from intop.cli.output import output_folder, print_result, say, write_page
from intop.cli.running import stored_context


@subcommand(
    "report",
    "intop report                                   writes intop-report.html",
    "intop report --arch x86 --output x86.html",
    "intop report --csv tables                      also all its tables, a file each",
    "intop report --json > report.json              all that it shows, and no file",
)
@stage_options
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("intop-report.html"),
    show_default=True,
    help="The file to write.",
)
@click.option(
    "--csv",
    "tables",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also write all tables, into files of this folder.",
)
def command(
    config: Path | None,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    output: Path,
    tables: Path | None,
) -> None:
    """Write one HTML file with all that the latest campaign has found, and what shows it.

    The file needs nothing else: it can be sent, printed, and read on a phone. A campaign that is
    not finished is reported as far as it has come. Reads the store only, and touches no host. With
    --json the same is printed for programs, and no page is written.
    """
    from intop.inspect.report import gather
    from intop.report.machine import to_json
    from intop.report.page.sections import document

    with stored_context(config, arch, workload) as context:
        found = gather(context)
    page = document(found)
    if tables is not None:
        from intop.report.document.csv_tables import write_tables

        written = write_tables(output_folder(tables, "--csv"), page)
        say(f"written: {len(written)} tables in {tables}")
    if as_json:
        print_result(to_json(found))
        return
    from intop.report.document.html import html

    text = html(page)
    write_page(output, text)
    say(f"written: {output} ({len(text.encode()) / 1000:.0f} kB)")
