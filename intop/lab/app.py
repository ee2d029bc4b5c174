"""The backends' application: a report computed and rendered afresh for every request.

`/dynamic?r=NUMBER` picks, by the number, how many orders are read, grouped and sorted, and how
many of them the page lists. The same number gives the same page; another number gives another
amount of work (about 0.2 to 1.5 ms) and another size (2 to 80 KB, 27 KB on average).
`&wait_ms=MS` has it answered that much later (0 to 1,000 ms): an effect of known size, for whoever
wants to know whether it is measured. Others don't wait for a request that waits.

Files with waits (`--pages`) are its pages, too. Each request for one draws its wait.

Started by the lab as a program of its own, so it imports only what it needs.
"""

import argparse
import grp
import json
import os
import pwd
import time
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from html import escape
from itertools import accumulate, count
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from intop.domain.lab_files import ENDING, MOST_WAIT_MS, WAITS_ENDING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

PATH = "/dynamic"
PROGRAM = "intop-app"
"""The kernel's name for our process, which differs from any other Python's."""
MOST_DIGITS = 18
EXPECTED = (
    f"expected {PATH}?r=NUMBER, and &wait_ms=0 to {MOST_WAIT_MS} where it is to wait, and "
    "&one_in=N where only one request in N waits\n"
)
THREADS = 64
"""Requests that can be there at once, waiting or at work."""
AT_WORK = BoundedSemaphore(4)
"""Pages that are made at once: more would only take the processor from each other."""
LEAST_ROWS, MORE_ROWS = 14, 670
LEAST_READ, MORE_READ = 200, 1800
ORDER_COUNT = 2 * (LEAST_READ + MORE_READ)
CUSTOMERS = ("Ada & Sons", "Bloggs <Ltd>", "Çelik", 'Dorothy "Dot" Vaughan', "O'Neill", "Fjord AS")
PLACES = ("Aarhus", "Brno", "Cork", "Delft", "Évora", "Fürth", "Gdynia", "Hull", "Ivalo")
MASK = (1 << 64) - 1

Order = tuple[int, str, str, int, int]
"""Number, customer, place, pieces, price of a piece in cents."""


class Page(NamedTuple):
    """A file that is answered after a wait."""

    file: str
    waits_ms: tuple[int, ...]
    sums: tuple[int, ...]
    """The weight of each wait, with those before it."""

    def wait_ms(self, turn: int) -> int:
        """Return the wait of a request, by its number."""
        return self.waits_ms[bisect_right(self.sums, mixed(turn) % self.sums[-1])]


PAGES: dict[str, Page] = {}
"""The files of `--pages` by path."""
TURNS = count()
"""The numbers of their requests."""


def mixed(number: int) -> int:
    """64 bits that look random and depend only on `number` (splitmix64)."""
    bits = (number + 0x9E3779B97F4A7C15) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def orders(count: int) -> list[Order]:
    """The table that the reports read, in place of a database."""
    table = []
    for number in range(count):
        bits = mixed(number)
        customer = CUSTOMERS[bits % len(CUSTOMERS)]
        place = PLACES[(bits >> 8) % len(PLACES)]
        table.append((number, customer, place, 1 + (bits >> 16) % 40, 99 + (bits >> 24) % 90_000))
    return table


@cache
def all_orders() -> list[Order]:
    """Every order, made when first asked for: others import this module for its names alone."""
    return orders(ORDER_COUNT)


def amounts(number: int) -> tuple[int, int, int]:
    """Return how many orders the report reads, the first of them, and how many rows it lists."""
    bits = mixed(number)
    share = (bits & 0xFFFF) / 0x10000
    rows = LEAST_ROWS + int(MORE_ROWS * share * share)  # many short pages, few long ones
    read = max(rows, LEAST_READ + (bits >> 16) % MORE_READ)
    return read, (bits >> 32) % (ORDER_COUNT - read), rows


def page(number: int) -> bytes:
    """The report for `number`: totals by place, and the largest orders."""
    read, first, rows = amounts(number)
    chosen = all_orders()[first : first + read]
    totals: dict[str, int] = {}
    for _, _, place, pieces, cents in chosen:
        totals[place] = totals.get(place, 0) + pieces * cents
    largest = sorted(chosen, key=lambda order: order[3] * order[4], reverse=True)[:rows]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>Report {number}</title></head><body>\n<h1>Report {number}</h1>\n"
        f"<p>{len(chosen)} orders, the {len(largest)} largest are listed.</p>\n<ul>\n"
    )
    parts = [head]
    for place, cents in sorted(totals.items(), key=lambda total: total[1], reverse=True):
        parts.append(f"<li>{escape(place)}: {cents / 100:.2f}</li>\n")
    parts.append("</ul>\n<table>\n")
    for order, customer, place, pieces, cents in largest:
        parts.append(
            f'<tr><td class="number">{order}</td><td>{escape(customer)}</td>'
            f"<td>{escape(place)}</td><td>{pieces}</td>"
            f"<td>{cents / 100:.2f}</td><td>{pieces * cents / 100:.2f}</td></tr>\n"
        )
    parts.append("</table>\n</body></html>\n")
    return "".join(parts).encode()


def pages_in(folder: Path) -> dict[str, Page]:
    """Return the files below a folder that have waits, by their paths."""
    pages = {}
    for file in folder.rglob(f"*{WAITS_ENDING}"):
        weights: list[tuple[int, int]] = json.loads(file.read_text())
        waits_ms, own = zip(*weights, strict=True)
        name = str(file).removesuffix(WAITS_ENDING)
        path = f"/{name[len(str(folder)) + 1 :]}"
        pages[path] = Page(f"{name}{ENDING}", waits_ms, tuple(accumulate(own)))
    return pages


def number_of(query: str, name: str, missing: int | None = None) -> int | None:
    """The number of a query such as `r=17` that has this name; None when it is something else."""
    values = parse_qs(query, keep_blank_values=True).get(name, [])
    if not values:
        return missing
    if len(values) != 1 or not (values[0].isascii() and values[0].isdigit()):
        return None
    return int(values[0]) if len(values[0]) <= MOST_DIGITS else None


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """The WSGI application."""
    query = environ.get("QUERY_STRING", "")
    number, wait_ms = number_of(query, "r"), number_of(query, "wait_ms", missing=0)
    one_in = number_of(query, "one_in", missing=1)
    path = environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace")
    if (own := PAGES.get(path)) is not None:
        time.sleep(own.wait_ms(next(TURNS)) / 1000)
        status, body = "200 OK", Path(own.file).read_bytes()
    elif path != PATH:
        status, body = "404 Not Found", b"only /dynamic is here\n"
    elif number is None or wait_ms is None or wait_ms > MOST_WAIT_MS or not one_in:
        status, body = "400 Bad Request", EXPECTED.encode()
    else:
        if wait_ms and mixed(number) % one_in == 0:
            time.sleep(wait_ms / 1000)
        with AT_WORK:
            status, body = "200 OK", page(number)
    kind = "text/html" if status == "200 OK" else "text/plain"
    start_response(
        status,
        [("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body)))],
    )
    return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]


def become(user: str) -> None:
    """Give up root for good; the socket is open by now."""
    entry = pwd.getpwnam(user)
    os.setgroups([group.gr_gid for group in grp.getgrall() if user in group.gr_mem])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


def main() -> None:
    """Serve until a signal ends it."""
    from waitress.server import create_server

    parser = argparse.ArgumentParser(prog="python -m intop.lab.app", description=__doc__)
    parser.add_argument("--socket", required=True, help="the Unix socket to serve on")
    parser.add_argument("--user", help="the user to run as, once the socket is open")
    parser.add_argument("--pages", type=Path, help="the folder of files that are answered late")
    options = parser.parse_args()
    if options.pages:
        PAGES.update(pages_in(options.pages))
    all_orders()  # before the first request, which would wait for it
    with open("/proc/self/comm", "w") as name:  # noqa: PTH123 - a module less to import
        name.write(PROGRAM)
    server: Any = create_server(
        application,
        unix_socket=options.socket,
        unix_socket_perms="666",
        threads=THREADS,
        backlog=4096,
        connection_limit=4096,
        asyncore_use_poll=True,  # select() ends at 1,024 connections
        ident=None,
    )
    if options.user:
        become(options.user)
    server.run()


if __name__ == "__main__":
    main()
