"""guard.sh on a host: a folder that only root can write to, the script in it, and its answers.

The script lies there under a name of its content, and a session names the one that it began with:
so another version of intop never changes the script of a living session. `guard.sh` is a link to
the last one, for whoever types it.
"""

import hashlib
import shlex
from functools import cache
from importlib import resources

from intop.errors import HostError
from intop.hosts.host import Completed, Host
from intop.hosts.trust import FUNCTIONS

UNTRUSTED = 74
STATE_FOLDER_ADVICE = (
    "Make room there or make it writable, or give the host another folder as state_dir"
)
PARTS = ("trust.sh", "guard_files.sh")
"""Parts of it, each with a line in guard.sh that stands for it: what root may trust, and what has
to do with nginx's files.
"""
FOLDERS = ("lock", "restoring.*", "unrestored.*", "applied.*")
"""Where a session leaves what is to be restored."""

# Tests of faults look for words like "begin" between blanks in commands: there are none in here.
TRUSTED = f"""{FUNCTIONS}
trusted() {{
    why=$(tell_others_folder "$1" "$owner" "$trustees")
    [ -n "$why" ] || return 0
    echo "the state folder $folder can't be trusted: $why. $advice" >&2
    exit {UNTRUSTED}
}}
"""
"""POSIX sh. Whoever can change a folder on the way to the script can make root run another one.
`owner` may own folders, too."""

BY_ROOT = """
owner=0 trustees=root
advice="Make that folder root's alone, or give the host another one as state_dir (/var/lib/intop)"
"""
BY_LOGIN = """
owner=${SUDO_UID:-$(id -u)} trustees="root or user $owner"
advice="Make that folder theirs alone (chmod go-w), or give the host another one as state_dir"
"""
"""For scripts that run as who logs in, with or without sudo."""
TRUST = TRUSTED + BY_ROOT

INSTALLED = (
    TRUST
    + """
# guard-install
trusted "$folder"
umask 077
mkdir -p "$folder" || exit 73
trusted "$folder"
there=$(sha256sum 2>/dev/null < "$folder/$script")
[ "$there" = "$sum  -" ] || { echo absent; exit 0; }
[ "$(readlink "$folder/guard.sh")" = "$script" ] || {
    ln -sfn "$script" "$folder/link.$$" || exit 73
    mv -T "$folder/link.$$" "$folder/guard.sh" || exit 73
}
echo there
"""
)
INSTALL = """
# guard-install
umask 077
draft=$folder/$script.$$
if cat > "$draft" && [ "$(sha256sum < "$draft")" = "$sum  -" ]; then
    sync "$draft" && mv -T "$draft" "$folder/$script" && ln -sfn "$script" "$folder/link.$$" &&
        mv -T "$folder/link.$$" "$folder/guard.sh" && sync "$folder" && echo there && exit 0
else
    echo "what arrived of the script is not what was sent: a link was cut, or the disk is full" >&2
fi
rm -f "$draft" "$folder/link.$$"
exit 73
"""

RUN = (
    TRUST
    + f"""
if [ ! -e "$folder/guard.sh" ] && [ ! -L "$folder/guard.sh" ]; then
    cd "$folder" 2>/dev/null || {{ printf 'end\\t%s\\n' "$none"; exit "$none"; }}
    for each in {" ".join(FOLDERS)}; do
        [ -d "$each" ] || continue
        echo "$folder/$each is there, and no guard.sh to restore it" >&2
        exit 73
    done
    printf 'end\\t%s\\n' "$none"
    exit "$none"
fi
trusted "$folder"
"""
)


@cache
def text() -> str:
    """The script with its parts."""
    folder = resources.files("intop.hosts")
    script = folder.joinpath("guard.sh").read_text()
    for part in PARTS:
        line = f"@{part}@\n"
        if line not in script:
            raise ValueError(f"guard.sh has no line {line}")
        script = script.replace(line, folder.joinpath(part).read_text())
    return script


@cache
def name() -> str:
    """What the script is called on a host."""
    return f"guard-{_sum()[:12]}.sh"


@cache
def _sum() -> str:
    return hashlib.sha256(text().encode()).hexdigest()


def install(host: Host) -> None:
    """Put the script there, if it is not there yet.

    Raises HostError when the folder can't be written, when others than root can change it, and when
    the script does not arrive as it is.
    """
    settings = f"folder={shlex.quote(host.address.state_dir)} script={name()} sum={_sum()}\n"
    done = host.run(settings + INSTALLED)
    if done.exit_code == 0 and done.stdout != "there\n":
        done = host.run(settings + INSTALL, stdin=text())
    if done.exit_code == UNTRUSTED:
        raise HostError(host.address.name, f"{done.said}. Nothing was changed there")
    if done.exit_code != 0 or done.stdout != "there\n":
        raise HostError(
            host.address.name,
            f"the state folder {host.address.state_dir} can't be written, so nothing was changed "
            f"there. {STATE_FOLDER_ADVICE}\n{done.said}",
        )


def call(
    host: Host, verb: str, *words: str, stdin: str = "", limit_s: float | None = None
) -> Completed:
    """What a verb of the session's script answers, without the end that it must have.

    Raises HostError for an answer that was cut off, as of half a script.
    """
    folder = host.address.state_dir
    command = shlex.join(["sh", f"{folder}/{name()}", folder, verb, *words])
    return whole(host, _run(host, command, stdin=stdin, limit_s=limit_s))


def ask(host: Host, *words: str, none: int, limit_s: float | None = None) -> Completed:
    """The same of the script that is there; exit code `none` where no session ever was.

    Raises HostError as `call`, and when others than root can change the script.
    """
    folder = shlex.quote(host.address.state_dir)
    settings = f"folder={folder} none={none}\n"
    command = f'exec sh "$folder/guard.sh" "$folder" {shlex.join(words)}\n'
    done = _run(host, settings + RUN + command, limit_s=limit_s)
    if done.exit_code == UNTRUSTED:
        raise HostError(host.address.name, done.said)
    return whole(host, done)


def _run(host: Host, command: str, *, stdin: str = "", limit_s: float | None) -> Completed:
    if limit_s is None:
        return host.run(command, stdin=stdin)
    return host.run(command, stdin=stdin, timeout_s=limit_s)


def whole(host: Host, done: Completed) -> Completed:
    """An answer without its last line, which says that nothing is missing."""
    end = f"end\t{done.exit_code}\n"
    said = done.stdout.removesuffix(end)
    if said == done.stdout or not (said == "" or said.endswith("\n")):
        raise HostError(
            host.address.name,
            f"guard.sh ended with {done.exit_code}: {done.said} (its answer was cut off)",
        )
    return Completed(done.exit_code, said, done.stderr)
