"""The load generators of a host, and the choice among them for a load."""

import hashlib
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit, urlunsplit

from intop.domain.workload import LoadToolChoice, WorkloadKind
from intop.errors import LoadOutputError
from intop.hosts.load import engine, wrk2
from intop.hosts.load.output import tail
from intop.hosts.load.types import Load, LoadResult, LoadTool
from intop.hosts.scripts import script

FIND_TOOL = script("load/find_tool.sh")
PACKAGE = (
    "On Debian and Ubuntu: apt-get install luajit; on Fedora and, from EPEL, on RHEL: dnf install "
    "luajit"
)
"""The next step where there is no load generator."""

LINK_SCRIPT = "link.lua"
"""The one script among those of the load that sends none: it is the lab's."""


def identify(path: str, words: str) -> LoadTool | None:
    """Return the tool at `path` by its words for `-v`; None if it is neither.

    wrk2's build is called `wrk` too and gives a version of wrk; only its -R tells them apart.
    """
    if luajit := re.search(r"^LuaJIT (\S{1,100}) ", words, re.MULTILINE):
        return LoadTool(name="engine", path=path, version=f"LuaJIT {luajit[1]}")
    version = re.search(r"^wrk (\S{1,100}) \[", words, re.MULTILINE)
    if version is None or not re.search(r"^[ \t]*-R\b", words, re.MULTILINE):
        return None
    return LoadTool(name="wrk2", path=path, version=version[1])


def parse_tools(text: str) -> tuple[LoadTool, ...]:
    """Return the tools among those that `FIND_TOOL` printed, wrk2 before the engine."""
    tools: list[LoadTool] = []
    for part in re.split(r"^tool ", text, flags=re.MULTILINE)[1:]:
        path, *lines = part.split("\n")
        tool = identify(path, "\n".join(line.removeprefix("| ") for line in lines))
        if tool is not None and path.startswith("/") and path.isprintable():
            tools.append(tool)
    return tuple(sorted(tools, key=lambda tool: tool.name != "wrk2"))


def choose(
    tools: Sequence[LoadTool], loads: Sequence[Load], wanted: LoadToolChoice
) -> LoadTool | str:
    """Return the tool that sends these loads, or why there is none.

    By itself wrk2 is chosen where it can send all of them, since the method is built on it.
    """
    by_name = {tool.name: tool for tool in tools}
    lacking = next((why for load in loads if (why := wrk2.why_not(load))), "")
    if wanted != "engine" and "wrk2" in by_name and not lacking:
        return by_name["wrk2"]
    if wanted == "wrk2":
        why = f"wrk2 can't send {lacking}" if "wrk2" in by_name else "has no wrk2 on its PATH"
        return f'{why}, and the study has load_tool = "wrk2". Set it to "auto" or "engine"'
    if "engine" in by_name:
        return by_name["engine"]
    also = "no wrk2"
    if "wrk2" in by_name:
        also = f"its wrk2 can't send {lacking}" if lacking else 'the study has load_tool = "engine"'
    return f"has no luajit on its PATH, which runs intop's load generator, and {also}. {PACKAGE}"


def _module(tool: LoadTool) -> ModuleType:
    return wrk2 if tool.name == "wrk2" else engine


def planned_run_s(tool: LoadTool, load: Load) -> int:
    """Return the seconds of the whole run at most, rounded up."""
    seconds: float = _module(tool).planned_run_s(load)
    return math.ceil(seconds)


def sent_s(tool: LoadTool, load: Load) -> float:
    """Return the seconds in which requests are sent."""
    seconds: float = _module(tool).sent_s(load)
    return seconds


def threads_of(tool: LoadTool, load: Load) -> int:
    """Return the number of threads in which the load runs."""
    return load.threads if tool.name == "wrk2" else 1


def command(tool: LoadTool, load: Load, directory: str) -> str:
    """Return the shell command that runs the load in the directory of the uploaded scripts.

    After the load the shell says what CPU time it took (`times`), which needs no process. Without
    the script wrk2 would run its default request, hence the `cat` first: it ends the command with
    a message that names the missing file.
    """
    load = replace(load, url=_with_port(load.url))
    run = shlex.join(_module(tool).words(tool, load))
    needed = shlex.quote(f"{load.script_name}.lua")
    return f"cd {shlex.quote(directory)} && cat {needed} >/dev/null && {run} && times"


def _with_port(url: str) -> str:
    """Return the URL with its port.

    Without one, wrk2 looks `http` up in /etc/services, which the smallest systems don't have.
    """
    parts = urlsplit(url)
    if parts.port is not None:
        return url
    port = 443 if parts.scheme == "https" else 80
    return urlunsplit(parts._replace(netloc=f"{parts.netloc}:{port}"))


def parse_output(text: str, tool: LoadTool, load: Load) -> LoadResult:
    """Return the result, from all that the tool printed to stdout.

    Raises:
        LoadOutputError: The JSON line is missing, broken, or of another script, or wrk2 was not
            calibrated. The error has the last lines of the output.
    """
    try:
        result: LoadResult = _module(tool).parse(text, load)
    except ValueError as error:
        raise LoadOutputError(f"{tool.path}: {error}; last lines:\n{tail(text)}") from error
    return result if result.cpu_s is not None else replace(result, cpu_s=_cpu_s(text))


_TIMES = re.compile(
    r"^(\d{1,9})m(\d{1,2})[.,](\d{1,9})s (\d{1,9})m(\d{1,2})[.,](\d{1,9})s$",
    re.MULTILINE | re.ASCII,
)
"""A line of the shell's `times`, user and system; some shells print the language's comma."""


def _cpu_s(text: str) -> float | None:
    """Return the CPU time of the shell's children, its last line; None without one."""
    times = _TIMES.findall(text)
    if not times:
        return None
    user_min, user, user_part, system_min, system, system_part = times[-1]
    minutes = 60 * (int(user_min) + int(system_min))
    return minutes + float(f"{user}.{user_part}") + float(f"{system}.{system_part}")


def script_fingerprint(directory: Path, kind: WorkloadKind, script: str = "") -> str:
    """Return 16 hex digits of the SHA-256 over a request script and the scripts that send it.

    `directory` has intop's scripts, among them the one of each kind; `script` is the path of the
    user's own in its place. Loads of different scripts must not be compared, so this goes with each
    trial. Raises OSError if one is missing.
    """
    own = Path(script) if script else directory / f"{kind}.lua"
    own.stat()
    # A script of the user's own may load one of ours.
    unused = {LINK_SCRIPT} if script else {"slt.lua", "dlt.lua", LINK_SCRIPT} - {own.name}
    paths = {path for path in directory.glob("*.lua") if path.name not in unused} | {own}
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
