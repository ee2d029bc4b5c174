"""What a host is: architecture, kernel, processors, memory, programs, clock."""

from intop.domain.probing import HostFacts
from intop.domain.server import NGINX, Server
from intop.errors import CommandError
from intop.hosts.answers import count, decimal, lines
from intop.hosts.host import Host, output
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


ALL_UIDS = "4294967295"
"""How many users there are in the machine's own user namespace."""


def facts(host: Host, server: Server = NGINX) -> HostFacts:
    """Ask the host. Raises CommandError when its answer makes no sense."""
    return _facts_in(host, output(host, _asking(server)))


def facts_and_conf(host: Host, server: Server = NGINX) -> tuple[HostFacts, tuple[str, ...]]:
    """The same, and the configurations of its server as in `parse_shown`, by one command."""
    said = output(host, _asking(server) + _showing(server))
    answer, mark, confs = said.partition(f"\n{MARK}\n")
    return _facts_in(host, f"{answer}\n" if mark else answer), parse_shown(lines(mark[1:] + confs))


def server_conf(host: Host, server: Server = NGINX) -> tuple[str, ...]:
    """The configurations alone."""
    return parse_shown(lines(output(host, _showing(server))))


def _asking(server: Server) -> str:
    return FACTS.replace(NGINX_VERSION, VERSIONS.get(server.name, NGINX_VERSION))


def _showing(server: Server) -> str:
    return SHOW if server == NGINX else shown(server)


def _facts_in(host: Host, answer: str) -> HostFacts:
    try:
        return parse_facts(answer)
    except (KeyError, ValueError) as error:
        raise CommandError(
            host.address.name, f"its description can't be read ({error}): {answer[:200]!r}"
        ) from error


def parse_facts(text: str) -> HostFacts:
    """The facts in the lines that `FACTS` prints. Raises KeyError or ValueError."""
    said: dict[str, str] = {}
    for line in lines(text):
        name, found, value = line.partition("=")
        if found and said.setdefault(name, value) != value:
            raise ValueError(f"{name[:20]} stands there twice")
    for name in ("machine", "kernel", "cpu", "nginx", "nginx_cpus"):
        if len(said.get(name, "")) > LONGEST:
            raise ValueError(f"{name} has {len(said[name])} characters")
    return HostFacts(
        machine=said["machine"],
        kernel=said["kernel"],
        cpu=said["cpu"] or "unknown",
        cpus=_positive(said["cpus"]),
        memory_bytes=_positive(said["memory_kib"]) * 1024,
        page_bytes=_positive(said["page"]),
        in_namespace=said["namespace"] != "first",
        is_root=said["uid"] == "0",
        nginx=said["nginx"],
        clock_s=decimal(said["clock"]),
        in_user_namespace=said.get("uids", ALL_UIDS) != ALL_UIDS,
        mounts=_mounts(said.get("mounts", "")),
        nginx_cpus=" ".join(sorted(said.get("nginx_cpus", "").split())),
    )


def _mounts(text: str) -> dict[str, bool]:
    """Whether they are read-only, by place, from PLACE and "ro" or "rw" of the mount and of what is
    mounted, in turn. A later one at the same place lies over an earlier one.
    """
    words = text.split()
    return {place: "ro" in modes for place, modes in zip(words[::2], words[1::2], strict=True)}


def _positive(text: str) -> int:
    if (number := count(text)) == 0:
        raise ValueError("a quantity of zero")
    return number
