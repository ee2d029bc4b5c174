"""The lab's network: six namespaces of this machine, one of them the switch, and their links.

Every namespace of a lab is `intop-LAB-PART`, where PART has no hyphen, so the name of a
namespace tells its lab without doubt also where one lab is called `a` and another `a-lb`.
Only one end of one link is visible in the machine's own namespace: `intop-LAB`.

A host that is a guest (a virtual machine) has no namespace. It hangs at a tap device, which stands
in the switch's namespace as the other hosts' ends do.
"""

import json
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from typing import Any

from intop.domain.cluster import MAX_CLIENTS, LabSpec, Link, lab_name_problem
from intop.errors import LabError
from intop.lab.commands import run

NAMESPACE_FOLDER = Path("/run/netns")
SESSIONS = Path("/run/intop-guard")
"""The folder in which guard.sh lists the state folders of each network namespace."""
HOSTS: Mapping[str, int] = {"lg": 10, "lb": 20, "b1": 31, "b2": 32, "b3": 33}
"""The hosts of a lab, and the last number of their addresses."""
MORE_CLIENTS: Mapping[str, int] = {f"c{n}": 10 + n for n in range(2, MAX_CLIENTS + 1)}
"""Load generators beside the first one."""
NUMBERS: Mapping[str, int] = {**HOSTS, **MORE_CLIENTS}
BALANCER = "lb"
BACKENDS = ("b1", "b2", "b3")
CONTROLLER = 1
"""The last number of the machine's own address in the lab's network."""
SWITCH = "sw"
INTERFACE = "eth0"
"""A host's only interface, inside its namespace."""
POOL = IPv4Network("198.18.0.0/15")
"""Reserved for benchmarks (RFC 2544): nothing on the internet lives there."""
PREFIX = 24
"""Bits of a lab's network, which has room for all its hosts."""


def namespace(lab: str, part: str) -> str:
    """Return the namespace of one part: a host, or the switch."""
    return f"intop-{lab}-{part}"


def clients(count: int) -> tuple[str, ...]:
    """Return so many load generators."""
    return ("lg", *MORE_CLIENTS)[:count]


def hosts(count: int = 1) -> tuple[str, ...]:
    """Return the hosts of a lab with so many load generators."""
    return (*HOSTS, *clients(count)[1:])


def namespaces(lab: str, guests: Collection[str] = (), count: int = 1) -> tuple[str, ...]:
    """Return all namespaces of a lab with so many load generators."""
    return tuple(namespace(lab, part) for part in (SWITCH, *hosts(count)) if part not in guests)


def guests_of(spec: LabSpec) -> tuple[str, ...]:
    """Return the hosts of a lab that are virtual machines."""
    return () if spec.kind == "namespaces" else (BALANCER,)


def lab_of_namespace(name: str) -> str | None:
    """Return the lab that a namespace belongs to; None for somebody else's namespace."""
    start, _, part = name.rpartition("-")
    lab = start.removeprefix("intop-")
    if part in (SWITCH, *NUMBERS) and start.startswith("intop-") and lab_name_problem(lab) is None:
        return lab
    return None


def machine_link(lab: str) -> str:
    """Return the controller's way into the lab: an interface in the machine's own namespace."""
    return f"intop-{lab}"


def address(subnet: IPv4Network, host: str) -> str:
    """Return a host's address in the lab's network."""
    return str(subnet[NUMBERS[host]])


def addresses(subnet: IPv4Network, some: Iterable[str] = BACKENDS) -> list[str]:
    """Return the addresses of several hosts."""
    return [address(subnet, host) for host in some]


def choose_subnet(taken: Iterable[IPv4Network]) -> IPv4Network:
    """Return the first network of the pool that overlaps with nothing that is taken."""
    used = tuple(taken)
    for subnet in POOL.subnets(new_prefix=PREFIX):
        if not any(map(subnet.overlaps, used)):
            return subnet
    raise LabError(f"no /24 of {POOL} is free for a lab: the machine's routes cover all of them")


def parse_routes(text: str) -> list[IPv4Network]:
    """Return the destinations that `ip -json route` prints, without the default route."""
    routes: list[dict[str, Any]] = json.loads(text or "[]")
    destinations = (ip_network(route["dst"]) for route in routes if route["dst"] != "default")
    return [to for to in destinations if isinstance(to, IPv4Network) and to.prefixlen > 0]


def machine_routes() -> list[IPv4Network]:
    """Return the networks that the machine can reach already, by any of its routing tables."""
    return parse_routes(run(["ip", "-4", "-json", "route", "show", "table", "all"]))


def wiring(spec: LabSpec, subnet: IPv4Network) -> list[tuple[str | None, list[str]]]:
    """Return the `ip -batch` lines for each namespace, in order; None is the machine's own."""
    lab, guests, bits = spec.name, guests_of(spec), subnet.prefixlen
    switch = ["link set lo up", "link add name br0 type bridge", "link set br0 up"]
    for host in hosts(len(spec.client_links)):
        veth = f"link add name {host} type veth peer name {INTERFACE} netns {namespace(lab, host)}"
        switch.append(f"tuntap add dev {host} mode tap" if host in guests else veth)
        switch.append(f"link set {host} master br0 up")
    machine = [
        f"link add name {machine_link(lab)} type veth peer name ctl netns {namespace(lab, SWITCH)}",
        f"address add {subnet[CONTROLLER]}/{bits} dev {machine_link(lab)}",
        f"link set {machine_link(lab)} up",
    ]
    steps: list[tuple[str | None, list[str]]] = [
        (namespace(lab, SWITCH), switch),
        (None, machine),
        (namespace(lab, SWITCH), ["link set ctl master br0 up"]),
    ]
    for host in (host for host in hosts(len(spec.client_links)) if host not in guests):
        lines = [
            "link set lo up",
            f"address add {address(subnet, host)}/{bits} dev {INTERFACE}",
            f"link set {INTERFACE} up",
        ]
        steps.append((namespace(lab, host), lines))
    return steps


def shaping(link: Link | None) -> list[list[str]]:
    """Return the commands that shape what the load balancer sends. `client_link` has the rest."""
    if link is None or link.is_at_client or link.rate_mbit is None:
        return []
    where = ["tc", "qdisc", "add", "dev", INTERFACE, "root"]
    return [[*where, *bucket(link.rate_mbit, link.burst_kb, link.limit_kb)]]


def bucket(rate_mbit: float, burst_kb: int, limit_kb: int) -> list[str]:
    """Return `tc`'s words for a token bucket."""
    rate = f"{round(rate_mbit * 1e6)}bit"
    return ["tbf", "rate", rate, "burst", f"{burst_kb}kb", "limit", f"{limit_kb}kb"]


def shape_problem(link: Link | None, shown: str) -> str | None:
    """Return what is wrong with an interface's root discipline, as `tc qdisc show` prints it."""
    wanted = "tbf" if shaping(link) else None
    kind = next((kind for kind in ("tbf", "netem") if shown.startswith(f"qdisc {kind}")), None)
    if kind == wanted:
        return None
    return f"the link has {shown or 'no queueing'!r}, expected {link if wanted else 'no shaping'}"


def inside(lab: str, part: str, *arguments: str) -> list[str]:
    """Return the command that runs `arguments` inside a namespace of the lab."""
    return ["ip", "netns", "exec", namespace(lab, part), *arguments]


def build(spec: LabSpec, subnet: IPv4Network) -> None:
    """Make namespaces and links, shape what the load balancer sends unless it is a guest."""
    lab, guests, count = spec.name, guests_of(spec), len(spec.client_links)
    for name in namespaces(lab, guests, count):
        run(["ip", "netns", "add", name])
    for inside_of, lines in wiring(spec, subnet):
        where = [] if inside_of is None else ["-netns", inside_of]
        run(["ip", *where, "-batch", "-"], text_in="\n".join(lines) + "\n")
    for program, *words in shaping(spec.link) if not guests else []:
        run([program, "-netns", namespace(lab, BALANCER), *words])
    # 28,000 ports are soon in TIME_WAIT when every request has a connection of its own.
    for host in clients(count):
        run(inside(lab, host, "sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=1024 65535"))


def start_with(lab: str, sysctls: Iterable[tuple[str, str]]) -> None:
    """Give the load balancer's namespace values of its own.

    Raises LabError for a key that it doesn't have or can't write: then it is the machine's.
    """
    for key, value in sysctls:
        run(inside(lab, BALANCER, "sysctl", "-q", "-w", f"{key}={value}"))


def queueing(lab: str) -> str:
    """Return `tc`'s line for the load balancer's interface: `noqueue` when it is not shaped."""
    where = ["-netns", namespace(lab, BALANCER)]
    return run(["tc", *where, "qdisc", "show", "dev", INTERFACE, "root"]).strip()


def all_namespaces() -> list[str]:
    """Return the names of all network namespaces of this machine, whoever made them."""
    try:
        return sorted(entry.name for entry in NAMESPACE_FOLDER.iterdir())
    except FileNotFoundError:
        return []


def existing_namespaces(lab: str) -> list[str]:
    """Return the names of a lab's namespaces that exist on this machine."""
    return [name for name in all_namespaces() if name in namespaces(lab, count=MAX_CLIENTS)]


def has_machine_link(lab: str) -> bool:
    """Whether the controller's way into the lab exists."""
    return any(name == machine_link(lab) for _, name in socket.if_nameindex())


def labs_with_links() -> list[str]:
    """Return the labs that have an interface in the machine's own namespace."""
    names = (name for _, name in socket.if_nameindex() if name.startswith("intop-"))
    labs = (name.removeprefix("intop-") for name in names)
    return [lab for lab in labs if lab_name_problem(lab) is None]


def remove_machine_link(lab: str) -> list[str]:
    """Delete the link's end on this machine, and with it the other end."""
    if not has_machine_link(lab):
        return []
    run(["ip", "link", "delete", machine_link(lab)])
    return [machine_link(lab)]


def remove_namespaces(lab: str) -> Iterator[str]:
    """Delete the lab's namespaces, which must be without processes by now; name each."""
    for name in existing_namespaces(lab):
        number = (NAMESPACE_FOLDER / name).stat().st_ino
        for sessions in SESSIONS.glob(f"{number}-*"):
            sessions.unlink(missing_ok=True)
        run(["ip", "netns", "delete", name])
        yield name
