"""`intop store`: stores themselves, whatever study they are of."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from intop.command.options import Group, config_option, examples, json_option, study_of
from intop.command.output import interruptible, say, show_result
from intop.errors import ResultMissingError, UsageError

if TYPE_CHECKING:
    from intop.store import Store

STORE = "STORE is a file, or a URL such as postgresql://user@host/name. Default: the study's."


@click.group(
    "store",
    cls=Group,
    epilog=examples(
        "intop store check",
        "intop store copy intop.db postgresql://me@db/intop",
        "intop store vacuum",
    ),
)
def group() -> None:
    """Copy, check and shrink stores of campaigns."""


@group.command(
    epilog=examples(
        "intop store copy intop.db postgresql://me@db.example/intop     all campaigns",
        "intop store copy postgresql://me@db.example/intop home.db --campaign 7",
    )
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--campaign",
    "numbers",
    type=int,
    multiple=True,
    metavar="N",
    help="Only this campaign of FROM. May be given several times.",
)
@json_option
def copy(source: str, target: str, numbers: tuple[int, ...], as_json: bool) -> None:
    """Copy campaigns from one store into another.

    Stores are files or URLs, SQLite or PostgreSQL. TO is created where it is missing. A campaign is
    copied whole or not at all, read back and compared. Others may measure meanwhile. An equal
    campaign is left alone, so the same command goes on where it stopped. A campaign that TO has in
    an earlier state is refused. A copied campaign is the latest of its study in TO.
    """
    from intop.document.progress import progress
    from intop.inspect import store_view as report
    from intop.store import opened
    from intop.store.copying import copy_campaign
    from intop.store.engine import shown

    if source == target:
        raise UsageError("FROM and TO are the same store")
    copies = []
    with interruptible("campaigns that were not finished were not copied"), _read(source) as there:
        campaigns = there.campaigns()
        unknown = sorted(set(numbers) - {campaign.id for campaign in campaigns})
        if unknown:
            raise UsageError(f"{shown(source)} has no campaign {', '.join(map(str, unknown))}")
        with opened(target, say) as here, progress() as bar:
            for campaign in campaigns:
                if numbers and campaign.id not in numbers:
                    continue
                title = f"campaign {campaign.id} ({campaign.study})"
                begin = partial(bar.begin, title)
                copies.append(copy_campaign(there, here, campaign, begin=begin, step=bar.step))
                bar.end()
    show_result(copies, report.copies, as_json=as_json)


@group.command(epilog=examples("intop store check", "intop store check old.db --json"))
@click.argument("store", required=False)
@config_option
@json_option
def check(store: str | None, config: Path | None, as_json: bool) -> None:
    """Check everything in a store. Changes nothing.

    It reads SQLite's pages, rows that belong to none, and every plan, trial, histogram and result.
    The exit code is 1 when there is a problem.
    """
    from intop.document.progress import progress
    from intop.inspect import store_view as report
    from intop.store.engine import shown
    from intop.store.upkeep import check as checked

    url = study_of(config).store if store is None else store
    with interruptible("nothing was changed"), _read(url) as opened, progress() as bar:
        result = checked(
            opened, shown(url), begin=lambda total: bar.begin("trials", total), step=bar.step
        )
        bar.end()
    show_result(result, report.check, as_json=as_json)
    if result.problems:
        sys.exit(1)


@group.command(epilog=examples("intop store vacuum", "intop store vacuum postgresql://me@db/intop"))
@click.argument("store", required=False)
@config_option
@json_option
def vacuum(store: str | None, config: Path | None, as_json: bool) -> None:
    """Free the space that a store no longer needs.

    SQLite writes its file again, which takes as much free space for a moment, and no other intop
    may use the store. PostgreSQL does it while others work.
    """
    from intop.inspect import store_view as report
    from intop.store import is_begun, opened
    from intop.store.upkeep import vacuum as vacuumed

    url = study_of(config).store if store is None else store
    if not is_begun(url):
        raise _missing(url)
    with interruptible("the store is as it was"), opened(url, say) as opened_store:
        result = vacuumed(opened_store, url)
    show_result(result, report.vacuumed, as_json=as_json)


@contextmanager
def _read(url: str) -> "Iterator[Store]":
    """Open a store to read. Raises ResultMissingError where there is none."""
    from intop.store import opened_to_read

    with opened_to_read(url, say) as store:
        if store is None:
            raise _missing(url)
        yield store


def _missing(url: str) -> ResultMissingError:
    from intop.store.engine import shown

    return ResultMissingError(f"there is no store {shown(url)} yet. Run: intop tune")


for _command in (check, vacuum):
    _command.help = f"{_command.help}\n\n{STORE}"
