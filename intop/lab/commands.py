"""Programs of this machine: found, run with a limit, waited for. Only the lab uses this."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from intop.errors import LabError

ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C",
}
"""The variables of the lab's programs: nothing of the caller's environment leaks into a server."""

PACKAGES: Mapping[tuple[str, ...], str] = {
    ("ip",): "iproute2",
    ("tc",): "iproute2",
    ("sysctl",): "procps",
    ("setsid",): "util-linux",
    ("sshd",): "openssh-server",
    ("ssh-keygen",): "openssh-client",
    ("nginx",): "nginx",
    ("luajit", "wrk2"): "luajit",
}
"""Programs (one of each group is enough) and Debian's packages that bring them."""


def find_program(name: str) -> str | None:
    """Return the path of a program, also where only root's PATH has it."""
    return shutil.which(name, path=ENVIRONMENT["PATH"])


def require_root() -> None:
    """Raise LabError, with what to do, when this is not root."""
    if os.geteuid() != 0:
        raise LabError(
            "the embedded cluster makes network namespaces, which needs root: "
            "run the same command again with sudo"
        )


def require_programs(
    packages: Mapping[tuple[str, ...], str] = PACKAGES, what: str = "the embedded cluster"
) -> None:
    """Raise LabError with all that is missing, and the line that installs it."""
    missing = {
        " or ".join(names): package
        for names, package in packages.items()
        if not any(find_program(name) for name in names)
    }
    if missing:
        raise LabError(
            f"{what} needs {', '.join(missing)}: "
            f"apt-get install -y {' '.join(sorted(set(missing.values())))}"
        )


def install_programs(*words: str) -> None:
    """Install what is missing by apt, where there is one, and say so on stderr.

    `words` are those of the script. What could not be installed, `require_programs` names.
    """
    script = Path(__file__).with_name("system-packages.sh")
    subprocess.run(
        ["sh", str(script), *words],
        stdout=sys.stderr,
        env={**os.environ, **ENVIRONMENT},
        check=False,
    )


def run(
    arguments: Sequence[str],
    *,
    text_in: str = "",
    timeout_s: float = 20,
    folder: str | None = None,
    extra: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end and return what it prints; `extra` is added to its environment.

    It gets a session of its own, so that a Ctrl-C reaches only the caller, who cleans up.
    """
    try:
        done = subprocess.run(
            arguments,
            input=text_in,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            cwd=folder,
            env={**ENVIRONMENT, **(extra or {})},
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise LabError(f"{' '.join(arguments)}: {problem}") from problem
    if done.returncode != 0:
        message = (done.stderr or done.stdout).strip() or "no message"
        raise LabError(f"{' '.join(arguments)}: exit code {done.returncode}: {message}")
    return done.stdout


def start(arguments: Sequence[str], *, log: Path, folder: str = "/", timeout_s: float = 20) -> None:
    """Run a program that leaves a server behind and returns; both write to the file `log`."""
    with log.open("ab") as output:
        try:
            done = subprocess.run(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                timeout=timeout_s,
                env=ENVIRONMENT,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise LabError(f"{' '.join(arguments)}: {problem}{last_lines(log)}") from problem
    if done.returncode != 0:
        raise LabError(f"{' '.join(arguments)}: exit code {done.returncode}{last_lines(log)}")


def last_lines(log: Path, count: int = 5) -> str:
    """Return the end of a log, to be put behind a message; nothing of an empty one."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "".join(f"\n  {log.name}: {line}" for line in lines[-count:])


def wait_until(problem: Callable[[], str | None], *, limit_s: float) -> None:
    """Return as soon as `problem()` is None; raise what it says when the limit is over."""
    deadline = time.monotonic() + limit_s
    while (message := problem()) is not None:
        if time.monotonic() > deadline:
            raise LabError(f"{message} (waited {limit_s:g} s)")
        time.sleep(0.02)
