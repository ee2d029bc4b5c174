"""The guard's script on a host: a folder that only root can write to, the script, its answers.

The script lies there under a name of its content, and a session names the one that it began with:
so another version of intop never changes the script of a living session. `guard.sh` is a link to
the last one, for whoever types it.
"""

import hashlib
import shlex
from functools import cache

from intop.errors import HostError
from intop.hosts.host import Completed, Host
from intop.hosts.scripts import UNTRUSTED, script, whole

STATE_FOLDER_ADVICE = (
    "Make room there or make it writable, or give the host another folder as state_dir"
)
LIMIT_S = 30.0
"""The time for an answer, where nginx is not waited for."""
UNWRITABLE = 73
"""Exit code: the state folder can't be written."""
HELD = 75
"""Exit code: somebody else has the host."""
NOT_OURS = 76
"""Exit code: the lock is not, or no longer, that of the session."""
NOTHING = 77
"""Exit code: there was nothing to roll back."""
FOREIGN = 78
"""Exit code: somebody else has changed a guarded key."""
KEPT = 79
"""Exit code: the values stay, and something else of a keep could not be done."""
MISSING = 80
"""Exit code: values of an earlier session could not be restored."""
REFUSED = 81
"""Exit code: nginx does not take its files, which are as they were found."""
NOT_BACK = 1
"""Exit code: a restore is not complete."""


@cache
def text() -> str:
    """Return the script with all of its parts."""
    return whole("guard/guard.sh")


@cache
def name() -> str:
    """Return the script's name on a host."""
    return f"guard-{_sum()[:12]}.sh"


@cache
def _sum() -> str:
    return hashlib.sha256(text().encode()).hexdigest()


def install(host: Host) -> None:
    """Put the script there, if it is not there yet.

    Raises:
        HostError: The folder can't be written, others than root can change it, or the script does
            not arrive as it is.
    """
    settings = {"folder": host.address.state_dir, "script": name(), "sum": _sum()}
    done = host.run(script("guard/installed.sh", **settings))
    if done.exit_code == 0 and done.stdout != "there\n":
        done = host.run(script("guard/install.sh", **settings), stdin=text())
    if done.exit_code == UNTRUSTED:
        raise HostError(host.address.name, f"{done.message}. Nothing was changed there")
    if done.exit_code != 0 or done.stdout != "there\n":
        raise HostError(
            host.address.name,
            f"the state folder {host.address.state_dir} can't be written, so nothing was changed "
            f"there. {STATE_FOLDER_ADVICE}\n{done.message}",
        )


def call(
    host: Host, verb: str, *words: str, stdin: str = "", limit_s: float = LIMIT_S
) -> Completed:
    """Return the answer to a verb of the session's own script, without its last line.

    Raises:
        HostError: The answer was cut off, as that of half a script.
    """
    folder = host.address.state_dir
    command = shlex.join(["sh", f"{folder}/{name()}", folder, verb, *words])
    return complete(host, host.run(command, stdin=stdin, timeout_s=limit_s))


def ask(host: Host, *words: str, none: int, limit_s: float = LIMIT_S) -> Completed:
    """Return the answer of the last script there; exit code `none` where no session ever was.

    Raises:
        HostError: As for `call`, and where others than root can change the script.
    """
    check = script("guard/ask.sh", folder=host.address.state_dir, none=none)
    command = f'exec sh "$folder/guard.sh" "$folder" {shlex.join(words)}\n'
    done = host.run(check + command, timeout_s=limit_s)
    if done.exit_code == UNTRUSTED:
        raise HostError(host.address.name, done.message)
    return complete(host, done)


def complete(host: Host, done: Completed) -> Completed:
    """Return an answer without its last line, which says that nothing is missing."""
    end = f"end\t{done.exit_code}\n"
    answer = done.stdout.removesuffix(end)
    if answer == done.stdout or not (answer == "" or answer.endswith("\n")):
        raise HostError(
            host.address.name,
            f"guard.sh ended with {done.exit_code}: {done.message} (its answer was cut off)",
        )
    return Completed(done.exit_code, answer, done.stderr)
