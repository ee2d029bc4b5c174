"""The bench: one connected cluster with its load balancer under guard, where trials are made."""

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from intop import __version__
from intop.config.study import Study
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.probing import (
    MISSING,
    HostFacts,
    Probe,
    Probed,
    Reading,
    asked_keys,
    changes,
    other_values,
    space_of,
    tried_keys,
)
from intop.domain.trial import PREPARING, Conditions, PlannedTrial, Stage, Trial
from intop.domain.validity import Validity, disturbance, judge
from intop.errors import (
    CommandError,
    ForeignChangeError,
    HostError,
    IncomparableError,
    LoadKilledError,
    LoadOutputError,
    RefusedValueError,
    UnreachableError,
)
from intop.hosts import sysctl
from intop.hosts.guard import GOES_ON, GuardedHost, guarded
from intop.hosts.host import Host
from intop.hosts.load import LoadTool, script_fingerprint
from intop.hosts.measure import Measurement, idle, measure
from intop.hosts.rig import Rig, balancer_facts, connected, load_tool, upload_scripts
from intop.hosts.settle import settle
from intop.pipeline.context import Task
from intop.pipeline.hopeless import told
from intop.resources import shipped

QUIET_S = 1.0
"""Over which it is seen whether hosts are quiet."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where trials of one task are measured: one replica of its cluster, and what it said."""

    task: Task
    rig: Rig
    tool: LoadTool
    guard: GuardedHost
    probe: Probe
    probed: Probed
    conditions: Conditions

    @property
    def name(self) -> str:
        """What the replica is told from others by: its load balancer's name."""
        return self.rig.load_balancer.address.name

    def trial(
        self,
        planned: PlannedTrial,
        stage: Stage,
        attempt: int,
        hopeless_ms: float | None = None,
    ) -> Trial:
        """Apply, read back, settle, measure, restore.

        It is stopped once its P99 is certainly above `hopeless_ms` (see `pipeline/hopeless.py`).
        What goes wrong because of the configuration makes the trial a failed one; a lost
        connection, which may have any cause, and keys that somebody else changes or a load that
        somebody kills, a disturbed one.
        """
        started, clock = datetime.now(UTC), time.monotonic()
        seed = self.task.seed(stage, _block(planned), attempt)
        measurement: Measurement | None = None
        unsettled = ""
        try:
            try:
                self.guard.apply(planned.configuration)
                unsettled = self._settle()
                measurement = measure(
                    self.rig, self.tool, self.task.workload, seed=seed, hopeless_ms=hopeless_ms
                )
            finally:
                self.guard.apply(DEFAULT)
            validity = self._validity(measurement, hopeless_ms)
        except (UnreachableError, ForeignChangeError, LoadKilledError) as error:
            validity, measurement = Validity("disturbed", str(error)), None
        except (CommandError, LoadOutputError, RefusedValueError) as error:
            validity, measurement = Validity("failed", str(error)), None
        is_stopped = measurement is not None and measurement.result.stopped_after_s is not None
        return Trial(
            planned=planned,
            stage=stage,
            attempt=attempt,
            status=validity.status,
            detail="; ".join(part for part in (validity.detail, unsettled) if part),
            conditions=self.conditions,
            started_at=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - clock,
            seed=seed,
            tool_version=__version__,
            histogram=measurement.result.histogram if measurement else None,
            achieved_rps=measurement.result.achieved_rps if measurement else 0.0,
            errors=measurement.result.counted_errors if measurement else {},
            metrics=measurement.metrics if measurement else {},
            replica=self.name,
            p99_above_ms=hopeless_ms if is_stopped else None,
        )

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        """What the kernel says against a configuration. It is set, and put back at once."""
        try:
            self.guard.apply(configuration)
        except RefusedValueError as error:
            return error
        finally:
            self.guard.apply(DEFAULT)
        return None

    def check_connections(self) -> None:
        """Raises UnreachableError when a host, or our hold on the load balancer, is lost.

        ForeignChangeError when somebody else has changed the load balancer, and it stays so.
        """
        try:
            self.rig.on_all(lambda host: host.run("true"))
            self.guard.apply(DEFAULT)
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
            max_foreign_cpu=budget.max_foreign_cpu,
        ):
            pass

    def abort(self) -> None:
        """Let a trial that is under way in another thread end soon, and badly.

        Its load ends by itself; the load balancer can still be given back.
        """
        self.rig.load_generator.close()

    def _settle(self) -> str:
        budget = self.task.context.study.budget
        return settle(self.rig, max_time_wait=budget.max_time_wait, limit_s=budget.settle_limit_s)

    def _validity(self, measurement: Measurement, hopeless_ms: float | None) -> Validity:
        result = measurement.result
        budget = self.task.context.study.budget
        return judge(
            requests=result.run_requests,
            achieved_rps=result.achieved_rps,
            rate_rps=self.task.workload.rate_rps,
            errors=result.errors,
            metrics=measurement.metrics,
            max_steal=budget.max_steal,
            max_foreign_cpu=budget.max_foreign_cpu,
            max_load_cpu=budget.max_load_cpu,
            hopeless=told(result.stopped_after_s, self.task.workload.counted_s, hopeless_ms),
        )


@contextmanager
def bench(task: Task, replica: int = 0) -> Iterator[Bench]:
    """Connect to a replica, probe, take the guard; give everything back at the end.

    Raises HostError for a host that can't be reached or used, IncomparableError when the cluster
    is no longer what this campaign began on.
    """
    study = task.context.study
    say = task.context.progress.say
    with connected(task.clusters()[replica], task.context.connect) as rig:
        facts = balancer_facts(rig)
        if not facts.is_root:
            raise HostError(
                rig.load_balancer.address.name,
                "is reached by a user who isn't root, so nothing can be set there: in the study, "
                'set sudo = true (or "ask", where sudo wants a password)',
            )
        tool = load_tool(rig)
        upload_scripts(rig, shipped("lua"), _asked_paths(task, rig))
        readings = sysctl.probe(rig.load_balancer, asked_keys(study.catalogue.parameters))
        offered = _probed(task, Probe(facts=facts, readings=readings))
        keys = [p.key for p in offered.space.parameters]
        with guarded(rig.load_balancer, keys, say=say) as guard:
            # The lock may have had to wait for a restore: only now are the values the host's own.
            readings |= {
                # The guard may hold partners of keys that the catalogue doesn't have.
                key: replace(readings.get(key, Reading("writable", value)), value=value)
                for key, value in guard.snapshot.items()
            }
            readings |= _refused(task, rig.load_balancer, readings, keys)
            probe = Probe(facts=facts, readings=readings)
            conditions = _conditions(task, rig, facts, tool)
            before = task.store.get(task.subject, Probe)
            name = rig.load_balancer.address.name
            _check_same(task, conditions, probe, before if replica == 0 else _of(before, name))
            if replica == 0:
                probe = replace(probe, replicas=before.replicas if before else {})
                task.store.put(task.subject, probe)
                _tell_left_out(task, probe)
            yield Bench(
                task=task,
                rig=rig,
                tool=tool,
                guard=guard,
                probe=probe,
                probed=_probed(task, probe),
                conditions=conditions,
            )


def stored_probed(task: Task) -> Probed | None:
    """What the task's host was found to offer and to refuse, or None before any stage ran."""
    probe = task.store.get(task.subject, Probe)
    return None if probe is None else _probed(task, probe)


def _probed(task: Task, probe: Probe) -> Probed:
    study = task.context.study
    catalogue = study.catalogue
    return space_of(
        catalogue.parameters, catalogue.constraints, probe, study.max_risk, study.wanted
    )


def _conditions(task: Task, rig: Rig, facts: HostFacts, tool: LoadTool) -> Conditions:
    workload = task.workload
    return Conditions(
        arch=rig.cluster.arch,
        machine=facts.machine,
        kernel=facts.kernel,
        cpu=facts.cpu,
        nginx=facts.nginx,
        load_tool=f"{tool.name} {tool.version}",
        workload=workload.name,
        script=script_fingerprint(shipped("lua"), workload.name),
        rate_rps=workload.rate_rps,
        connections=workload.connections,
        threads=workload.threads,
        duration_s=workload.counted_s,
        timeout_s=workload.timeout_s,
        link=rig.cluster.link,
        paths=_in_short(_asked_paths(task, rig)),
        emulation=rig.cluster.emulation,
    )


def _asked_paths(task: Task, rig: Rig) -> tuple[str, ...]:
    return task.workload.asked(rig.cluster.static_paths, rig.cluster.dynamic_path)


def _in_short(paths: tuple[str, ...]) -> str:
    """Such as `24 paths (0f3c2a91)`: other ones have another sum."""
    digest = hashlib.sha256("\n".join(paths).encode()).hexdigest()[:8]
    return paths[0] if len(paths) == 1 else f"{len(paths)} paths ({digest})"


def in_common(ready: Sequence[Bench]) -> list[Bench]:
    """Replicas with the space that all of them offer, which the first stage of all finds out.

    Raises IncomparableError when one offers less by now.
    """
    if len(ready) == 1:
        return list(ready)
    first, *others = ready
    task, probe = first.task, first.probe
    if not task.store.trials(task.subject):
        probe = replace(probe, replicas={b.name: b.probe for b in others})
        task.store.put(task.subject, probe)
    probed = _probed(task, probe)
    keys = {p.key for p in probed.space.parameters}
    for key in sorted({p.key for p in first.probed.space.parameters} - keys):
        task.context.progress.say(f"{task.title}: {key} is left out: {probed.refused[key]}")
    for other in others:
        if lacking := keys - {p.key for p in other.probed.space.parameters}:
            raise IncomparableError(
                f"{task.title}: {other.name} has no {', '.join(sorted(lacking))} to be tuned any "
                "more, and the campaign has. Bring it back, or start anew with --new"
            )
    return [replace(b, probe=probe if b is first else b.probe, probed=probed) for b in ready]


def _refused(
    task: Task, host: Host, readings: Mapping[str, Reading], keys: Collection[str]
) -> dict[str, Reading]:
    """The readings of guarded keys that don't take their own values: those can't be restored."""
    catalogue = task.context.study.catalogue
    tried = tried_keys(catalogue.parameters, catalogue.constraints, readings)
    refusals = sysctl.write_back(host, [key for key in tried if key in keys])
    return {key: replace(readings[key], refusal=told) for key, told in refusals.items()}


def _of(probe: Probe | None, replica: str) -> Probe | None:
    return None if probe is None else probe.replicas.get(replica)


def _tell_left_out(task: Task, probe: Probe) -> None:
    """Before the first trial of all, say how much of the catalogue is left out.

    What could only be seen by writing has a line of its own.
    """
    if task.store.trials(task.subject):
        return
    say, probed = task.context.progress.say, _probed(task, probe)
    say(
        f"{task.title}: {len(probed.space.parameters)} parameters can be tuned, and "
        f"{len(probed.refused)} can't: intop doctor --arch {task.subject.arch} says why"
    )
    for key in probed.refused:
        if probe.readings.get(key, MISSING).refusal:
            say(f"{task.title}: {key} is left out: {probed.refused[key]}")


def _check_same(task: Task, conditions: Conditions, probe: Probe, before: Probe | None) -> None:
    """Refuse to add trials to those of another cluster, load or set of defaults.

    `before` is what the same replica said then, None where nobody asked it.
    """
    trials = task.store.trials(task.subject)
    if not trials:
        return
    last = next((t for t in reversed(trials) if t.stage not in PREPARING), trials[-1])
    if task.tries_durations or last.stage in PREPARING:
        conditions = replace(conditions, duration_s=last.conditions.duration_s)
    differences = last.conditions.differences(conditions)
    catalogue = task.context.study.catalogue
    # A kernel's first namespace adds to such a list whatever is chosen once; only others heed it.
    lists = {p.choices_from_in_namespace for p in catalogue.parameters}
    ignored = set() if probe.facts.in_namespace else lists
    if before is not None:
        differences += changes(before, probe, ignored)
    # What the study itself leaves out by now is another matter.
    offer = space_of(catalogue.parameters, catalogue.constraints, probe, "high")
    offered = {p.key for one in (offer, _probed(task, probe)) for p in one.space.parameters}
    tuned = {key for t in trials for key in t.planned.configuration.values}
    differences += [
        f"{key}: tuned against left out, {offer.refused.get(key, 'not in the catalogue')}"
        for key in sorted(tuned - offered)
    ]
    if differences:
        raise IncomparableError(
            f"{task.title}: this campaign's trials were made under other conditions "
            f"(then against now):\n  " + "\n  ".join(differences) + "\n"
            "Bring them back, or start anew with --new"
        )


def check_alike(one: Bench, other: Bench) -> None:
    """Refuse two replicas whose trials can't be mixed. Raises IncomparableError."""
    differences = one.conditions.differences(other.conditions)
    differences += other_values(one.probe, other.probe, lists_of_choices(one.task.context.study))
    if differences:
        raise IncomparableError(
            f"{one.task.title}: {one.name} and {other.name} are no replicas of each other "
            f"({one.name} against {other.name}):\n  " + "\n  ".join(differences) + "\n"
            f"Make them alike, or take one of them out of {one.task.context.study.path}"
        )


def lists_of_choices(study: Study) -> set[str | None]:
    """The keys that only say what others can be: replicas have in common what all of them list."""
    parameters = study.catalogue.parameters
    return {k for p in parameters for k in (p.choices_from, p.choices_from_in_namespace)}


def _block(planned: PlannedTrial) -> str:
    """What shares a load: the sides of one round, else the trial alone."""
    return planned.round or f"trial {planned.index}"
