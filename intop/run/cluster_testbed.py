"""A connected cluster with its load balancer under guard, where trials are measured."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from intop.config.study import Study
from intop.domain.applied import title_of
from intop.domain.concurrency import saturated
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.nginx.probe import NginxProbe
from intop.domain.nginx.probe import probed as probed_nginx
from intop.domain.parameter import PARTNERS
from intop.domain.probing import MISSING, Probe, Probed, Reading, asked_keys, tried_keys, unfit
from intop.domain.trial import Conditions, PlannedTrial, Trial, TrialRole
from intop.domain.workload import Workload
from intop.errors import (
    CommandError,
    ForeignChangeError,
    HostError,
    LoadKilledError,
    LoadOutputError,
    RefusedValueError,
    UnreachableError,
    UsageError,
)
from intop.hosts import sysctl
from intop.hosts.facts import server_conf
from intop.hosts.guard import GOES_ON, GuardedHost, guarded
from intop.hosts.host import Host
from intop.hosts.load.streams import streams
from intop.hosts.load.wrk2 import why_not
from intop.hosts.measure import Measurement, idle, measure
from intop.hosts.nginx_files import tunable_nginx
from intop.hosts.rig import Rig, cluster_facts, connected, with_server_started
from intop.hosts.settle import restart, settle
from intop.run.available_space import probed_of
from intop.run.comparability import check_same, conditions_of
from intop.run.context import Task
from intop.run.loads import Loads, Sent, load_of, workload_of
from intop.run.validity import Validity, disturbance, judge
from intop.version import __version__

UNCOUNTED = 0.005
"""The share of requests that wrk2 may leave out without a word: half of those that make P99."""

QUIET_S = 1.0
"""Over which it is seen whether hosts are quiet."""


@dataclass(frozen=True, kw_only=True)
class ClusterTestbed:
    """Where trials of one task are measured: one replica of its cluster, and what it said."""

    task: Task
    rig: Rig
    loads: Loads
    guard: GuardedHost
    probe: Probe
    probed: Probed
    conditions: Conditions

    @property
    def name(self) -> str:
        """What the replica is told from others by: its load balancer's name."""
        return self.rig.load_balancer.address.name

    @property
    def applied(self) -> str:
        """What an earlier apply has left there, in words; "" for nothing."""
        about = self.guard.applied
        return f"{title_of(about)}, since {about.get('since', '?')}" if about else ""

    def trial(
        self,
        planned: PlannedTrial,
        stage: str,
        attempt: int,
        prune_above_ms: float | None = None,
    ) -> Trial:
        """Apply, read back, settle, measure, restore. A block of a soak is only measured.

        It is pruned once its P99 is certainly above `prune_above_ms` (see `run/pruner.py`).
        What goes wrong because of the configuration makes the trial a failed one; a lost
        connection, which may have any cause, and keys that somebody else changes or a load that
        somebody kills, a disturbed one. Raises UsageError for a load that the tool can't send or
        the study doesn't allow, and for values that don't fit the host: nothing is set then.
        """
        started, clock = datetime.now(UTC), time.monotonic()
        base = workload_of(planned, self.task)
        workload = load_of(planned, base)
        sent = self.loads.ready(base)
        if workload != base:
            self._check_sendable(workload, sent)
        # The arms of a round get one load, whichever of them is measured again.
        again = 0 if planned.round is not None else attempt
        seed = self.task.seed(stage, load_words(planned), again)
        measurement: Measurement | None = None
        unsettled = ""
        try:
            if planned.role == "soak":
                measurement = self._soak(sent, workload, seed)
            else:
                try:
                    self._set(planned.configuration)
                    unsettled = "; ".join(filter(None, (self._draining(), self._settle(sent.rig))))
                    measurement = measure(
                        sent.rig,
                        sent.tool,
                        workload,
                        seed=seed,
                        prune_above_ms=prune_above_ms,
                        expected=sent.expected.names,
                    )
                finally:
                    self.guard.apply(DEFAULT)
            validity = self._validity(measurement, workload, prune_above_ms, planned.role)
        except (UnreachableError, ForeignChangeError, LoadKilledError) as error:
            validity, measurement = Validity("disturbed", str(error)), None
        except (CommandError, LoadOutputError, RefusedValueError) as error:
            validity, measurement = Validity("failed", str(error)), None
        conditions = self.conditions
        if planned.other_workload:
            conditions = replace(conditions, **sent.conditions)
        is_stopped = measurement is not None and measurement.result.stopped_after_s is not None
        return Trial(
            planned=planned,
            stage=stage,
            attempt=attempt,
            status=validity.status,
            detail="; ".join(filter(None, (validity.detail, unsettled, _uncounted(measurement)))),
            conditions=replace(
                conditions,
                duration_s=workload.counted_s,
                rate_rps=workload.due_rps,
                connections=workload.connections,
                traffic=workload.traffic,
                paths=workload.only_path or conditions.paths,
            ),
            started_at=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - clock,
            seed=seed,
            tool_version=__version__,
            histogram=measurement.result.histogram if measurement else None,
            achieved_rps=measurement.result.achieved_rps if measurement else 0.0,
            received_mb_s=measurement.result.received_mb_s if measurement else None,
            errors=measurement.result.errors if measurement else {},
            metrics=measurement.metrics if measurement else {},
            counters=measurement.counters if measurement else {},
            replica=self.name,
            pruned_above_ms=prune_above_ms if is_stopped else None,
        )

    def _soak(self, sent: Sent, workload: Workload, seed: int) -> Measurement:
        """Measure what is there, after a look whether somebody else has changed it.

        Counters are read at the end alone: a day of blocks is to be small.
        """
        self.guard.apply(self.guard.as_found)
        return measure(
            sent.rig,
            sent.tool,
            workload,
            seed=seed,
            expected=sent.expected.names,
            points=1,
            footprint=True,
        )

    def leave(
        self,
        configuration: Configuration,
        about: Mapping[str, str],
        file: tuple[str, str] | None = None,
    ) -> None:
        """Give the load balancer a configuration that stays, and its server sockets that have it.

        The guard's session ends with that; `about` and `file` as in `GuardedHost.keep`, which also
        says what is raised.
        """
        self._set(configuration)
        self._settle(self.rig)
        self.guard.keep(configuration, about, file)

    def give_server_its_own(self) -> None:
        """Let the server open its sockets under what the host was found with, after other trials.

        That is not the default where an earlier apply has left something.
        """
        self.guard.apply(self.guard.as_found)
        restart(self.rig)
        self.guard.was_tuned = False

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        """What the kernel says against a configuration. It is set, and put back at once."""
        try:
            self._set(configuration)
        except RefusedValueError as error:
            return error
        finally:
            self.guard.apply(DEFAULT)
        return None

    def _set(self, configuration: Configuration) -> None:
        """Give the load balancer a configuration, whoever asks for it: no other way leads there.

        Raises UsageError, before anything is set, for values that don't fit this host, and what
        `GuardedHost.apply` does.
        """
        if reasons := unfit(configuration, self._offered, self.probe.values):
            problems = "; ".join(
                f"{key!r} = {configuration.values[key]!r}, {why}" for key, why in reasons.items()
            )
            raise UsageError(
                f"{self.name}: nothing was set, since this host can't be given {problems}. "
                "Bring back what allowed it, or begin anew with --new"
            )
        self.guard.apply(configuration)

    @cached_property
    def _offered(self) -> Probed:
        """What the host offers by its own answers of this session: no row of the store adds to it.

        `probed` may be what a campaign's replicas have in common, which the store says.
        """
        return probed_of(self.task.context.study, replace(self.probe, replicas={}))

    def check_connections(self) -> None:
        """Raises UnreachableError when a host, or our hold on the load balancer, is lost.

        ForeignChangeError when somebody else has changed the load balancer, and it stays so.
        """
        try:
            self.rig.on_all(lambda host: host.run("true"))
            # A soak never sets anything else.
            self.guard.apply(self.guard.as_found)
        except UnreachableError as error:
            raise UnreachableError(error.host, f"{error.message}. {GOES_ON}") from error

    def wait_until_quiet(self) -> None:
        """Wait until nobody else is busy on the hosts, or `settle_limit_s` are over.

        Raises UnreachableError when a host is lost.
        """
        budget = self.task.context.study.budget
        deadline = time.monotonic() + budget.settle_limit_s
        while time.monotonic() < deadline and disturbance(
            idle(self.rig, QUIET_S),
            max_steal=budget.max_steal,
            max_steal_cores=budget.max_steal_cores,
            max_foreign_cores=budget.max_foreign_cores,
        ):
            pass

    def abort(self) -> None:
        """Let a trial that is under way in another thread end soon, and badly.

        Its load ends by itself; the load balancer can still be given back.
        """
        for generator in self.rig.load_generators:
            generator.close()

    def _draining(self) -> str:
        left = self.guard.draining
        return f"{self.name} still had {left} old workers of nginx with connections" if left else ""

    def _check_sendable(self, workload: Workload, sent: Sent) -> None:
        """Raises UsageError, before anything is set."""
        if sent.tool.name != "wrk2":
            return
        for _, load in streams(workload, self.rig.cluster):
            if lacking := why_not(load):
                raise UsageError(
                    f"{self.task.title}: this campaign's load tool is wrk2, which can't send "
                    f'{lacking}. Set load_tool = "engine" in [study], and begin anew with --new'
                )

    def _settle(self, rig: Rig) -> str:
        budget = self.task.context.study.budget
        return settle(rig, max_time_wait=budget.max_time_wait, limit_s=budget.settle_limit_s)

    def _asked_backends(self, role: TrialRole) -> list[str]:
        """The backends that must have been connected to.

        A server that answers from its own memory may ask none of them, and in a soak nginx goes on
        with the connections that it has.
        """
        cluster = self.rig.cluster
        is_sure = role != "soak" and not cluster.server.caches
        return [backend.name for backend in cluster.backends] if is_sure else []

    def _validity(
        self,
        measurement: Measurement,
        workload: Workload,
        prune_above_ms: float | None,
        role: TrialRole,
    ) -> Validity:
        result = measurement.result
        budget = self.task.context.study.budget
        return judge(
            requests=result.requests,
            p99_ms=result.histogram.percentile_ms(99) if result.requests else 0.0,
            achieved_rps=result.achieved_rps,
            offered_rps=result.offered_rps,
            errors=result.errors,
            metrics=measurement.metrics,
            backends=self._asked_backends(role),
            max_steal=budget.max_steal,
            max_steal_cores=budget.max_steal_cores,
            max_foreign_cores=budget.max_foreign_cores,
            max_load_cpu=budget.max_load_cpu,
            max_lag=budget.max_lag,
            pruned=_pruned(result.stopped_after_s, workload.counted_s, prune_above_ms),
            too_few=saturated(workload, result.achieved_rps),
        )


@contextmanager
def cluster_testbed(
    task: Task, replica: int = 0, *, originals: bool = False, alone: bool = False
) -> Iterator[ClusterTestbed]:
    """Connect to a replica, probe, take the guard; give everything back at the end.

    With `originals` the default is what the host had before an earlier apply. What is measured
    `alone` is compared with no other trial of the campaign: the cluster may have changed. Raises
    HostError for a host that can't be reached or used, IncomparableError when the cluster is no
    longer what this campaign began on.
    """
    study = task.context.study
    say = task.context.progress.say
    with connected(task.clusters()[replica], task.context.connect) as rig:
        name = rig.load_balancer.address.name
        described = cluster_facts(rig)
        facts = described.hosts[name]
        if not facts.is_root:
            raise HostError(
                name,
                "is reached by a user who isn't root, so nothing can be set there: in the study, "
                'set sudo = true (or "ask", where sudo wants a password)',
            )
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
            # The lock may have had to wait for a restore: only now are the values the host's own.
            readings |= {
                # The guard may hold partners of keys that the catalogue doesn't have.
                key: replace(readings.get(key, Reading("writable", value)), value=value)
                for key, value in guard.base.items()
                # What an earlier apply has set may be no business of this study.
                if key in readings or PARTNERS.get(key) in keys
            }
            readings |= _refused(task, rig.load_balancer, readings, keys)
            probe = Probe(facts=facts, readings=readings, nginx=_probed_nginx(study, guard))
            if guard.nginx is not None:
                # The same holds for its files.
                described = replace(described, nginx_conf=server_conf(rig.load_balancer))
            described = with_server_started(rig, described)
            conditions = conditions_of(task, rig.cluster, described, tool, probe)
            before = task.store.get(task.subject, Probe)
            own = before if replica == 0 else said_by(before, name)
            if not alone:
                check_same(task, conditions, probe, own, name)
            if replica == 0 and not (alone and before):
                probe = replace(probe, replicas=before.replicas if before else {})
                task.store.put(task.subject, probe)
                _tell_left_out(task, probe)
            testbed = ClusterTestbed(
                task=task,
                rig=rig,
                loads=loads,
                guard=guard,
                probe=probe,
                probed=probed_of(study, probe),
                conditions=conditions,
            )
            try:
                yield testbed
            finally:
                _end(testbed, say)


def _probed_nginx(study: Study, guard: GuardedHost) -> NginxProbe | None:
    """What nginx is with the files of the snapshot; None where only the kernel is tuned."""
    nginx = guard.nginx
    return None if nginx is None else probed_nginx(study.directives, nginx.conf, nginx.facts)


def _end(testbed: ClusterTestbed, say: Callable[[str], None]) -> None:
    """Before the host is given back: the server opens its sockets under what it was found with."""
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
    """The readings of guarded keys that don't take their own values: those can't be restored."""
    catalogue = task.context.study.catalogue
    tried = tried_keys(catalogue.parameters, catalogue.constraints, readings)
    refusals = sysctl.write_back(host, [key for key in tried if key in keys])
    return {key: replace(readings[key], refusal=told) for key, told in refusals.items()}


def said_by(probe: Probe | None, replica: str) -> Probe | None:
    """What a replica other than the first said, None where nobody asked it."""
    return None if probe is None else probe.replicas.get(replica)


def _tell_left_out(task: Task, probe: Probe) -> None:
    """Before the first trial of all, say how much of the catalogue is left out.

    What could only be seen by writing has a line of its own.
    """
    if task.store.trials(task.subject):
        return
    say, probed = task.context.progress.say, probed_of(task.context.study, probe)
    say(
        f"{task.title}: {len(probed.space.parameters)} parameters can be tuned, and "
        f"{len(probed.refused)} can't: intop doctor --arch {task.subject.arch} says why"
    )
    for key in probed.refused:
        if probe.readings.get(key, MISSING).refusal:
            say(f"{task.title}: {key} is left out: {probed.refused[key]}")


def _uncounted(measurement: Measurement | None) -> str:
    """What the load tool left out of its histogram; empty where that is within a rounding."""
    if measurement is None:
        return ""
    result = measurement.result
    if result.uncounted <= UNCOUNTED * (result.requests + result.uncounted):
        return ""
    return (
        f"wrk2 counts nothing that is unanswered at the end: {result.uncounted} requests were due "
        'and are in no figure (load_tool = "engine" counts them)'
    )


def _pruned(stopped_after_s: float | None, planned_s: float, limit_ms: float | None) -> str:
    """Why a trial was pruned, in a sentence; empty where it was not."""
    if stopped_after_s is None or limit_ms is None:
        return ""
    return (
        f"pruned after {stopped_after_s:.1f} of {planned_s:g} s: its P99 is certainly above "
        f"{limit_ms:.0f} ms (prune_factor x the default's)"
    )


def load_words(planned: PlannedTrial) -> str:
    """What shares a load: the arms of one round, else the trial alone.

    Seeds of loads are made from these words: other words would be other loads for campaigns that
    have begun.
    """
    if planned.round is not None:
        return f"{planned.round}" if planned.series == 1 else f"{planned.series}.{planned.round}"
    if planned.step is not None:
        return f"{planned.step}.{planned.index}"
    if planned.duration_s is not None:
        return f"{planned.index + 1}"
    return f"trial {planned.index}"
