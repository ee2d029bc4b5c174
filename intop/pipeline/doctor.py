"""doctor: can every host be reached, read and measured, and what is out of bounds? Read-only."""

from contextlib import ExitStack

from intop.config.study import Study
from intop.domain.cluster import Cluster
from intop.domain.diagnosis import Diagnosis, HostDiagnosis
from intop.domain.probing import Probe, asked_keys, space_of
from intop.errors import HostError
from intop.hosts import guard, sysctl
from intop.hosts.facts import facts
from intop.hosts.host import Connect, Host
from intop.hosts.rig import Rig, balancer_facts, clock_offsets, load_tool

CLOCK_TOLERANCE_S = 2.0
"""Above this the times of trials from several hosts can't be laid side by side."""


def examine(cluster: Cluster, study: Study, connect: Connect) -> Diagnosis:
    """Ask every host of a cluster; whatever is wrong is in the report, nothing is raised."""
    problems: list[str] = []
    with ExitStack() as stack:
        hosts = _reachable(cluster, connect, stack, problems)
        reports: list[HostDiagnosis] = []
        tool = ""
        offered: tuple[str, ...] = ()
        refused: dict[str, str] = {}
        if len(hosts) == len(cluster.hosts):
            rig = Rig(cluster, tuple(hosts))
            try:
                offsets = clock_offsets(rig)
                reports = [_report(host, offsets[host.address.name]) for host in rig.hosts]
                found = load_tool(rig)
                tool = f"{found.name} {found.version}"
                offered, refused = _offer(rig, study, problems)
                _check_state_folders(rig, problems)
            except HostError as error:
                problems.append(str(error))
    problems += [
        f"{r.name}: its clock is {r.clock_offset_s:+.1f} s off ours"
        for r in reports
        if abs(r.clock_offset_s) > CLOCK_TOLERANCE_S
    ]
    return Diagnosis(
        arch=cluster.arch,
        link=cluster.link,
        load_tool=tool,
        hosts=tuple(reports),
        offered=offered,
        refused=refused,
        problems=tuple(problems),
        emulation=cluster.emulation,
    )


def _reachable(
    cluster: Cluster, connect: Connect, stack: ExitStack, problems: list[str]
) -> list[Host]:
    hosts: list[Host] = []
    for address in cluster.hosts:
        try:
            host = connect(address)
        except HostError as error:
            problems.append(str(error))
        else:
            stack.callback(host.close)
            hosts.append(host)
    return hosts


def _report(host: Host, offset_s: float) -> HostDiagnosis:
    return HostDiagnosis(
        name=host.address.name,
        role=host.address.role,
        facts=facts(host),
        clock_offset_s=offset_s,
        guard=str(guard.status(host)),
    )


def _offer(rig: Rig, study: Study, problems: list[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    found = balancer_facts(rig)
    name = rig.load_balancer.address.name
    if not found.is_root:
        problems.append(f"{name}: is reached without root, so nothing can be set: use sudo = true")
    if not found.nginx:
        problems.append(f"{name}: has no nginx on its PATH")
    catalogue = study.catalogue
    readings = sysctl.probe(rig.load_balancer, asked_keys(catalogue.parameters))
    probe = Probe(facts=found, readings=readings)
    probed = space_of(
        catalogue.parameters, catalogue.constraints, probe, study.max_risk, study.wanted
    )
    if not probed.space.parameters:
        problems.append(f"{name}: offers none of the catalogue's parameters")
    return tuple(p.key for p in probed.space.parameters), dict(probed.refused)


def _check_state_folders(rig: Rig, problems: list[str]) -> None:
    """The state folder must be writable where files will be put."""
    for host in (rig.load_generator, rig.load_balancer):
        folder = host.address.state_dir
        done = host.run(_WRITABLE, stdin=f"{folder}\n")
        if done.exit_code != 0:
            problems.append(f"{host.address.name}: {folder} can't be made or written")


_WRITABLE = """
read -r folder
while [ ! -e "$folder" ]; do folder=$(dirname "$folder"); done
[ -d "$folder" ] && [ -w "$folder" ]
"""
