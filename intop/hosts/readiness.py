"""The programs, folders and rights that a campaign needs on a host. Nothing is written."""

from collections.abc import Collection

from intop.domain.cluster import Role
from intop.domain.diagnosis import Readiness
from intop.hosts.answers import by_word, count, joined
from intop.hosts.host import Host, parsed_output
from intop.hosts.load.engine import INTERPRETER
from intop.hosts.trust import BY_LOGIN, BY_ROOT, TRUSTED

TUNERS = ("tuned", "bpftune", "atuned", "puppet", "chef-client", "salt-minion", "cf-execd")
"""Programs, by the kernel's names for them, that set sysctls while they run: tuners, and what keeps
a host's configuration as it was declared. (systemd-sysctl only does so at boot.)"""

NEEDED: dict[Role, tuple[str, ...]] = {
    "load-generator": ("bash", "cat", "id", "mkdir", "mv", "stat", "timeout"),
    "load-balancer": (
        *(
            "base64",
            "bash",
            "cat",
            "cp",
            "cut",
            "date",
            "grep",
            "ln",
            "mkdir",
            "mv",
            "nohup",
            "readlink",
            "rm",
            "sed",
        ),
        *("sha256sum", "sleep", "sort", "stat", "sync", "tail", "tee", "tr", "ss", "ip"),
    ),
    "backend": ("bash",),
}
"""The programs that our scripts call there: no trial can be made without them."""

USEFUL = ("ss", "ip")
"""Programs that look at connections and TCP metrics of every host between trials."""

ENGINE: dict[Role, tuple[str, ...]] = {"load-generator": (INTERPRETER,)}
"""The interpreter of our own load engine. A host with wrk2 can do without."""

PACKAGES = {"bash": "bash", "ss": "iproute2", "ip": "iproute2", "grep": "grep", "sed": "sed"}
"""The packages of programs that are not from coreutils."""

READINESS = f"""
PATH=$PATH:/sbin:/usr/sbin
read -r role
read -r folder
{TRUSTED}
case $role in
load-balancer) {BY_ROOT} ;;
*) {BY_LOGIN} ;;
esac
(trusted "$folder") 2>&1 | sed -n '1s/^/untrusted /p'
while [ ! -e "$folder" ]; do folder=$(dirname "$folder"); done
[ -d "$folder" ] && [ -w "$folder" ] && echo "can_store"
echo "free $(df -Pk "$folder" | sed -n '$s/.* \\([0-9][0-9]*\\)  *[0-9-]*%.*/\\1/p')"
while read -r name; do command -v "$name" >/dev/null || echo "lacks $name"; done
cat /proc/[0-9]*/comm 2>/dev/null | grep -xE '{"|".join(TUNERS)}' | sort -u | sed 's/^/tuner /'
grep -lsE '^[^#]*\\<sysctl\\>' /etc/crontab /etc/cron.*/* /var/spool/cron/* /var/spool/cron/*/* |
    sed 's/^/schedule /'
ls /etc/systemd/system/*sysctl*.timer 2>/dev/null | sed 's/^/schedule /'
read -r line 2>/dev/null < /sys/kernel/security/lockdown &&
    case $line in *'['*']'*) line=${{line#*[}} && echo "lockdown ${{line%%]*}}" ;; esac
read -r line 2>/dev/null < /sys/fs/selinux/enforce && echo "selinux $line"
read -r line 2>/dev/null < /proc/self/attr/current && echo "label $line"
exit 0
"""
"""POSIX sh: a word and what it is about on each line. Role, folder and programs come on stdin."""


def readiness(host: Host) -> Readiness:
    """Return the readiness of a host. Raises CommandError when its answer makes no sense."""
    address = host.address
    names = dict.fromkeys((*NEEDED[address.role], *USEFUL, *ENGINE.get(address.role, ())))
    stdin = joined([address.role, address.state_dir, *names])
    return parsed_output(host, READINESS, parse_readiness, "what it has can't be read", stdin=stdin)


def parse_readiness(text: str) -> Readiness:
    """Return the readiness in the lines that `READINESS` prints. Raises ValueError."""
    facts = by_word(text)

    def each(word: str) -> tuple[str, ...]:
        return tuple(facts.get(word, ()))

    free = next(iter(each("free")), "")
    return Readiness(
        free_mib=count(free) // 1024 if free else None,
        can_store="" in each("can_store"),
        untrusted=next(iter(each("untrusted")), ""),
        lacks=each("lacks"),
        tuners=each("tuner"),
        schedules=each("schedule"),
        confinement=_confinement(each("lockdown"), each("selinux"), each("label")),
    )


def packages_of(programs: Collection[str]) -> str:
    """Return the packages of programs that are missing, as words for apt-get."""
    return " ".join(sorted({PACKAGES.get(name, "coreutils") for name in programs}))


def _confinement(
    lockdown: tuple[str, ...], selinux: tuple[str, ...], label: tuple[str, ...]
) -> str:
    """Return the security modules that may refuse a write although the mode allows it."""
    parts = [f"kernel lockdown: {mode}" for mode in lockdown if mode != "none"]
    if "1" in selinux:
        parts.append(f"SELinux enforces, label {''.join(label)}")
    else:
        parts += [f"AppArmor: {text}" for text in label if text.endswith("(enforce)")]
    return ", ".join(parts)
