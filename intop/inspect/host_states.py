"""status and rollback: the values that are applied on the tuned hosts, and their restore.

All that is needed is on the hosts: no store is opened, and nothing is written on our side. Of a
cluster only the load balancer is ever changed, so only that is asked.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TypeVar

from intop.config.study import Study
from intop.domain.applied import drift_of
from intop.domain.cluster import Cluster, HostAddress, LabSpec
from intop.domain.host_state import Answer, HostState, Rollback
from intop.domain.persistent import our_file
from intop.errors import HostError, LabError
from intop.hosts import guard
from intop.hosts.host import Connect, Host, output
from intop.hosts.persistent import read_persistent
from intop.run.context import chosen_archs, cluster_of

T = TypeVar("T")
AT_ONCE = 32
"""Hosts that are asked at the same time."""


def tuned_hosts(
    study: Study, arch: str | None, say: Callable[[str], None]
) -> tuple[list[HostAddress], list[Answer[None]]]:
    """The load balancers of all replicas, and an error for each lab that isn't up.

    An optional lab that isn't up is only told to `say`, unless its architecture was asked for.
    Raises UsageError for an architecture that the study doesn't have.
    """
    addresses: list[HostAddress] = []
    missing: list[Answer[None]] = []
    for name in chosen_archs(study, arch):
        for replica in study.clusters[name]:
            try:
                addresses.append(cluster_of(replica).load_balancer)
            except LabError as error:
                if arch is None and name in study.optional:
                    say(f"{name} is optional in {study.path} and left out: {error}")
                else:
                    missing.append(Answer(name=replica_name(replica), error=str(error)))
    return addresses, missing


def states(addresses: Sequence[HostAddress], connect: Connect) -> list[Answer[HostState]]:
    """Return the state of each host: what is applied by whom, and its drift. Raises nothing."""
    return ask_all(addresses, connect, state_of)


def roll_back(
    addresses: Sequence[HostAddress], connect: Connect, *, force: bool
) -> list[Answer[Rollback]]:
    """Restore each host from the record kept on it; errors are in the answers.

    Without `force` a host whose session is alive, and a key that somebody else has changed, are
    left alone.
    """

    def work(host: Host) -> Rollback:
        done = guard.rollback(host, force=force)
        # Asked after: a host whose lease has lapsed restores itself when it is asked, and then a
        # rollback would have nothing left to tell.
        return Rollback(done=done, held=guard.status(host) if done.outcome == "held" else None)

    return ask_all(addresses, connect, work)


def state_of(host: Host) -> HostState:
    """Return a host's state, with the drift of what is applied there. Raises HostError."""
    state = guard.status(host)
    if state.applied is None:
        return state
    file = state.applied.file
    # The host knows below which root its file is; whoever asks it by --host may not.
    persistent = read_persistent(host, file.removesuffix(our_file("/"))) if file else None
    drift = drift_of(state.applied, persistent, is_held=bool(state.holder))
    return replace(state, drift=drift)


def ask_all(
    addresses: Sequence[HostAddress], connect: Connect, work: Callable[[Host], T]
) -> list[Answer[T]]:
    """The answers in the order of the addresses, each of which is asked once, all at a time."""

    def ask(address: HostAddress) -> Answer[T]:
        try:
            with closing(connect(address)) as host:
                _check_root(host)
                return Answer(name=address.name, folder=address.state_dir, result=work(host))
        except HostError as error:
            return Answer(name=address.name, folder=address.state_dir, error=str(error))

    once = list(dict.fromkeys(addresses))
    if not once:
        return []
    with ThreadPoolExecutor(min(len(once), AT_ONCE)) as pool:
        return list(pool.map(ask, once))


def _check_root(host: Host) -> None:
    """Others can't look into the guard's folder, and would find nothing where a host is held."""
    if output(host, "id -u").strip() != "0":
        raise HostError(
            host.address.name,
            "is reached without root, and only root can see who holds it: use sudo "
            "(--sudo with --host, sudo = true in a study's file)",
        )


def replica_name(replica: Cluster | LabSpec) -> str:
    """Return the name of a replica in an answer, whether it is up or not."""
    return f"lab {replica.name}" if isinstance(replica, LabSpec) else replica.load_balancer.name
