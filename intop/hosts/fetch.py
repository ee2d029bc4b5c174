"""Asking for each path of a load once: the same engine, host and URL as in a load."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from intop.domain.fetched import PROBLEMS, UNASKED, Fetched
from intop.domain.workload import Http
from intop.errors import LoadOutputError
from intop.hosts.answers import joined, lines
from intop.hosts.host import Host, output
from intop.hosts.load.engine import INTERPRETER, SCRIPT
from intop.hosts.load.output import json_line, short, whole
from intop.resources import shipped

LIMIT_S = 20.0
"""The time for all paths together."""
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

    Return an item for each path, in their order.

    Args:
        host: The host that asks.
        directory: The folder on the host into which the engine is put.
        url: The server's URL, without a path.
        paths: The paths.
        headers: Further headers of each request, "Name: value".
        http: The version of HTTP.
        scripts: The folder here with the engine (intop's own).
        limit_s: After it the path at hand has timed out, and those after it are not asked for.

    Raises:
        CommandError: The host has no luajit, or the engine can't work there.
        LoadOutputError: The output is not the engine's.
        UnreachableError: The host is lost.
    """
    if not paths:
        return ()
    folder = shipped("lua") if scripts is None else scripts
    host.put(directory, {path.name: path.read_text() for path in sorted(folder.glob("*.lua"))})
    words = ["timeout", f"{limit_s + GRACE_S:g}", INTERPRETER, SCRIPT, "--fetch", "--url", url]
    # A file of paths could be another session's by now. A pipe can be opened by name, and what
    # sshd gives for stdin may be a socket, which can't.
    words += ["--seed", "1", "--timeout", f"{limit_s:g}", "--paths", "/dev/stdin"]
    words += ["--http", http] if http != "1.1" else []
    words += [word for header in headers for word in ("--header", header)]
    command = f"cd {shlex.quote(directory)} && cat | {shlex.join(words)}"
    text = output(host, command, stdin=joined(paths), timeout_s=limit_s + 2 * GRACE_S)
    try:
        answers = parse_fetched(text, paths)
    except ValueError as error:
        raise LoadOutputError(
            f"{host.address.name}: {SCRIPT}: {error}; it printed: {short(text)}"
        ) from error
    return tuple(replace(answer, headers=tuple(headers), http=http) for answer in answers)


def parse_fetched(text: str, paths: Sequence[str]) -> tuple[Fetched, ...]:
    """Return an item for each path from the engine's output, a line of JSON for each.

    Raises ValueError for anything else.
    """
    printed = lines(text)
    if len(printed) != len(paths):
        raise ValueError(f"{len(printed)} lines for {len(paths)} paths")
    answers = [_fetched(line, path) for line, path in zip(printed, paths, strict=True)]
    # The engine ends when its time is over, and has nothing to say of what is left: the path that
    # it waited for, and those after it.
    left = [n for n, answer in enumerate(answers) if not (answer.status or answer.problem)]
    for n in left:
        answers[n] = replace(answers[n], problem="timeout" if n == left[0] else UNASKED)
    return tuple(answers)


def _fetched(line: str, path: str) -> Fetched:
    data = json_line(line)
    if data.keys() != {*FIELDS, "path", "problem"}:
        raise ValueError(f"{short(line)} is no answer to a path")
    if data["path"] != path:
        raise ValueError(f"{short(data['path'])} stands in the place of {path}")
    numbers = {name: whole(data, name, most=most) for name, most in FIELDS.items()}
    problem = data["problem"]
    if not isinstance(problem, str) or problem not in PROBLEMS:
        raise ValueError(f"problem is {short(problem)}, which is no kind of problem")
    return Fetched(
        path=path,
        status=numbers["status"],
        bytes=numbers["length"],
        check=numbers["crc32"],
        seconds=numbers["us"] / 1e6,
        problem=problem,
    )
