"""The facts of a host: architecture, kernel, processors, memory, programs, clock."""

from intop.domain.probing import HostFacts
from intop.domain.server import NGINX, Server
from intop.hosts.answers import count, decimal, lines
from intop.hosts.host import Host, output, parsed_output
from intop.hosts.nginx_conf import MARK, SHOW, parse_shown
from intop.hosts.other_servers import shown
from intop.hosts.scripts import script

LONGEST = 200
"""Characters of a fact in words; these go with every trial that is stored."""


PROBLEM = "its description can't be read"
ALL_UIDS = "4294967295"
"""The number of users in the machine's own user namespace."""


def facts(host: Host, server: Server = NGINX) -> HostFacts:
    """Return the facts of a host. Raises CommandError when its answer makes no sense."""
    return parsed_output(host, facts_script(server), parse_facts, PROBLEM)


def facts_and_conf(host: Host, server: Server = NGINX) -> tuple[HostFacts, tuple[str, ...]]:
    """Return the facts, and the configurations of its server as in `parse_shown`.

    One command asks for both. Raises CommandError when its answer makes no sense.
    """

    def parse(text: str) -> tuple[HostFacts, tuple[str, ...]]:
        answer, mark, confs = text.partition(f"\n{MARK}\n")
        return parse_facts(answer + mark[:1]), parse_shown(lines(mark[1:] + confs))

    return parsed_output(host, facts_script(server) + _showing(server), parse, PROBLEM)


def server_conf(host: Host, server: Server = NGINX) -> tuple[str, ...]:
    """Return the configurations of a host's server."""
    return parse_shown(lines(output(host, _showing(server))))


def facts_script(server: Server = NGINX) -> str:
    """Return the script that prints the facts of a host with this server."""
    return script(f"servers/{server.name}.sh") + script("facts.sh")


def _showing(server: Server) -> str:
    return SHOW if server == NGINX else shown(server)


def parse_facts(text: str) -> HostFacts:
    """Return the facts in the lines that `facts.sh` prints. Raises KeyError or ValueError."""
    values: dict[str, str] = {}
    for line in lines(text):
        name, sign, value = line.partition("=")
        if sign and values.setdefault(name, value) != value:
            raise ValueError(f"{name[:20]} stands there twice")
    for name in ("machine", "kernel", "cpu", "nginx", "nginx_cpus", "congestion_control"):
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
        congestion_control=values.get("congestion_control", ""),
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
