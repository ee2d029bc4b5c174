"""A client's link: the way between a load generator and the load balancer, with delay and loss.

A load generator's own interface stays as it is: that is how its host is reached, and no trial's
result shall wait or get lost. What goes to and comes from the load balancer takes a second
interface. In the switch's namespace the link ends at a port of the bridge.

Between the two is the kernel's netem, or where there is none our own process (lua/link.lua) that
joins two tap devices. netem changes the order of packets that are delayed by chance, so jitter is
always the process's. Both handle packets one by one, however large a batch TCP hands down.
"""

import os
from ipaddress import IPv4Network
from pathlib import Path
from typing import Literal

from intop.domain.cluster import Direction, Link
from intop.errors import LabError
from intop.lab import network, processes
from intop.lab.commands import last_lines, require_programs, run, start, wait_until
from intop.resources import shipped

Medium = Literal["netem", "process"]

INTERFACE = "wan"
"""The load generator's second interface."""
PROGRAM = "intop-link"
"""The kernel's name for our process."""
QUEUE = 4000
"""Frames that a tap holds until our process reads them: 0.2 s at 200 Mbit/s."""
BURST_KB = 4
"""netem's bottleneck lets so much pass at once: the least that a packet fits in."""
START_LIMIT_S = 10.0
PRIORITY = -10
"""Niceness of our process, where it may not be real-time: its lateness is delay, too."""
TUN_DEVICE = Path("/dev/net/tun")

WATCHED = '"$@"; kill $(ip netns pids "$0")'
"""sh: run the link; when it ends, its load generator ends, too, sshd and all.

So whoever measures loses the connection at once, and takes no lost request for a result.
"""


def medium(link: Link) -> Medium:
    """Return what this machine makes a link by. Raises LabError when it has neither."""
    if not any(way.jitter_ms for way in link.directions) and has_netem():
        return "netem"
    require_programs({("luajit",): "luajit"}, "a link with delay or loss")
    if not TUN_DEVICE.exists():
        raise LabError(
            f"a link with delay or loss needs sch_netem or {TUN_DEVICE}, and this machine has "
            "neither: modprobe tun"
        )
    return "process"


def has_netem() -> bool:
    """Whether the kernel has netem: it is tried, in a namespace made for it."""
    trial = f"intop-netem-{os.getpid()}"
    run(["ip", "netns", "add", trial])
    try:
        run(["tc", "-netns", trial, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"])
    except LabError:
        return False
    finally:
        run(["ip", "netns", "delete", trial])
    return True


# -- what it consists of -------------------------------------------------------------------------


def address(subnet: IPv4Network, host: str) -> str:
    """Return the address that a load generator's requests come from."""
    return str(subnet[100 + network.NUMBERS[host]])


def port(host: str) -> str:
    """Return the link's end at the bridge, in the switch's namespace."""
    return f"{host}-wan"


def _inner(host: str) -> tuple[str, str]:
    """Return the two ends of netem's part of the way, in the switch's namespace."""
    return f"{host}-up", f"{host}-down"


def wiring(lab: str, subnet: IPv4Network, host: str, by: Medium) -> list[tuple[str, list[str]]]:
    """Return the `ip -batch` lines for each namespace, in order."""
    switch, client = (network.namespace(lab, part) for part in (network.SWITCH, host))
    balancer = network.address(subnet, network.BALANCER)
    joined = [f"link set {port(host)} master br0 up"]
    reached = [
        f"link set {INTERFACE} up",
        f"address add {address(subnet, host)}/32 dev {INTERFACE}",
        f"route add {balancer}/32 dev {INTERFACE} src {address(subnet, host)}",
    ]
    if by == "process":
        return [
            (switch, [*_tap(port(host)), *joined]),
            (client, [*_tap(INTERFACE), *reached]),
        ]
    # A device cuts what it sends into packets (gso_max_segs) only after its own discipline, so
    # they are cut one device before netem's.
    up, down = _inner(host)
    bridge = f"{host}-br"
    return [
        (
            switch,
            [
                f"link add name {port(host)} type veth peer name {up}",
                f"link add name {down} type veth peer name {INTERFACE} netns {client}",
                f"link set {port(host)} gso_max_segs 1",
                f"link add name {bridge} type bridge",
                *(f"link set {end} master {bridge} up" for end in (up, down)),
                f"link set {bridge} arp off up",  # it only hands on
                *joined,
            ],
        ),
        (client, [f"link set {INTERFACE} gso_max_segs 1", *reached]),
    ]


def _tap(device: str) -> list[str]:
    return [f"tuntap add dev {device} mode tap", f"link set {device} txqueuelen {QUEUE}"]


def netem(host: str, link: Link) -> list[list[str]]:
    """The `tc` commands for netem, in the switch's namespace."""
    up, down = _inner(host)
    to_client, from_client = link.directions
    return [*_netem(down, to_client), *_netem(up, from_client)]


def _netem(device: str, link: Direction) -> list[list[str]]:
    # Room for a second at 100 Mbit/s: what is dropped shall be dropped by the bottleneck.
    root = ["qdisc", "add", "dev", device, "root", "handle", "1:", "netem", "limit", "10000"]
    root += ["delay", f"{link.delay_ms:g}ms"] if link.delay_ms else []
    root += ["loss", f"{link.loss_percent:g}%"] if link.loss_percent else []
    if link.rate_mbit is None:
        return [root]
    where = ["qdisc", "add", "dev", device, "parent", "1:1"]
    return [root, [*where, *network.bucket(link.rate_mbit, BURST_KB, link.limit_kb)]]


def words(lab: str, host: str, link: Link, pid_file: Path) -> list[str]:
    """Return the command line of our process, for the switch's namespace."""
    return [
        *("luajit", str(shipped("lua") / "link.lua"), "--name", PROGRAM),
        *("--pid-file", str(pid_file), "--device", port(host)),
        *("--far-namespace", str(network.NAMESPACE_FOLDER / network.namespace(lab, host))),
        *("--far-device", INTERFACE, "--seed", str(link.seed)),
        *(
            word
            for name, way in zip(("down", "up"), link.directions, strict=True)
            for word in _way(name, way)
        ),
    ]


def _way(name: str, link: Direction) -> list[str]:
    shape = {
        "delay": link.delay_ms,
        "jitter": link.jitter_ms,
        "loss": link.loss_percent / 100,
    }
    if link.rate_mbit is not None:
        shape |= {"rate": link.rate_mbit * 1e6, "limit": link.limit_kb * 1024}
    return [word for key, value in shape.items() for word in (f"--{name}-{key}", f"{value:.12g}")]


# -- a link at work ------------------------------------------------------------------------------


def build(lab: str, subnet: IPv4Network, host: str, link: Link, by: Medium, folder: Path) -> None:
    """Make a load generator's link, and wait until it is up. `folder` is the host's own."""
    for name, lines in wiring(lab, subnet, host, by):
        run(["ip", "-netns", name, "-batch", "-"], text_in="\n".join(lines) + "\n")
    # Two interfaces in one network: each answers for its own address only.
    keys = ["net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2"]
    run(network.inside(lab, host, "sysctl", "-q", "-w", *keys))
    if by == "netem":
        for command in netem(host, link):
            run(["tc", "-netns", network.namespace(lab, network.SWITCH), *command])
        return
    shell = ["setsid", "--fork", "nice", "-n", str(PRIORITY), "sh", "-c", WATCHED]
    command = [*shell, network.namespace(lab, host), *words(lab, host, link, _pid_file(folder))]
    start(network.inside(lab, network.SWITCH, *command), log=_log(folder))
    wait_until(lambda: problem(lab, host, by, folder), limit_s=START_LIMIT_S)


def problem(lab: str, host: str, by: Medium, folder: Path) -> str | None:
    """Return why nothing goes over the link; None while it works."""
    if by == "netem":
        where = ["-netns", network.namespace(lab, network.SWITCH)]
        devices = _inner(host)
        shown = [run(["tc", *where, "qdisc", "show", "dev", d, "root"]) for d in devices]
        lost = not all(text.startswith("qdisc netem") for text in shown)
        return f"{host}: its link has lost netem" if lost else None
    if pid(lab, host, folder) is not None:
        return None
    return f"{host}: its link does not run{last_lines(_log(folder))}"


def pid(lab: str, host: str, folder: Path) -> int | None:
    """Return our process, if it is the one that was started for this load generator."""
    try:
        process = int(_pid_file(folder).read_text())
    except (OSError, ValueError):
        return None
    where = processes.identity(network.NAMESPACE_FOLDER / network.namespace(lab, host))
    is_ours = processes.command_name(process) == PROGRAM
    return process if is_ours and where and processes.namespace_of(process) == where else None


def _pid_file(folder: Path) -> Path:
    return folder / "link.pid"


def _log(folder: Path) -> Path:
    return folder / "link.log"
