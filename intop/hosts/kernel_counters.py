"""The kernel's tables of network counters, and nginx's own, read from text.

A counter's name is TABLE.NAME, as the kernel calls both: `TcpExt.ListenOverflows`. What the kernel
does not name is called `sockstat.TCP.inuse`, `softnet.cpu0.dropped`, `conntrack.insert_failed`.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from intop.hosts.answers import count

WORD = 0xFFFFFFFF
"""The largest number of tables in hexadecimal: they begin again at 0 after it."""

SETTINGS = frozenset(
    f"{table}.{name}"
    for table, names in {
        "Tcp": ("RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn"),
        "Ip": ("Forwarding", "DefaultTTL", "ReasmTimeout"),
    }.items()
    for name in names
)
"""Names among the counters that are none."""

LEVELS = (
    *(f"nginx.{state}" for state in ("active", "reading", "writing", "waiting")),
    *("sockstat.", "conntrack.entries", "conntrack.count", "conntrack.max", "Tcp.CurrEstab"),
)
"""Beginnings of the names of quantities that go up and down."""
BACKLOGS = (".backlog", ".input_queue", ".process_queue")

SOFTNET = (
    *("processed", "dropped", "time_squeeze", None, None, None, None, None, "cpu_collision"),
    *("received_rps", "flow_limit", "backlog", None, "input_queue", "process_queue"),
)
"""The columns of /proc/net/softnet_stat (`softnet_seq_show` in net/core/net-procfs.c)."""
CPU_COLUMN = 12
"""The column of the processor's number, since Linux 5.10."""

_HEX_ROW = re.compile(r"[0-9a-f]{8}( +[0-9a-f]{8}){2,40}")
_NUMBERS = re.compile(r"[A-Za-z]+:( -?[0-9]{1,20})+")
_NAMES = re.compile(r"[A-Za-z]{1,20}:( [A-Za-z][A-Za-z0-9_]{0,60})+")
_PAGE = re.compile(
    r"Active connections: ([0-9]{1,20})\s+server accepts handled requests\s+"
    r"([0-9]{1,20}) ([0-9]{1,20}) ([0-9]{1,20})\s+"
    r"Reading: ([0-9]{1,20}) Writing: ([0-9]{1,20}) Waiting: ([0-9]{1,20})\s*"
)
_SOCKETS = re.compile(r"[A-Za-z0-9]{1,20}:(?: [a-z]{1,20} [0-9]{1,20})+")


def is_level(name: str) -> bool:
    """Return whether a quantity goes up and down, so that its growth says nothing."""
    return name.startswith(LEVELS) or (name.startswith("softnet.") and name.endswith(BACKLOGS))


def is_word(name: str) -> bool:
    """Return whether a counter has 32 bits only."""
    return name.startswith(("softnet.", "conntrack."))


def parse_tables(listed: Iterable[str]) -> dict[str, int]:
    """Return counters of sockstat, netstat, snmp and softnet_stat, in any order.

    Other lines are skipped. Raises ValueError for numbers without names, and for a counter with two
    values.
    """
    counters: dict[str, int] = {}
    header: str | None = None
    rows: list[str] = []
    for line in listed:
        if header is not None and _NUMBERS.fullmatch(line):
            names, numbers = _names(header), line.split()
            if names[0] != numbers[0]:
                raise ValueError(f"{numbers[0]} has no names")
            table = zip(names[1:], map(int, numbers[1:]), strict=True)
            _add(counters, ((name, number) for name, number in table if name not in SETTINGS))
            header = None
        elif _NAMES.fullmatch(line) and not _SOCKETS.fullmatch(line):
            header = line
        elif _SOCKETS.fullmatch(line):
            kind, *words = line.split()
            of = f"sockstat.{kind[:-1]}"
            pairs = zip(words[::2], words[1::2], strict=True)
            _add(counters, ((f"{of}.{name}", count(number)) for name, number in pairs))
        elif _HEX_ROW.fullmatch(line):
            rows.append(line)
    _add(counters, _softnet(rows).items())
    return counters


@lru_cache(maxsize=64)
def _names(header: str) -> tuple[str, ...]:
    """Return the table, and the full names of its counters."""
    table, *names = header.split()
    return (table, *(f"{table[:-1]}.{name}" for name in names))


def _add(counters: dict[str, int], more: Iterable[tuple[str, int]]) -> None:
    for name, number in more:
        if counters.setdefault(name, number) != number:
            raise ValueError(f"{name} stands there twice")


def _softnet(rows: Sequence[str]) -> dict[str, int]:
    counters: dict[str, int] = {}
    for number, row in enumerate(rows):
        values = [int(word, 16) for word in row.split()]
        cpu = values[CPU_COLUMN] if len(values) > CPU_COLUMN else number
        named = zip(SOFTNET, values, strict=False)
        _add(counters, ((f"softnet.cpu{cpu}.{name}", value) for name, value in named if name))
    return counters


def parse_conntrack(table: Sequence[str], limits: Sequence[str]) -> dict[str, int]:
    """Return counters of /proc/net/stat/nf_conntrack, summed over processors, and its two limits.

    Empty where connections are not tracked. Raises ValueError.
    """
    if not table:
        return {}
    counters: dict[str, int] = {}
    names, *rows = (line.split() for line in table)
    for name in names:
        if not re.fullmatch(r"[a-z_]{1,40}", name):
            raise ValueError(f"{name[:40]!r} is no name of a counter")
    for row in rows:
        for name, word in zip(names, row, strict=True):
            if not re.fullmatch(r"[0-9a-f]{8}", word):
                raise ValueError(f"{word[:40]!r} is no number of 32 bits")
            number = int(word, 16)
            # The number of entries is that of all processors, on each line.
            total = number if name == "entries" else counters.get(f"conntrack.{name}", 0) + number
            counters[f"conntrack.{name}"] = total & WORD
    if limits:
        numbers = map(count, limits)
        counters |= dict(zip(("conntrack.count", "conntrack.max"), numbers, strict=True))
    return counters


def parse_stub_status(answer: Sequence[str]) -> dict[str, int]:
    """Return the counters of nginx's module `stub_status`, from an answer over HTTP with its head.

    `nginx.dropped` are connections that were accepted and closed at once, because nginx had
    `worker_connections` of them. Empty for an answer that is no such page.
    """
    _, _, body = "\n".join(answer).partition("\n\n")
    match = _PAGE.fullmatch(body)
    if match is None:
        return {}
    active, accepts, handled, requests, *states = map(int, match.groups())
    counted = {"accepts": accepts, "dropped": accepts - handled, "requests": requests}
    levels = dict(zip(("reading", "writing", "waiting"), states, strict=True))
    return {f"nginx.{name}": n for name, n in (counted | levels | {"active": active}).items()}


def grown(name: str, before: int, after: int) -> int:
    """Return by how much a counter grew."""
    return (after - before) & WORD if is_word(name) else after - before
