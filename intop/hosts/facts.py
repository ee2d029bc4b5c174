"""The facts of a host: architecture, kernel, processors, memory, programs, clock."""

from intop.domain.probing import HostFacts
from intop.domain.server import NGINX, Server
from intop.hosts.answers import count, decimal, lines
from intop.hosts.host import Host, output, parsed_output
from intop.hosts.nginx_conf import MARK, SHOW, parse_shown
from intop.hosts.other_servers import VERSIONS, shown
from intop.hosts.trust import FUNCTIONS, NGINX_MASTERS

LONGEST = 200
"""Characters of a fact in words; these go with every trial that is stored."""

NGINX_VERSION = "nginx -v 2>&1 | sed -n 's/^nginx version: *//p'"

FACTS = f"""{FUNCTIONS}{NGINX_MASTERS}
echo "machine=$(uname -m)"
echo "kernel=$(uname -r)"
model='s/^\\(model name\\|Hardware\\|CPU part\\)[[:space:]]*: *//p'
echo "cpu=$(sed -n "$model" /proc/cpuinfo | head -n 1)"
echo "cpus=$(grep -c '^processor' /proc/cpuinfo)"
echo "memory_kib=$(sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo)"
echo "page=$(getconf PAGESIZE 2>/dev/null || echo 4096)"
# Only the kernel's first network namespace has this key. Comparing our namespace with that of
# process 1 would not do: security modules hide it, also from root.
[ -e /proc/sys/net/core/netdev_max_backlog ] && echo "namespace=first" || echo "namespace=child"
echo "uid=$(id -u)"
read -r _ _ uids < /proc/self/uid_map && echo "uids=$uids"
place='\\(/proc\\|/proc/sys\\(/[^ ]*\\)*\\)'
mount="s#^[^ ]* [^ ]* [^ ]* [^ ]* $place \\(r[ow]\\).* - [^ ]* [^ ]* \\(r[ow]\\).*#\\1 \\3\\4#p"
echo "mounts=$(sed -n "$mount" /proc/self/mountinfo | tr '\\n' ' ')"
PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/local/nginx/sbin
echo "nginx=$({NGINX_VERSION})"
cpus=
allowed() {{ # of a process, as taskset lists them
    while read -r name value; do
        [ "$name" != Cpus_allowed_list: ] || echo "$value"
    done < "$1/status"
}}
all=$(allowed /proc/1)
add() {{ # the processors of the workers of root's nginx in `process`
    [ -z "$runs_as$doubt" ] || return
    for worker in $(grep -l "^PPid:[[:space:]]*${{process#/proc/}}\\$" /proc/[0-9]*/status); do
        read -r _ what _ < "${{worker%/status}}/cmdline"
        [ "$what" = worker ] || continue
        value=$(allowed "${{worker%/status}}")
        [ "$value" != "$all" ] || value=all
        case " $cpus " in *" $value "*) ;; *) cpus="$cpus $value" ;; esac
    done
}}
masters add
echo "nginx_cpus=${{cpus# }}"
echo "clock=$(date +%s.%N)"
"""


PROBLEM = "its description can't be read"
ALL_UIDS = "4294967295"
"""The number of users in the machine's own user namespace."""


def facts(host: Host, server: Server = NGINX) -> HostFacts:
    """Return the facts of a host. Raises CommandError when its answer makes no sense."""
    return parsed_output(host, _asking(server), parse_facts, PROBLEM)


def facts_and_conf(host: Host, server: Server = NGINX) -> tuple[HostFacts, tuple[str, ...]]:
    """Return the facts, and the configurations of its server as in `parse_shown`.

    One command asks for both. Raises CommandError when its answer makes no sense.
    """

    def parse(text: str) -> tuple[HostFacts, tuple[str, ...]]:
        answer, mark, confs = text.partition(f"\n{MARK}\n")
        return parse_facts(answer + mark[:1]), parse_shown(lines(mark[1:] + confs))

    return parsed_output(host, _asking(server) + _showing(server), parse, PROBLEM)


def server_conf(host: Host, server: Server = NGINX) -> tuple[str, ...]:
    """Return the configurations of a host's server."""
    return parse_shown(lines(output(host, _showing(server))))


def _asking(server: Server) -> str:
    return FACTS.replace(NGINX_VERSION, VERSIONS.get(server.name, NGINX_VERSION))


def _showing(server: Server) -> str:
    return SHOW if server == NGINX else shown(server)


def parse_facts(text: str) -> HostFacts:
    """Return the facts in the lines that `FACTS` prints. Raises KeyError or ValueError."""
    values: dict[str, str] = {}
    for line in lines(text):
        name, sign, value = line.partition("=")
        if sign and values.setdefault(name, value) != value:
            raise ValueError(f"{name[:20]} stands there twice")
    for name in ("machine", "kernel", "cpu", "nginx", "nginx_cpus"):
        if len(values.get(name, "")) > LONGEST:
            raise ValueError(f"{name} has {len(values[name])} characters")
    return HostFacts(
        machine=values["machine"],
        kernel=values["kernel"],
        cpu=values["cpu"] or "unknown",
        cpus=_positive(values["cpus"]),
        memory_bytes=_positive(values["memory_kib"]) * 1024,
        page_bytes=_positive(values["page"]),
        in_namespace=values["namespace"] != "first",
        is_root=values["uid"] == "0",
        nginx=values["nginx"],
        clock_s=decimal(values["clock"]),
        in_user_namespace=values.get("uids", ALL_UIDS) != ALL_UIDS,
        mounts=_mounts(values.get("mounts", "")),
        nginx_cpus=" ".join(sorted(values.get("nginx_cpus", "").split())),
    )


def _mounts(text: str) -> dict[str, bool]:
    """Return whether each mount is read-only, by its place.

    The words are, in turn, a place, and "ro" or "rw" of the mount and of the mounted file system. A
    later mount at the same place lies over an earlier one.
    """
    words = text.split()
    return {place: "ro" in modes for place, modes in zip(words[::2], words[1::2], strict=True)}


def _positive(text: str) -> int:
    if (number := count(text)) == 0:
        raise ValueError("a quantity of zero")
    return number
