"""Access logs of known traffic, made up by a seed, and studies that intop learns from them.

Public logs may not be copied here. These have the shapes of three: a site whose rate follows the
day (as NASA's of 1995), pages with their pictures in bursts (as EPA's of 1995), and an nginx that
logs JSON with times of connections.
"""

import contextlib
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

from click.testing import CliRunner

from benchmarks.harness import UnusableError
from intop.config.study import Study, load_study
from intop.lab.content import KB, SIZES_KB
from intop.traffic import command

START = 1_795_773_600
"""The turn of an hour, since a recording is of one hour."""
NAME = "learned"
"""The workload's name in studies."""
TIMED = '$msec $remote_addr "$request" $status $body_bytes_sent'


@dataclass(frozen=True)
class Log:
    """A log, with its format as `intop workload learn` takes it."""

    line_format: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Request:
    """A request of a log. Times are in s since START."""

    at: float
    path: str
    size: int
    took_s: float = 0.0
    connection: int = 0
    nth: int = 1
    opened_s: float = 0.0


def nasa(seconds: float, seed: int = 1) -> Log:
    """Return a log in the common format, with whole seconds: Zipf's paths, a rate as in a day.

    There are 1,000 paths. The rate is 20/s, and half of that more or less in the course.
    """
    rng = random.Random(seed)
    paths = [f"/shuttle/missions/page-{chr(97 + n % 26)}{n}.html" for n in range(1000)]
    sizes = {path: round(rng.lognormvariate(8.5, 1)) + 200 for path in paths}
    sums = list(accumulate(1 / (n + 1) for n in range(len(paths))))
    requests, at = [], 0.0
    while (at := at + rng.expovariate(30)) < seconds:
        if rng.random() < (20 + 10 * math.sin(2 * math.pi * at / seconds)) / 30:
            (path,) = rng.choices(paths, cum_weights=sums)
            requests.append(Request(at, path, sizes[path]))
    return Log("common", [_common(request, rng) for request in requests])


EPA_RPS = 22.7
"""Requests/s of `epa` on average, with five visits of pages in a second."""


def epa(seconds: float, seed: int = 1, visits: float = 5, paths: Sequence[str] = ()) -> Log:
    """Return a log of bursts: 40 pages with one to eight pictures each, within about a second.

    `visits` is the number of pages that are visited in a second, each at a time of its own. With
    `paths` each request asks for one of these instead, all equally often.
    """
    rng = random.Random(seed)
    pages = [f"/docs/page-{n}.html" for n in range(40)]
    weights = [1 / (n + 1) for n in range(len(pages))]
    pictures = [[f"/img/p{n}-{k}.gif" for k in range(1 + n % 8)] for n in range(len(pages))]
    sizes = {path: round(rng.lognormvariate(8, 1)) + 100 for own in pictures for path in own}
    requests, at = [], 0.0
    while (at := at + rng.expovariate(visits)) < seconds:
        (page,) = rng.choices(range(len(pages)), weights)
        requests.append(Request(at, pages[page], 9000 + 500 * page))
        then = at
        for path in pictures[page]:
            then += rng.expovariate(8)
            requests.append(Request(then, path, sizes[path]))
    if paths:
        requests = [replace(request, path=rng.choice(paths)) for request in requests]
    return Log(TIMED, [_timed(each, rng) for each in in_order(requests, seconds)])


def json_nginx(seconds: float, seed: int = 1) -> Log:
    """Return nginx's JSON: connections of six requests on average, with pauses of 0.8 s."""
    rng = random.Random(seed)
    paths = [f"/api/v1/list-{n}.json" for n in range(25)]
    weights = [1 / (n + 1) for n in range(len(paths))]
    requests: list[Request] = []
    at, connection = 0.0, 0
    while (at := at + rng.expovariate(5)) < seconds:
        connection += 1
        then = at
        for nth in range(1, geometric(rng, 6) + 1):
            (place,) = rng.choices(range(len(paths)), weights)
            took_s = rng.lognormvariate(math.log(0.005), 0.5)
            size = 1500 + 900 * place
            requests.append(Request(then, paths[place], size, took_s, connection, nth, at))
            then += took_s + rng.expovariate(1 / 0.8)
    return Log("json", [json_line(request) for request in in_order(requests, seconds)])


def idle(seconds: float, seed: int = 1) -> Log:
    """Return a log of 71 kept connections, 100 requests/s, with pauses of 0.5 to 0.9 s."""
    rng = random.Random(seed)
    paths = list(SIZES_KB)
    requests, connection = [], 0
    for _ in range(71):
        at, left = rng.uniform(0, 0.7), 0
        while at < seconds:
            if not left:
                connection, left, opened_s, nth = connection + 1, geometric(rng, 200), at, 0
            path, took_s = rng.choice(paths), rng.lognormvariate(math.log(0.005), 0.3)
            left, nth = left - 1, nth + 1
            requests.append(_of_lab(at, path, took_s, connection, nth, opened_s))
            at += took_s + rng.uniform(0.5, 0.9)
    return Log("json", [json_line(request) for request in in_order(requests, seconds)])


BURST = 28
"""Connections of a burst. Three more than a queue of 32 takes of strangers: it is full at 24."""


def bursts(seconds: float, seed: int = 1) -> Log:
    """Return a log of 100 requests/s in bursts of BURST within 15 ms, each on a new connection."""
    rng = random.Random(seed)
    paths = ["img/logo.svg", "img/icon-1.png", "img/icon-2.png", "css/print.css"]
    requests, at, connection = [], 0.0, 0
    while (at := at + rng.uniform(0.5, 1.5) * BURST / 100) < seconds:
        for _ in range(BURST):
            connection += 1
            then = at + rng.uniform(0, 0.015)
            requests.append(_of_lab(then, rng.choice(paths), 0.002, connection, 1, then))
    return Log("json", [json_line(request) for request in in_order(requests, seconds)])


def steady(paths: Sequence[str], rate_rps: float, seconds: float, seed: int = 1) -> Log:
    """Return a log of independent requests for these paths."""
    rng = random.Random(seed)
    requests, at = [], 0.0
    while (at := at + rng.expovariate(rate_rps)) < seconds:
        requests.append(Request(at, rng.choice(paths), 1000))
    return Log(TIMED, [_timed(request, rng) for request in requests])


SHAPES: Mapping[str, Callable[[float], Log]] = {"nasa": nasa, "epa": epa, "json": json_nginx}


def geometric(rng: random.Random, mean: float) -> int:
    """Return a number from 1 on with this mean."""
    return 1 + math.floor(math.log(1 - rng.random()) / math.log(1 - 1 / mean))


def in_order(requests: Sequence[Request], seconds: float) -> Iterator[Request]:
    """Yield the requests by their ends, as a log has them. The log ends after so many seconds."""
    for request in sorted(requests, key=lambda each: each.at + each.took_s):
        if request.at + request.took_s < seconds:
            yield request


def json_line(request: Request) -> str:
    """Return a line of nginx's JSON."""
    ended = request.at + request.took_s
    return json.dumps(
        {
            "msec": f"{START + ended:.3f}",
            "connection": request.connection,
            "connection_requests": request.nth,
            "connection_time": f"{ended - request.opened_s:.3f}",
            "request": f"GET {request.path} HTTP/1.1",
            "status": 200,
            "body_bytes_sent": request.size,
            "request_time": f"{request.took_s:.3f}",
        }
    )


def _of_lab(
    at: float, path: str, took_s: float, connection: int, nth: int, opened_s: float
) -> Request:
    """Return a request for a file that every lab has."""
    size = round(KB * SIZES_KB[path])
    return Request(at, f"/{path}", size, took_s, connection, nth, opened_s)


def _address(rng: random.Random) -> str:
    return f"192.0.2.{rng.randrange(256)}"


def _common(request: Request, rng: random.Random) -> str:
    clock = datetime.fromtimestamp(START + int(request.at), UTC)
    return (
        f"{_address(rng)} - - [{clock:%d/%b/%Y:%H:%M:%S} +0000] "
        f'"GET {request.path} HTTP/1.0" 200 {request.size}'
    )


def _timed(request: Request, rng: random.Random) -> str:
    ended = START + request.at + request.took_s
    return f'{ended:.3f} {_address(rng)} "GET {request.path} HTTP/1.1" 200 {request.size}'


# What intop makes of them -----------------------------------------------------------------------


def learned_study(folder: Path, log: Log, head: str, *words: str) -> Study:
    """Return the study with a workload that `intop workload learn` makes of a log and records.

    `head` is its [study] and its cluster, `words` are further options of the command. All files
    are in the folder.
    """
    text = asked(folder, "learn", log, "--record", "own.recording", "--name", NAME, *words)
    path = folder / "intop.toml"
    path.write_text(f"{head}\n{text}")
    return load_study(path)


def asked(folder: Path, question: str, log: Log, *words: str) -> str:
    """Return what `intop workload QUESTION` prints about a log, which is written to the folder.

    Raises UnusableError for a command that fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "access.log").write_text("".join(f"{line}\n" for line in log.lines))
    with contextlib.chdir(folder):
        options = ["access.log", *words, "--format", log.line_format]
        done = CliRunner().invoke(command.group, [question, *options], catch_exceptions=False)
    if done.exit_code:
        raise UnusableError(done.output)
    return done.stdout
