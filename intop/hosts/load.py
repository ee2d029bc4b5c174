"""The load generators wrk2 and wrk: which one is there, its command line, and what it printed.

Both run the scripts in `lua/`, hold a constant rate and count latencies from when a request was
due. wrk2 paces itself (-R) and throws its calibration away; wrk is paced and counted by the
scripts, from the start, and needs a thread for each connection. Nothing here does input or output,
except that `script_fingerprint` reads two files.
"""

import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from intop.domain.histogram import Histogram
from intop.errors import LoadOutputError

ToolName = Literal["wrk2", "wrk"]
Script = Literal["slt", "dlt"]

PATHS_FILE = "paths.txt"
"""The static paths of slt, one a line, next to the scripts on the load generator."""

SHARED_SCRIPT = "intop.lua"
SCHEMA = 1
"""Of the JSON line; the scripts and this module change it together."""

LARGEST = 2**63 - 1
"""Of any count; floating point holds its ratios."""

ERROR_KINDS = ("connect", "read", "write", "timeout", "status")
MAX_SEED = 2**32 - 1
MAX_THREADS = 1024

END_S = 0.1
"""wrk ends its threads up to this long after its duration."""

CALIBRATION_S = 10.0
"""wrk2 resets its histogram this long after the last connection of a thread was started."""
CONNECT_INTERVAL_S = 0.005
"""wrk2 starts the connections of one thread this far apart."""


@dataclass(frozen=True, kw_only=True)
class LoadTool:
    """A load generator on some host: `version` is what it says of itself."""

    name: ToolName
    path: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Load:
    """One run of a load generator.

    `rate_rps` in requests/s over all connections (whole numbers only: it is rounded);
    `duration_s` are the counted seconds; `url` has no path; `dynamic_path` is what dlt asks for;
    `threads` are wrk2's. With `prune_above_ms` the run ends as soon as it is certain that more than
    1 % of its requests are answered later than that after they were due; wrk2 ignores it
    (`lua/intop.lua` says why). ValueError where a tool would silently do something else.
    """

    script: Script
    url: str
    rate_rps: float
    connections: int
    threads: int
    duration_s: float
    seed: int
    timeout_s: float = 10.0
    dynamic_path: str = "/dynamic"
    prune_above_ms: float | None = None

    def __post_init__(self) -> None:
        if self.script not in ("slt", "dlt"):
            raise ValueError(f"script {self.script!r} is neither slt nor dlt")
        if self.url.startswith("-"):
            raise ValueError(f"url {self.url!r} would be read as an option")
        for name in ("rate_rps", "duration_s", "timeout_s"):
            _require_positive(name, getattr(self, name))
        if self.prune_above_ms is not None:
            _require_positive("prune_above_ms", self.prune_above_ms)
        if round(self.rate_rps) < 1:
            raise ValueError(f"rate_rps {self.rate_rps} is less than one request a second")
        if not 1 <= self.threads <= MAX_THREADS:
            raise ValueError(f"threads {self.threads} is not in 1..{MAX_THREADS}")
        if self.connections < 1 or self.connections % self.threads:
            raise ValueError(
                f"connections {self.connections} is not a multiple of threads {self.threads}: "
                "the tools would leave out the remainder"
            )
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed {self.seed} is not in 0..{MAX_SEED}")
        if self.connections / self.rate_rps >= self.timeout_s:
            raise ValueError(
                f"{self.connections} connections at {self.rate_rps:g} requests/s are idle for "
                f"longer than timeout_s {self.timeout_s:g}, which wrk2 counts as timeouts"
            )


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """What one run measured.

    `requests` were answered (with any status) in the counted `duration_s`, at `achieved_rps`.
    `run_requests`, `run_duration_s`, `bytes` and `errors` (by kind, see `ERROR_KINDS`) are those
    of the whole run, so with wrk2 they include the calibration: divide errors by `run_requests`.
    `histogram` holds their latencies, from when they were due. `cpu_s` is the tool's CPU
    time over the whole run and what it computes after it, None where the shell did not say.
    `stopped_after_s` is when the limit of its load ended it, None where it ran as long as planned.
    """

    requests: int
    duration_s: float
    run_requests: int
    run_duration_s: float
    bytes: int
    errors: Mapping[str, int]
    histogram: Histogram
    achieved_rps: float
    cpu_s: float | None = None
    stopped_after_s: float | None = None

    @property
    def counted_errors(self) -> dict[str, int]:
        """Errors by kind in the counted part of the run, taken as evenly spread over all of it.

        Under wrk all of the run counts. wrk2 has no number of its own for that part, and
        the errors of its 10 s of calibration would weigh on a few counted seconds.
        """
        share = self.requests / self.run_requests if self.run_requests else 1.0
        return {kind: round(count * share) for kind, count in self.errors.items()}


def _require_positive(name: str, number: float) -> None:
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} {number} is not a positive number")


# Which tool ---------------------------------------------------------------------------------------

FIND_TOOL = r"""
for name in wrk2 wrk; do
    path=$(command -v "$name") || continue
    printf 'tool %s\n' "$path"
    "$path" -v </dev/null 2>&1 | sed 's/^/| /'
done
:
"""
"""POSIX sh: a line `tool PATH` for each candidate, then its version and help after `| `."""


def identify(path: str, help_text: str) -> LoadTool:
    """The tool at `path` from what it prints for `-v`. LoadOutputError if it is neither.

    wrk2's build is called `wrk` too and gives a version of wrk; only its -R tells them apart.
    """
    version = re.search(r"^wrk (\S{1,100}) \[", help_text, re.MULTILINE)
    if version is None or "Usage: wrk" not in help_text:
        raise LoadOutputError(f"{path} is neither wrk2 nor wrk; it printed:\n{_tail(help_text)}")
    is_wrk2 = re.search(r"^[ \t]*-R\b", help_text, re.MULTILINE)
    return LoadTool(name="wrk2" if is_wrk2 else "wrk", path=path, version=version[1])


def parse_found(text: str) -> LoadTool | None:
    """The best tool among those that `FIND_TOOL` printed: a wrk2 before a wrk, None if neither."""
    tools = [
        tool for part in re.split(r"^tool ", text, flags=re.MULTILINE)[1:] if (tool := _found(part))
    ]
    return min(tools, key=lambda tool: tool.name != "wrk2", default=None)


def _found(part: str) -> LoadTool | None:
    """The tool of one part of `FIND_TOOL`'s output; None for a binary that doesn't run here."""
    path, *lines = part.split("\n")
    if not (path.startswith("/") and path.isprintable()):
        return None
    try:
        return identify(path, "\n".join(line.removeprefix("| ") for line in lines))
    except LoadOutputError:
        return None


# Command ------------------------------------------------------------------------------------------


def threads_of(tool: LoadTool, load: Load) -> int:
    """How many threads the load runs in. Under wrk the scripts count latencies, and one of them can
    tell the requests of one connection only: it is told neither which it sends on nor gets from.

    LoadOutputError when that are more threads than they have cells for.
    """
    if tool.name == "wrk2":
        return load.threads
    if load.connections > MAX_THREADS:
        raise LoadOutputError(
            f"{tool.path}: wrk can be paced on up to {MAX_THREADS} connections, not on "
            f"{load.connections}. Ask for fewer, or install wrk2 on the load generator"
        )
    return load.connections


def calibration_s(tool: LoadTool, load: Load) -> float:
    """Seconds at the start of a run that the tool doesn't count."""
    if tool.name == "wrk":
        return 0.0
    return calibration_of(load.connections, load.threads)


def calibration_of(connections: int, threads: int) -> float:
    """Seconds that wrk2 does not count: its connections are started one by one, then it waits."""
    return CALIBRATION_S + connections // threads * CONNECT_INTERVAL_S


def planned_run_s(tool: LoadTool, load: Load) -> int:
    """Seconds of the whole run as given to -d, rounded up: both tools take whole seconds only."""
    return math.ceil(calibration_s(tool, load) + load.duration_s)


def late_count(tool: LoadTool, load: Load) -> int:
    """How many requests may be late without P99 being certainly so: 1 % of all that the run sends.

    By the nearest rank, P99 is above a limit when more than N - ceil(0.99 N) of N latencies are.
    """
    return math.floor(0.01 * round(load.rate_rps) * (planned_run_s(tool, load) + END_S))


def command(tool: LoadTool, load: Load, directory: str) -> str:
    """The shell command that runs the load in the directory of the uploaded scripts.

    After the load the shell says what CPU time it took (`times`), which needs no process.
    Without the script both tools would run their default request (wrk: at full speed), hence the
    `cat` first: it ends the command with a message that names the missing file.
    """
    script = f"{load.script}.lua"
    paced_by_tool = tool.name == "wrk2"
    rate = str(round(load.rate_rps))
    threads = str(threads_of(tool, load))
    words = [tool.path, "-t", threads, "-c", str(load.connections)]
    words += ["-d", str(planned_run_s(tool, load)), "--timeout", str(math.ceil(load.timeout_s))]
    words += ["-R", rate] if paced_by_tool else []
    words += ["-s", script, _with_port(load.url), "--"]
    words += ["--seed", str(load.seed), "--threads", threads]
    words += ["--paths", PATHS_FILE] if load.script == "slt" else ["--path", load.dynamic_path]
    words += [] if paced_by_tool else ["--pace", "--rate", rate]
    if load.prune_above_ms is not None and not paced_by_tool:
        words += [
            "--late-ms",
            f"{load.prune_above_ms:.3f}",
            "--late-count",
            str(late_count(tool, load)),
        ]
    needed = shlex.join([script, SHARED_SCRIPT])
    run = shlex.join(words)
    return f"cd {shlex.quote(directory)} && cat {needed} >/dev/null && {run} && times"


def _with_port(url: str) -> str:
    """The URL with its port said: else the tools look `http` up in /etc/services, which the
    smallest systems don't have.
    """
    parts = urlsplit(url)
    if parts.port is not None:
        return url
    port = 443 if parts.scheme == "https" else 80
    return urlunsplit(parts._replace(netloc=f"{parts.netloc}:{port}"))


# Output -------------------------------------------------------------------------------------------


def parse_output(text: str, tool: LoadTool, load: Load) -> LoadResult:
    """What the run measured, from all that the tool printed to stdout.

    LoadOutputError, with the last lines of the output, if the JSON line is missing, broken, or of
    another script, or if wrk2 was not calibrated.
    """
    try:
        result = _result(_json_line(text), _uncounted_s(text, tool, load), tool, load)
    except ValueError as error:
        raise LoadOutputError(f"{tool.path}: {error}; last lines:\n{_tail(text)}") from error
    return replace(result, cpu_s=_cpu_s(text))


_TIMES = re.compile(
    r"^(\d{1,9})m(\d{1,2})[.,](\d{1,9})s (\d{1,9})m(\d{1,2})[.,](\d{1,9})s$",
    re.MULTILINE | re.ASCII,
)
"""A line of the shell's `times`, user and system; some shells print the language's comma."""


def _cpu_s(text: str) -> float | None:
    """The CPU time of the shell's children, its last line; None when there is no such line."""
    said = _TIMES.findall(text)
    if not said:
        return None
    user_min, user, user_part, system_min, system, system_part = said[-1]
    whole = 60 * (int(user_min) + int(system_min))
    return whole + float(f"{user}.{user_part}") + float(f"{system}.{system_part}")


def _json_line(text: str) -> dict[str, Any]:
    """The one JSON object. ValueError if there is none, more than one, or a broken one."""
    lines = [line for line in text.split("\n") if line.startswith("{")]
    if len(lines) != 1:
        raise ValueError(f"expected one line of JSON, found {len(lines)}")
    try:
        data: dict[str, Any] = json.loads(lines[0])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the line of JSON is broken ({error})") from error
    return data


def _uncounted_s(text: str, tool: LoadTool, load: Load) -> float:
    """Seconds of the run before counting began. ValueError if wrk2 never began to count.

    A thread of wrk2 that got no answer in 10 s puts its calibration off, or never finishes it.
    """
    calibrated = len(re.findall(r"^[ \t]*Thread calibration:", text, re.MULTILINE))
    if tool.name == "wrk2" and calibrated != load.threads:
        raise ValueError(f"wrk2 calibrated {calibrated} of {load.threads} threads")
    return calibration_s(tool, load)


def _result(data: Mapping[str, Any], uncounted_s: float, tool: LoadTool, load: Load) -> LoadResult:
    """The result from the JSON object. ValueError if it isn't what our scripts print."""
    found = (data.get("schema"), data.get("script"))
    if found != (SCHEMA, load.script):
        raise ValueError(f"schema and script are {_short(found)}, not {(SCHEMA, load.script)}")
    run_requests = _whole(data, "requests")
    run_duration_s = _whole(data, "duration_us") / 1e6
    duration_s = run_duration_s - uncounted_s
    if duration_s <= 0:
        raise ValueError(f"the run took {run_duration_s:.3f} s and {uncounted_s:.3f} s don't count")
    histogram = _histogram(data.get("histogram"))
    # One that was about to end anyway is a whole run.
    is_stopped = _flag(data, "stopped") and run_duration_s < planned_run_s(tool, load)
    return LoadResult(
        # The tool's own number includes what was answered while wrk2 calibrated.
        requests=histogram.total,
        duration_s=duration_s,
        run_requests=run_requests,
        run_duration_s=run_duration_s,
        bytes=_whole(data, "bytes"),
        errors=_errors(data.get("errors")),
        histogram=histogram,
        achieved_rps=histogram.total / duration_s,
        stopped_after_s=run_duration_s if is_stopped else None,
    )


def _whole(data: Mapping[str, Any], key: str) -> int:
    """A whole number from 0 on. ValueError naming the key if it is something else."""
    number = data.get(key)
    if type(number) is not int or not 0 <= number <= LARGEST:
        raise ValueError(f"{key} is {_short(number)}, not a whole number")
    return number


def _flag(data: Mapping[str, Any], key: str) -> bool:
    """Whether a flag is set, not so where it is missing. ValueError naming another key's value."""
    flag = data.get(key, False)
    if type(flag) is not bool:
        raise ValueError(f"{key} is {_short(flag)}, neither true nor false")
    return flag


def _errors(data: object) -> dict[str, int]:
    """Errors by kind. ValueError if it isn't an object with all of them."""
    if not isinstance(data, dict):
        raise ValueError(f"errors is {_short(data)}, not an object")  # noqa: TRY004 - it is input
    return {kind: _whole(data, kind) for kind in ERROR_KINDS}


def _histogram(data: object) -> Histogram:
    """The histogram from a list of pairs. ValueError if it is something else."""
    if not isinstance(data, list):
        raise ValueError(f"histogram is {_short(data)}, not a list")  # noqa: TRY004 - it is input
    for pair in data:
        if not (isinstance(pair, list) and [type(number) for number in pair] == [int, int]):
            raise ValueError(f"histogram has {_short(pair)}, not a latency and a count")
        if max(pair) > LARGEST:
            raise ValueError("histogram has a number that no histogram holds")
    return Histogram.from_pairs((value, count) for value, count in data)


def _short(value: object) -> str:
    """For a message; `repr` of a number of thousands of digits is an error of its own."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "too much to be shown"
    return text if len(text) <= 100 else text[:97] + "..."


def _tail(text: str, lines: int = 8, width: int = 200) -> str:
    """The last lines of an output for a message, long ones cut."""
    kept = [line[:width] for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(kept) or "(nothing was printed)"


# Scripts ------------------------------------------------------------------------------------------


def script_fingerprint(directory: Path, script: str) -> str:
    """First 16 hex digits of the SHA-256 over a script and the shared part. OSError if missing.

    Loads of different scripts must not be compared, so this goes with each trial.
    """
    digest = hashlib.sha256()
    for name in (f"{script}.lua", SHARED_SCRIPT):
        content = (directory / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
