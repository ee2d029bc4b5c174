"""The programs, folders and rights that a campaign needs on a host. Nothing is written."""

from collections.abc import Collection

from intop.domain.cluster import Role
from intop.domain.diagnosis import Readiness
from intop.hosts.answers import by_word, count, joined
from intop.hosts.host import Host, parsed_output
from intop.hosts.load.engine import INTERPRETER
from intop.hosts.scripts import script

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

READINESS = script("readiness.sh")


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
