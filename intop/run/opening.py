"""Opening a replica: connected, probed, under guard, compared with the campaign, restored."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from intop.config.study import Study
from intop.domain.cluster import LabSpec
from intop.domain.nginx.probe import NginxProbe
from intop.domain.nginx.probe import probed as probed_nginx
from intop.domain.parameter import PARTNERS
from intop.domain.probing import (
    MISSING,
    HostFacts,
    Probe,
    Reading,
    asked_keys,
    tried_keys,
)
from intop.errors import HostError, LabError
from intop.hosts import sysctl
from intop.hosts.facts import server_conf
from intop.hosts.guard import GuardedHost, guarded
from intop.hosts.host import Host
from intop.hosts.nginx_files import tunable_nginx
from intop.hosts.rig import ClusterFacts, cluster_facts, connected, with_server_started
from intop.run.available_space import probed_of
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.comparability import check_same, conditions_of, said_by
from intop.run.context import Task
from intop.run.loads import Loads


@contextmanager
def cluster_testbed(
    task: Task, replica: int = 0, *, originals: bool = False, alone: bool = False
) -> Iterator[ClusterTestbed]:
    """Connect to a replica, probe it, take the guard, and restore everything at the end.

    With `originals` the default is what the host had before an earlier apply. A replica opened
    `alone` is compared with no earlier trial: the cluster may have changed.

    Raises:
        HostError: for a host that can't be reached or used.
        IncomparableError: when the cluster is no longer what this campaign began on.
    """
    study, say = task.context.study, task.context.progress.say
    with connected(task.clusters()[replica], task.context.connect) as rig:
        described = cluster_facts(rig)
        facts = _root_facts(rig.load_balancer, described)
        loads = Loads(task=task, rig=rig)
        tool = loads.ready(task.workload).tool
        nginx = None
        if "nginx" in study.tunes:
            described = with_server_started(rig, described)
            nginx = tunable_nginx(rig.load_balancer, study.directives)
        readings = sysctl.probe(rig.load_balancer, asked_keys(study.catalogue.parameters))
        offered = probed_of(study, Probe(facts=facts, readings=readings))
        keys = [p.key for p in offered.space.parameters]
        with guarded(
            rig.load_balancer,
            keys,
            originals=originals,
            restart=rig.cluster.server_restart,
            nginx=nginx,
            say=say,
        ) as guard:
            readings = _guarded_readings(task, rig.load_balancer, guard, readings, keys)
            probe = Probe(facts=facts, readings=readings, nginx=_probed_nginx(study, guard))
            if guard.nginx is not None:
                # Its files, too, are the host's own only now.
                described = replace(described, nginx_conf=server_conf(rig.load_balancer))
            described = with_server_started(rig, described)
            conditions = conditions_of(task, rig.cluster, described, tool, probe)
            testbed = ClusterTestbed(
                task=task,
                rig=rig,
                loads=loads,
                guard=guard,
                probe=probe,
                probed=probed_of(study, probe),
                conditions=conditions,
            )
            testbed = _compared(testbed, replica, alone=alone)
            try:
                yield testbed
            finally:
                _end(testbed, say)


def start_guests(task: Task) -> None:
    """Start the virtual machines of the task's labs again that have ended, such as by a panic."""
    from intop.lab.cluster import up
    from intop.lab.guest import last_words, problem

    say = task.context.progress.say
    for replica in task.context.study.clusters.get(task.subject.arch, ()):
        if not isinstance(replica, LabSpec) or replica.kind == "namespaces":
            continue
        if (gone := problem(replica.name)) is not None:
            for line in (gone, *last_words(replica.name)):
                say(f"lab {replica.name}: {line}")
            with suppress(LabError):  # connecting says so again
                up(replica, say)


def _root_facts(balancer: Host, described: ClusterFacts) -> HostFacts:
    """Return what the load balancer is. Raises HostError where intop is not root there."""
    name = balancer.address.name
    facts = described.hosts[name]
    if not facts.is_root:
        raise HostError(
            name,
            "is reached by a user who isn't root, so nothing can be set there: in the study, "
            'set sudo = true (or "ask", where sudo wants a password)',
        )
    return facts


def _guarded_readings(
    task: Task,
    balancer: Host,
    guard: GuardedHost,
    readings: Mapping[str, Reading],
    keys: Collection[str],
) -> dict[str, Reading]:
    """Return the readings with the values that the guard found, and with refused keys marked.

    The guard may have waited for a restore, so that only now the values are the host's own.
    """
    # The guard may hold partners that the catalogue lacks, and what an earlier apply has set.
    own = {
        key: replace(readings.get(key, Reading("writable", value)), value=value)
        for key, value in guard.base.items()
        if key in readings or PARTNERS.get(key) in keys
    }
    current = {**readings, **own}
    return current | _refused(task, balancer, current, keys)


def _compared(testbed: ClusterTestbed, replica: int, *, alone: bool) -> ClusterTestbed:
    """Return the testbed with what the campaign's replicas have in common.

    The probe of the first replica is stored as the campaign's. Raises IncomparableError, unless
    `alone`, where the campaign began on another cluster.
    """
    task, probe, name = testbed.task, testbed.probe, testbed.name
    before = task.store.get(task.subject, Probe)
    if not alone:
        own = before if replica == 0 else said_by(before, name)
        check_same(task, testbed.conditions, probe, own, name)
    if replica > 0 or (alone and before):
        return testbed
    probe = replace(probe, replicas=before.replicas if before else {})
    task.store.put(task.subject, probe)
    _tell_left_out(task, probe)
    return replace(testbed, probe=probe, probed=probed_of(task.context.study, probe))


def _probed_nginx(study: Study, guard: GuardedHost) -> NginxProbe | None:
    """Return what nginx is by the files of the snapshot; None where only the kernel is tuned."""
    nginx = guard.nginx
    return None if nginx is None else probed_nginx(study.directives, nginx.conf, nginx.facts)


def _end(testbed: ClusterTestbed, say: Callable[[str], None]) -> None:
    """Let the server open its sockets under the values of before, as the last thing."""
    guard = testbed.guard
    if guard.is_left or not guard.was_tuned:
        return
    try:
        testbed.give_server_its_own()
    except HostError as error:
        cluster = testbed.rig.cluster
        server, command = cluster.server.title, cluster.server_restart
        say(
            f"{testbed.name}: {server} may keep what its sockets got of a trial's values until it "
            f"is restarted, as root there: {command} ({error.message})"
        )


def _refused(
    task: Task, host: Host, readings: Mapping[str, Reading], keys: Collection[str]
) -> dict[str, Reading]:
    """Return the readings of guarded keys that refuse their own values: they can't be restored."""
    catalogue = task.context.study.catalogue
    tried = tried_keys(catalogue.parameters, catalogue.constraints, readings)
    refusals = sysctl.write_back(host, [key for key in tried if key in keys])
    return {key: replace(readings[key], refusal=why) for key, why in refusals.items()}


def _tell_left_out(task: Task, probe: Probe) -> None:
    """Say before the first trial how much of the catalogue is left out.

    Each key whose refusal only writing can show has a line.
    """
    if task.store.trials(task.subject):
        return
    say, probed = task.context.progress.say, probed_of(task.context.study, probe)
    say(
        f"{task.title}: {len(probed.space.parameters)} parameters can be tuned, and "
        f"{len(probed.refused)} can't: intop doctor --arch {task.subject.arch} --details says why"
    )
    for key in probed.refused:
        if probe.readings.get(key, MISSING).refusal:
            say(f"{task.title}: {key} is left out: {probed.refused[key]}")
