"""Which processes of a host are its server: `server_process.sh`, for all that looks at one."""

from importlib import resources


def without_comments(script: str) -> str:
    """Return a shell script without the lines that are comments: it is sent to hosts."""
    kept = (line for line in script.splitlines() if not line.lstrip().startswith("#"))
    return "".join(f"{line}\n" for line in kept)


FUNCTIONS = without_comments(
    resources.files("intop.hosts").joinpath("server_process.sh").read_text()
)
"""POSIX sh. Anybody on a host can start a process that looks like a server: nobody calls a word of
its title, and only programs that root alone can change are called as root.
"""

NGINX_MASTERS = """
masters() { # calls $1 for root's nginx in the network namespace: `process`, `title` and `program`
    for process in /proc/[0-9]*; do
        read -r name < "$process/comm" && [ "$name" = nginx ] || continue
        look_at_server "$process" nginx || continue
        title=$(tr '\\0' ' ' < "$process/cmdline")
        is_still "$process" || continue
        case $title in 'nginx: master process '*) "$@" ;; esac
    done 2>/dev/null
}
"""
"""POSIX sh, after FUNCTIONS. `runs_as` and `doubt` say whether it is root's."""
