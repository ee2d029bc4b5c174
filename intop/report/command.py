"""report: one HTML file of all that a campaign has found, or of what all verdicts say."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from intop.command.options import stage_options, study_of, subcommand
from intop.command.output import output_folder, print_result, say, write_page
from intop.command.running import stored_context
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.document.model import Document


@subcommand(
    "report",
    "intop report                                   writes intop-report.html",
    "intop report --arch x86 --output x86.html",
    "intop report --serve                           a live page of a campaign under way",
    "intop report --csv tables                      also all its tables, a file each",
    "intop report --json > report.json              all that it shows, and no file",
    "intop report --advice                          writes intop-advice.html",
    "intop report --advice --store a.db --store b.db --output advice.md",
)
@stage_options
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write: Markdown where its name ends in .md, else HTML.  "
    "[default: intop-report.html, or intop-advice.html]",
)
@click.option(
    "--csv",
    "tables",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also write all tables, into files of this folder.",
)
@click.option(
    "--advice",
    is_flag=True,
    help="What all verdicts of the store say of each key, by situation, in place of the report.",
)
@click.option(
    "--store",
    "stores",
    multiple=True,
    metavar="STORE",
    help="A store for --advice in place of the study's (a file or a URL). May be repeated.",
)
@click.option(
    "--serve",
    is_flag=True,
    help="Serve a live page of the campaign on this machine, in place of the report.",
)
@click.option(
    "--port",
    type=click.IntRange(min=1, max=65535),
    default=8642,
    show_default=True,
    help="The port of --serve.",
)
def command(
    config: Path | None,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    output: Path | None,
    tables: Path | None,
    advice: bool,
    stores: tuple[str, ...],
    serve: bool,
    port: int,
) -> None:
    """Write one HTML page of what a campaign has found.

    The file needs nothing else: you can send it, print it, and read it on a phone. A campaign that
    is not finished is reported as far as it has come. Only the store is read, and no host is
    touched. With --json the same is printed for programs, and no page is written.

    --serve shows progress, trials and verdicts as they come in, on a page that refreshes itself.
    Only this machine can see it.

    --advice covers all verdicts, explanations and contests of a store: which parameter helped,
    which harmed, where and how often, with links to the trials.
    """
    result: object
    if serve:
        if workload or as_json or output or tables or advice or stores:
            raise UsageError("--serve takes --config, --arch and --port only")
        _serve(study_of(config), arch, port)
        return
    if advice:
        from intop.report.advice_page import document as advice_page
        from intop.report.gathered_advice import gather_advice

        advised = gather_advice(stores or (study_of(config).store,), arch, workload)
        result, page = advised, advice_page(advised)
    else:
        if stores:
            raise UsageError("--store is for --advice; a report is of the study's store")
        from intop.report.gather import gather
        from intop.report.page import document as report_page

        with stored_context(config, arch, workload) as context:
            reported = gather(context)
        result, page = reported, report_page(reported)
    if tables is not None:
        from intop.document.csv_tables import write_tables

        written = write_tables(output_folder(tables, "--csv"), page)
        say(f"written: {len(written)} tables in {tables}")
    if as_json:
        from intop.document.machine import to_json

        print_result(to_json(result))
        return
    _write(page, output or Path("intop-advice.html" if advice else "intop-report.html"))


def _serve(study: "Study", arch: str | None, port: int) -> None:
    """Serve the live page until Ctrl-C."""
    from intop.report.live import LivePage, serve

    page = LivePage(study=study, arch=arch, port=port)
    say(f"live at {page.url} until Ctrl-C")
    with suppress(KeyboardInterrupt):
        serve(page)


def _write(page: "Document", output: Path) -> None:
    """Write a page in the form of the file's name."""
    if output.suffix.lower() == ".md":
        from intop.document.markdown import as_page

        text = as_page(page)
    else:
        from intop.document.html import html

        text = html(page)
    write_page(output, text)
    say(f"written: {output} ({len(text.encode()) / 1000:.0f} kB)")
