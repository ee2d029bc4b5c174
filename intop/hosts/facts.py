"""What a host is: architecture, kernel, processors, memory, programs, clock."""

from intop.domain.probing import HostFacts
from intop.errors import CommandError
from intop.hosts.host import Host, output

FACTS = """
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
echo "nginx=$(nginx -v 2>&1 | sed -n 's/^nginx version: *//p')"
echo "clock=$(date +%s.%N)"
"""


ALL_UIDS = "4294967295"
"""How many users there are in the machine's own user namespace."""


def facts(host: Host) -> HostFacts:
    """Ask the host. Raises CommandError when its answer makes no sense."""
    answer = output(host, FACTS)
    try:
        return parse_facts(answer)
    except (KeyError, ValueError) as error:
        raise CommandError(
            host.address.name, f"its description can't be read ({error}): {answer[:200]!r}"
        ) from error


def parse_facts(text: str) -> HostFacts:
    """The facts in the lines that `FACTS` prints. Raises KeyError or ValueError."""
    said = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return HostFacts(
        machine=said["machine"],
        kernel=said["kernel"],
        cpu=said["cpu"] or "unknown",
        cpus=int(said["cpus"]),
        memory_bytes=int(said["memory_kib"]) * 1024,
        page_bytes=int(said["page"]),
        in_namespace=said["namespace"] != "first",
        is_root=said["uid"] == "0",
        nginx=said["nginx"],
        clock_s=float(said["clock"]),
        in_user_namespace=said.get("uids", ALL_UIDS) != ALL_UIDS,
        mounts=_mounts(said.get("mounts", "")),
    )


def _mounts(text: str) -> dict[str, bool]:
    """Whether they are read-only, by place, from PLACE and "ro" or "rw" of the mount and of what is
    mounted, in turn. A later one at the same place lies over an earlier one.
    """
    words = text.split()
    return {place: "ro" in modes for place, modes in zip(words[::2], words[1::2], strict=True)}
