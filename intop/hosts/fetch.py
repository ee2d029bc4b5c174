"""Asking for each path of a load once: the same engine, host and URL as in a load.

`parse_fetched` does no input or output.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from intop.domain.fetched import PROBLEMS, UNASKED, Fetched
from intop.domain.workload import Http
from intop.errors import LoadOutputError
from intop.hosts.answers import lines
from intop.hosts.host import Host, output
from intop.resources import shipped

INTERPRETER, ENGINE = "luajit", "engine.lua"
LIMIT_S = 20.0
"""For all paths together."""
GRACE_S = 10
"""The engine ends by itself; so much later it is ended, such as in looking up a name."""

FIELDS = {"crc32": 2**32 - 1, "length": 2**63 - 1, "status": 999, "us": 2**63 - 1}
"""The whole numbers of a line, and the largest that each may be."""


def fetch(
    host: Host,
    directory: str,
    url: str,
    paths: Sequence[str],
    *,
    headers: Sequence[str] = (),
    http: Http = "1.1",
    scripts: Path | None = None,
    limit_s: float = LIMIT_S,
) -> tuple[Fetched, ...]:
    """Ask for each path once, one after the other, on as few connections as the server allows.

    The engine is put into `directory` on the host, from the folder `scripts` here (intop's own).
    `url` has no path; each request goes over this `http`, and has the further `headers`, "Name:
    value". After `limit_s` the
    path at hand has timed out, and those after it are not asked for. Returns an item for each path,
    in their order.

    Raises CommandError where the host has no luajit or the engine can't work there, LoadOutputError
    for an output that is not the engine's, UnreachableError where the host is lost.
    """
    if not paths:
        return ()
    folder = shipped("lua") if scripts is None else scripts
    host.put(directory, {path.name: path.read_text() for path in sorted(folder.glob("*.lua"))})
    words = ["timeout", f"{limit_s + GRACE_S:g}", INTERPRETER, ENGINE, "--fetch", "--url", url]
    # A file of paths could be another session's by now. A pipe can be opened by name, and what
    # sshd gives for stdin may be a socket, which can't.
    words += ["--seed", "1", "--timeout", f"{limit_s:g}", "--paths", "/dev/stdin"]
    words += ["--http", http] if http != "1.1" else []
    words += [word for header in headers for word in ("--header", header)]
    command = f"cd {shlex.quote(directory)} && cat | {shlex.join(words)}"
    text = output(
        host,
        command,
        stdin="".join(f"{path}\n" for path in paths),
        timeout_s=limit_s + 2 * GRACE_S,
    )
    try:
        found = parse_fetched(text, paths)
    except ValueError as error:
        raise LoadOutputError(
            f"{host.address.name}: {ENGINE}: {error}; it printed: {_short(text)}"
        ) from error
    return tuple(replace(one, headers=tuple(headers), http=http) for one in found)


def parse_fetched(text: str, paths: Sequence[str]) -> tuple[Fetched, ...]:
    """An item for each path from the engine's output, a line of JSON for each.

    Raises ValueError for anything else.
    """
    printed = lines(text)
    if len(printed) != len(paths):
        raise ValueError(f"{len(printed)} lines for {len(paths)} paths")
    found = [_fetched(line, path) for line, path in zip(printed, paths, strict=True)]
    # The engine ends when its time is over, and has nothing to say of what is left: the path that
    # it waited for, and those after it.
    left = [n for n, one in enumerate(found) if not (one.status or one.problem)]
    for n in left:
        found[n] = replace(found[n], problem="timeout" if n == left[0] else UNASKED)
    return tuple(found)


def _fetched(line: str, path: str) -> Fetched:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a line is no JSON ({error})") from error
    if not isinstance(data, dict) or data.keys() != {*FIELDS, "path", "problem"}:
        raise ValueError(f"a line is not what a path came to: {_short(line)}")
    if data["path"] != path:
        raise ValueError(f"{_short(data['path'])} stands in the place of {path}")
    numbers = {name: _whole(data[name], name, largest) for name, largest in FIELDS.items()}
    problem = data["problem"]
    if not isinstance(problem, str) or problem not in PROBLEMS:
        raise ValueError(f"problem is {_short(problem)}, which is no kind of problem")
    return Fetched(
        path=path,
        status=numbers["status"],
        bytes=numbers["length"],
        check=numbers["crc32"],
        seconds=numbers["us"] / 1e6,
        problem=problem,
    )


def _whole(number: object, name: str, largest: int) -> int:
    """Raises ValueError for what is no whole number from 0 to the largest."""
    if type(number) is not int or not 0 <= number <= largest:
        raise ValueError(f"{name} is {_short(number)}, no whole number up to {largest}")
    return number


def _short(value: object) -> str:
    """For a message; `repr` of a number of thousands of digits is an error of its own."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):
        return "too much to be shown"
    return repr(text if len(text) <= 100 else f"{text[:97]}...")
