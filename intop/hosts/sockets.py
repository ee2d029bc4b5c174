"""TCP sockets of a host, as `ss` lists them, and those by which the load comes in."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from intop.domain.cluster import Cluster
from intop.hosts.answers import lines
from intop.hosts.host import Host, output

LISTENING = "PATH=$PATH:/sbin:/usr/sbin; ss -Htlnp 2>/dev/null || echo unseen"
"""All listening TCP sockets with their programs: those of all users for root only."""

_PROGRAM = re.compile(r'\("([^"]*)",pid=')
LOOPBACK = ("127.", "::1", "localhost")
EVERYWHERE = {4: ("0.0.0.0", "*"), 6: ("::", "*")}  # noqa: S104 (it is only looked for)
"""The words of `ss` for all addresses, by version of IP; * is both versions."""


@dataclass(frozen=True)
class Sock:
    """A TCP socket as `ss` prints it."""

    state: str
    local: str
    """Its own end, ADDRESS:PORT."""
    peer: str
    """The other end, ADDRESS:PORT."""
    inode: str = ""
    programs: tuple[str, ...] = ()
    """The programs that have it open, by the kernel's names; none where that is not known."""

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends, which identify a connection in any state."""
        return self.local, self.peer


def parse_sockets(listed: Sequence[str]) -> tuple[Sock, ...]:
    """Return sockets from the lines that `ss` prints without a header; other lines are left out."""
    sockets = []
    for line in listed:
        words = line.split()
        if len(words) >= 5 and words[1].isdigit() and words[2].isdigit():
            inode = next((w.removeprefix("ino:") for w in words if w.startswith("ino:")), "")
            local, peer = (_plain(word) for word in words[3:5])
            programs = tuple(dict.fromkeys(_PROGRAM.findall(line)))
            sockets.append(Sock(words[0], local, peer, inode, programs))
    return tuple(sockets)


def _plain(end: str) -> str:
    """Return an end without brackets, and in IPv4's form where an IPv6 socket carries it."""
    address, _, port = end.rpartition(":")
    return f"{address.strip('[]').removeprefix('::ffff:')}:{port}"


def port_of(cluster: Cluster) -> int:
    """Return the port of the cluster's URL."""
    url = urlsplit(cluster.url)
    return url.port or (443 if url.scheme == "https" else 80)


def load_sockets(cluster: Cluster, sockets: Iterable[Sock]) -> list[Sock]:
    """Return the load balancer's sockets that listen on the URL's port.

    A socket that only the host itself can reach counts only for a URL with such an address. For a
    URL with an address, sockets that listen on it, or else on all of its kind, come first: a
    container's may stand beside nginx's. An address of another host, which passes it on, selects
    all.
    """
    name = urlsplit(cluster.url).hostname or ""
    is_own = name.startswith(LOOPBACK)
    listening_there = [
        s
        for s in sockets
        if s.state == "LISTEN"
        and s.local.endswith(f":{port_of(cluster)}")
        and (is_own or not s.local.startswith(LOOPBACK))
    ]
    try:
        everywhere = EVERYWHERE[ip_address(name).version]
    except ValueError:
        return listening_there  # a name
    for addresses in ((name,), everywhere):
        if taken := [s for s in listening_there if s.local.rpartition(":")[0] in addresses]:
            return taken
    return listening_there


def listening(host: Host, cluster: Cluster) -> list[Sock] | None:
    """Return the load balancer's sockets that listen on the URL's port.

    They are those in the network namespace of our commands, whose keys are set. None where `ss`
    can't list them. Raises CommandError and UnreachableError as `output` does.
    """
    listed = lines(output(host, LISTENING))
    return None if "unseen" in listed else load_sockets(cluster, parse_sockets(listed))


def nobody_listens(cluster: Cluster) -> str:
    """Return the message for a load balancer without such a socket."""
    return (
        f"nothing listens on port {port_of(cluster)} in the network namespace whose keys are set. "
        f"Start {cluster.server.title} there. If it runs in a container, tuned keys don't act on "
        "it: give the "
        "container the host's network (docker run --network host), or let intop reach the "
        "container's namespace as load_balancer"
    )
