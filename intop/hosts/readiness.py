"""What a host has for a campaign, and who else there would set its sysctls. Read-only."""

from collections.abc import Collection

from intop.domain.cluster import Role
from intop.domain.diagnosis import Readiness
from intop.errors import CommandError
from intop.hosts.answers import count
from intop.hosts.fetch import INTERPRETER
from intop.hosts.guard_script import BY_LOGIN, BY_ROOT, TRUSTED
from intop.hosts.host import Host, output

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
"""What our scripts call there, and a trial can't be made without."""

USEFUL = ("ss", "ip")
"""What lets every host's connections and TCP metrics be looked at between trials."""

ENGINE: dict[Role, tuple[str, ...]] = {"load-generator": (INTERPRETER,)}
"""What our own load engine runs in. A host with wrk2 can do without."""

PACKAGES = {"bash": "bash", "ss": "iproute2", "ip": "iproute2", "grep": "grep", "sed": "sed"}
"""Where programs are from, if not from coreutils."""

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
    """Ask the host. Raises CommandError when its answer makes no sense."""
    address = host.address
    names = dict.fromkeys((*NEEDED[address.role], *USEFUL, *ENGINE.get(address.role, ())))
    stdin = "".join(f"{line}\n" for line in (address.role, address.state_dir, *names))
    answer = output(host, READINESS, stdin=stdin)
    try:
        return parse_readiness(answer)
    except ValueError as error:
        raise CommandError(
            address.name, f"what it has can't be read ({error}): {answer[:200]!r}"
        ) from error


def parse_readiness(text: str) -> Readiness:
    """From the lines that `READINESS` prints. Raises ValueError."""
    parts = [line.partition(" ") for line in text.split("\n")]

    def told(word: str) -> tuple[str, ...]:
        return tuple(rest for first, _, rest in parts if first == word)

    free = next(iter(told("free")), "")
    return Readiness(
        free_mib=count(free) // 1024 if free else None,
        can_store=("can_store", "", "") in parts,
        untrusted=next(iter(told("untrusted")), ""),
        lacks=told("lacks"),
        tuners=told("tuner"),
        schedules=told("schedule"),
        confinement=_confinement(told("lockdown"), told("selinux"), told("label")),
    )


def packages_of(programs: Collection[str]) -> str:
    """What to install for programs that are missing, in words for apt-get."""
    return " ".join(sorted({PACKAGES.get(name, "coreutils") for name in programs}))


def _confinement(
    lockdown: tuple[str, ...], selinux: tuple[str, ...], label: tuple[str, ...]
) -> str:
    """What may refuse a write although the mode allows it."""
    parts = [f"kernel lockdown: {mode}" for mode in lockdown if mode != "none"]
    if "1" in selinux:
        parts.append(f"SELinux enforces, label {''.join(label)}")
    else:
        parts += [f"AppArmor: {text}" for text in label if text.endswith("(enforce)")]
    return ", ".join(parts)
