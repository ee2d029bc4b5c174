"""Settling: leftovers of the load before are gone, or reported, before the next one begins."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from intop.domain.cluster import Cluster
from intop.errors import CommandError
from intop.hosts.answers import count, lines
from intop.hosts.host import MOST_SHOWN, Host
from intop.hosts.rig import Rig
from intop.hosts.sockets import Sock, load_sockets, nobody_listens, parse_sockets, port_of

RESTART_LIMIT_S = 60.0
LISTEN_LIMIT_S = 10.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
"""Pauses between looks: a closed connection takes ms to be acknowledged, TIME_WAIT a minute."""

SOCKETS = "PATH=$PATH:/sbin:/usr/sbin; ss -Htane exclude time-wait 2>/dev/null"
"""All TCP sockets but those in TIME_WAIT. The kernel sorts them out: reading /proc/net/tcp takes
three times as long, and grows with their number."""

LOOK = f"""
while read -r line; do
    case $line in TCP:*" tw "*) line=${{line#*" tw "}} && echo "waiting ${{line%% *}}" ;; esac
done < /proc/net/sockstat
{SOCKETS} || echo unseen
ip tcp_metrics flush
"""
"""A host's count of sockets in TIME_WAIT and its other sockets; then its kernel forgets what it
learned about its peers. In this order: a connection leaves what it learned when it ends."""

SENDING = ("FIN-WAIT-1", "CLOSING", "LAST-ACK")
"""States of a closed connection whose last data or FIN is still to be acknowledged, so that the
kernel sends it again. In FIN-WAIT-2, as in TIME_WAIT, nothing is sent any more."""
OPEN = ("ESTAB", "CLOSE-WAIT")


@dataclass(frozen=True)
class Seen:
    """The result of one look at a host."""

    time_wait: int
    sockets: tuple[Sock, ...]
    unseen: bool
    """Whether the sockets are not known."""
    unflushed: bool
    """Whether its kernel did not forget."""


@dataclass(frozen=True, kw_only=True)
class Unsettled:
    """The quantities of a cluster that could not be settled, in words; "" for none."""

    left: str = ""
    """The quantities that have certainly not settled."""
    unknown: str = ""
    """The quantities that hosts without root or iproute2 don't show."""


def settle(rig: Rig, *, max_time_wait: int, limit_s: float) -> Unsettled:
    """Bring the cluster into a defined state; return what could not be settled.

    The load balancer's server opens its sockets anew (somaxconn is read then). Then it is waited,
    at most `limit_s`, until no host is still sending for a connection that is closed, no connection
    of the load before is left on the load generator and the load balancer, and every host has at
    most `max_time_wait` sockets in TIME_WAIT. All kernels forget what they learned about their
    peers. Nothing is killed: sockets that appear meanwhile are somebody else's, and don't count.

    Raises:
        CommandError: The server does not come back, or does not listen within `limit_s` in the
            network namespace whose keys are set; or the load balancer can't be looked at, or does
            not forget.
    """
    before = restart(rig)
    balancer = rig.load_balancer.address.name
    leftovers: dict[str, set[tuple[str, str]]] = {balancer: {s.ends for s in before}}
    deadline = time.monotonic() + limit_s
    pause = FIRST_PAUSE_S
    while True:
        seen = rig.on_all(_look)
        for name, look in seen.items():
            ends = {s.ends for s in _busy(rig.cluster, name, look.sockets)}
            leftovers[name] = leftovers.get(name, ends) & ends
        problems = _problems(leftovers, seen, max_time_wait)
        listens = bool(load_sockets(rig.cluster, seen[balancer].sockets))
        if (listens and not problems) or time.monotonic() > deadline:
            break
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
    if not listens:
        raise CommandError(
            balancer, f"after `{rig.cluster.server_restart}`, {nobody_listens(rig.cluster)}"
        )
    kept = _kept_listening(rig.cluster, before, seen[balancer].sockets)
    return Unsettled(left="; ".join([*problems, *kept]), unknown="; ".join(_unknown(seen)))


def restart(rig: Rig) -> tuple[Sock, ...]:
    """Restart the server; return the sockets that the load balancer had before.

    Raises CommandError when it does not come back.
    """
    host = rig.load_balancer
    command = rig.cluster.server_restart
    done = host.run(f"{SOCKETS}\n{command}", timeout_s=RESTART_LIMIT_S)
    if done.exit_code != 0:
        raise CommandError(
            host.address.name,
            f"exit code {done.exit_code} of `{command}`, which said: {done.message}",
        )
    return parse_sockets(lines(done.stdout))


def check_restart(rig: Rig) -> list[str]:
    """Restart the server as a trial does; return what is wrong with its sockets afterwards.

    Raises CommandError when it does not come back, or does not listen within LISTEN_LIMIT_S.
    """
    before = restart(rig)
    deadline = time.monotonic() + LISTEN_LIMIT_S
    while not load_sockets(rig.cluster, now := _look(rig.load_balancer).sockets):
        if time.monotonic() > deadline:
            raise CommandError(
                rig.load_balancer.address.name,
                f"after `{rig.cluster.server_restart}`, {nobody_listens(rig.cluster)}",
            )
        time.sleep(LONGEST_PAUSE_S)
    return _kept_listening(rig.cluster, before, now)


def _look(host: Host) -> Seen:
    done = host.run(LOOK)
    listed = lines(done.stdout)
    try:
        (waiting,) = (count(line[8:]) for line in listed if line.startswith("waiting "))
    except ValueError as error:
        raise CommandError(
            host.address.name, f"its sockets in TIME_WAIT can't be counted: {error}"
        ) from error
    unseen = "unseen" in listed
    is_balancer = host.address.role == "load-balancer"
    if is_balancer and unseen:
        raise CommandError(host.address.name, "its sockets can't be listed by `ss` (of iproute2)")
    if is_balancer and done.exit_code != 0:
        complaint = done.stderr.strip()[-MOST_SHOWN:] or "nothing"
        raise CommandError(
            host.address.name,
            f"exit code {done.exit_code} of `ip tcp_metrics flush`, which said: {complaint}",
        )
    return Seen(waiting, parse_sockets(listed), unseen, done.exit_code != 0)


def _busy(cluster: Cluster, name: str, sockets: Collection[Sock]) -> list[Sock]:
    """Return the sockets that would be felt in the next load, if they were of the load before.

    An open connection is of the load where it ends at the load balancer's port, as the URL has it.
    A load generator may have others, of other clusters; it knows ours where the URL has the
    load balancer's address, not its name.
    """
    port = f":{port_of(cluster)}"
    target = f"{urlsplit(cluster.url).hostname}{port}"
    generators = {address.name for address in cluster.load_generators}

    def is_load(sock: Sock) -> bool:
        if name == cluster.load_balancer.name:
            return sock.local.endswith(port)
        return name in generators and sock.peer == target

    return [s for s in sockets if s.state in SENDING or (s.state in OPEN and is_load(s))]


def _problems(
    leftovers: Mapping[str, Collection[tuple[str, str]]],
    seen: Mapping[str, Seen],
    max_time_wait: int,
) -> list[str]:
    """Return the reasons to wait further."""
    problems = [
        f"{name} still has {len(left)} connections of the load before"
        for name, left in leftovers.items()
        if left
    ]
    worst = max(seen, key=lambda name: seen[name].time_wait)
    if seen[worst].time_wait > max_time_wait:
        problems.append(f"{worst} still has {seen[worst].time_wait} sockets in TIME_WAIT")
    return problems


def _kept_listening(cluster: Cluster, before: Collection[Sock], now: Collection[Sock]) -> list[str]:
    """Return a warning where the server listens on a socket that it had before."""
    old, new = ({s.inode for s in load_sockets(cluster, socks)} for socks in (before, now))
    if not old & new:
        return []
    return [
        (
            f"{cluster.load_balancer.name} still listens on the socket from before: "
            f"`{cluster.server_restart}` does not open it anew, so that changes of somaxconn have "
            "no effect"
        )
    ]


def _unknown(seen: Mapping[str, Seen]) -> list[str]:
    """Return what can't be settled on hosts that don't let us, or have no iproute2."""
    unseen = [name for name, look in seen.items() if look.unseen]
    unflushed = [name for name, look in seen.items() if look.unflushed]
    lines = [f"{', '.join(unseen)}: connections were not looked at"] if unseen else []
    return lines + ([f"{', '.join(unflushed)}: TCP metrics were kept"] if unflushed else [])
