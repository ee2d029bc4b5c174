"""What root may trust on a host: `trust.sh`, for all commands that run there as root."""

from importlib import resources


def without_comments(script: str) -> str:
    """Return a shell script without the lines that are comments: it is sent to hosts."""
    kept = (line for line in script.splitlines() if not line.lstrip().startswith("#"))
    return "".join(f"{line}\n" for line in kept)


FUNCTIONS = without_comments(resources.files("intop.hosts").joinpath("trust.sh").read_text())
"""POSIX sh. Anybody on a host can start a process that looks like a server: nobody calls a word of
its title, and only programs that root alone can change are called as root.
"""

NGINX_MASTERS = """
masters() { # calls $1 for root's nginx in the network namespace, and for $2 others at most
    more=${2:-0}
    for process in /proc/[0-9]*; do
        read -r name < "$process/comm" && [ "$name" = nginx ] || continue
        if ! is_roots "$process"; then
            # Neither another host's nor a worker.
            [ "$process/ns/net" -ef /proc/self/ns/net ] || continue
            read -r _ _ _ parent _ < "$process/stat" || continue
            ! { read -r name < "/proc/$parent/comm" && [ "$name" = nginx ]; } || continue
            [ "$more" != 0 ] || continue
            more=$((more - 1))
        fi
        look_at_server "$process" nginx || continue
        # That of a user's process may have no end, and take as long as he likes.
        title=$(timeout -k 1 1 head -c 100000 "$process/cmdline" | tr '\\0' ' ')
        is_still "$process" || continue
        case $title in 'nginx: master process '*) "$1" ;; esac
    done 2>/dev/null
}
"""
"""POSIX sh, after FUNCTIONS. `process`, `title` and `program` are there for what is called, and
`runs_as` and `doubt` say whether it is root's.
"""

UNTRUSTED = 74
"""The exit code of `trusted` for a folder that others can change."""

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
"""For scripts that run as root: the settings of `trusted`."""

BY_LOGIN = """
owner=${SUDO_UID:-$(id -u)} trustees="root or user $owner"
advice="Make that folder theirs alone (chmod go-w), or give the host another one as state_dir"
"""
"""For scripts that run as who logs in, with or without sudo."""
