"""A connected cluster with its load balancer under guard, where trials are measured."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from intop.domain.applied import title_of
from intop.domain.concurrency import saturated
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.probing import (
    Probe,
    Probed,
    unfit,
)
from intop.domain.trial import Conditions, PlannedTrial, Trial, TrialRole
from intop.domain.workload import Workload
from intop.errors import (
    CommandError,
    ForeignChangeError,
    LoadKilledError,
    LoadOutputError,
    RefusedValueError,
    UnreachableError,
    UsageError,
)
from intop.hosts.guard import GOES_ON, GuardedHost
from intop.hosts.load.streams import streams
from intop.hosts.load.wrk2 import why_not
from intop.hosts.measure import Measurement, idle, measure
from intop.hosts.rig import Rig
from intop.hosts.settle import Unsettled, restart, settle
from intop.run.attempt import Attempt, Outcome, load_words, pruned, record
from intop.run.available_space import probed_of
from intop.run.context import Task
from intop.run.loads import Loads, Sent, load_of, workload_of
from intop.run.validity import Validity, disturbance, judge

if TYPE_CHECKING:
    from intop.domain.recording import Slots

QUIET_S = 1.0
"""Seconds over which it is seen whether hosts are quiet."""


@dataclass(frozen=True, kw_only=True)
class ClusterTestbed:
    """One replica of a task's cluster, under guard, with its answers."""

    task: Task
    rig: Rig
    loads: Loads
    guard: GuardedHost
    probe: Probe
    probed: Probed
    conditions: Conditions

    @property
    def name(self) -> str:
        """The name of its load balancer."""
        return self.rig.load_balancer.address.name

    @property
    def applied(self) -> str:
        """The title of what an earlier apply has left there, or ""."""
        about = self.guard.applied
        return f"{title_of(about)}, since {about.get('since', '?')}" if about else ""

    def trial(
        self,
        planned: PlannedTrial,
        stage: str,
        attempt: int,
        prune_above_ms: float | None = None,
    ) -> Trial:
        """Apply, settle, measure, restore, judge and record. A block of a soak is only measured.

        What the configuration causes makes a failed trial. A lost connection, a foreign change and
        a killed load make a disturbed one. A trial is pruned once its latency is certainly above
        `prune_above_ms`.

        Raises:
            UsageError: for a load that the tool can't send or the study doesn't allow, and for
                values that don't fit the host. Nothing is set then.
        """
        mine = self._attempt(planned, stage, attempt, prune_above_ms)
        outcome = Outcome()
        try:
            if planned.role == "soak":
                measurement = self._soak(mine)
            else:
                measurement = self._apply_and_measure(mine, outcome)
            outcome.validity = self._validity(
                measurement, mine.workload, prune_above_ms, planned.role
            )
            outcome.measurement = measurement
        except (UnreachableError, ForeignChangeError, LoadKilledError) as error:
            outcome.validity = Validity("disturbed", str(error))
        except (CommandError, LoadOutputError, RefusedValueError) as error:
            outcome.validity = Validity("failed", str(error))
        return record(mine, outcome, self.conditions, self.name)

    def _attempt(
        self, planned: PlannedTrial, stage: str, number: int, prune_above_ms: float | None
    ) -> Attempt:
        """Put the load's files on the load generators. Raises UsageError."""
        started, started_s = datetime.now(UTC), time.monotonic()
        base = workload_of(planned, self.task)
        workload = load_of(planned, base)
        sent = self.loads.ready(base)
        if workload != base:
            self._check_sendable(workload, sent)
        # The arms of a round get the same load, also when an arm is measured again.
        again = 0 if planned.round is not None else number
        return Attempt(
            planned=planned,
            stage=stage,
            number=number,
            sent=sent,
            workload=workload,
            seed=self.task.seed(stage, load_words(planned), again),
            slots=self._slots(planned, stage, workload, sent),
            prune_above_ms=prune_above_ms,
            started=started,
            started_s=started_s,
        )

    def _slots(
        self, planned: PlannedTrial, stage: str, load: Workload, sent: Sent
    ) -> "Slots | None":
        """Return the requests of recorded arrivals; None for others.

        The arms of a round get the same ones. So does a trial that is measured again: windows
        would no longer be spread over the recording if disturbed trials moved on.
        """
        if load.arrivals != "recorded" or load.recording is None or sent.words is None:
            return None
        from intop.domain.recording import trial_slots

        number = planned.index if planned.round is None else planned.round
        seed = self.task.seed("windows", stage, planned.series)
        return trial_slots(sent.words, load.recording, load, seed=seed, number=number)

    def _apply_and_measure(self, attempt: Attempt, outcome: Outcome) -> Measurement:
        """Measure a configuration once the hosts have settled, and restore in any case."""
        sent = attempt.sent
        try:
            self._set(attempt.planned.configuration)
            unsettled = self._settle(sent.rig)
            outcome.unsettled = "; ".join(filter(None, (self._draining(), unsettled.left)))
            outcome.unknown = unsettled.unknown
            return measure(
                sent.rig,
                sent.tool,
                attempt.workload,
                seed=attempt.seed,
                slots=attempt.slots,
                prune_above_ms=attempt.prune_above_ms,
                expected=sent.expected.names,
            )
        finally:
            self.guard.apply(DEFAULT)

    def _soak(self, attempt: Attempt) -> Measurement:
        """Measure the host as it is, after a look for foreign changes.

        Counters are read at the end alone, so that a day of blocks stays small.
        """
        self.guard.apply(self.guard.as_found)
        return measure(
            attempt.sent.rig,
            attempt.sent.tool,
            attempt.workload,
            seed=attempt.seed,
            slots=attempt.slots,
            expected=attempt.sent.expected.names,
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

        This ends the guard's session. `GuardedHost.keep` explains `about`, `file` and the errors.
        """
        self._set(configuration)
        self._settle(self.rig)
        self.guard.keep(configuration, about, file)

    def give_server_its_own(self) -> None:
        """Let the server open its sockets under the values that the host had before the session.

        That is not the default where an earlier apply has left something.
        """
        self.guard.apply(self.guard.as_found)
        restart(self.rig)
        self.guard.was_tuned = False

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        """Set a configuration and restore at once. Return the kernel's refusal, if there is one."""
        try:
            self._set(configuration)
        except RefusedValueError as error:
            return error
        finally:
            self.guard.apply(DEFAULT)
        return None

    def _set(self, configuration: Configuration) -> None:
        """Give the load balancer a configuration. All configurations take this way.

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
        """The host's offer by its own answers of this session: no row of the store adds to it.

        `probed` may be the common offer of a campaign's replicas, which the store has.
        """
        return probed_of(self.task.context.study, replace(self.probe, replicas={}))

    def check_connections(self) -> None:
        """Look whether all hosts and the guard are still there.

        Raises:
            UnreachableError: when a host, or our hold on the load balancer, is lost.
            ForeignChangeError: when somebody else has changed the load balancer for good.
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
        while time.monotonic() < deadline and disturbance(idle(self.rig, QUIET_S), budget):
            pass

    def abort(self) -> None:
        """Spoil and end a trial that is under way in another thread.

        Its load ends by itself; the load balancer can still be restored.
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

    def _settle(self, rig: Rig) -> Unsettled:
        budget = self.task.context.study.budget
        return settle(rig, max_time_wait=budget.max_time_wait, limit_s=budget.settle_limit_s)

    def _asked_backends(self, role: TrialRole) -> list[str]:
        """Return the backends that must have accepted connections.

        A server that caches may ask none of them, and in a soak nginx keeps its connections.
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
        return judge(
            requests=result.requests,
            p99_ms=result.histogram.percentile_ms(99) if result.requests else 0.0,
            achieved_rps=result.achieved_rps,
            offered_rps=result.offered_rps,
            errors=result.errors,
            metrics=measurement.metrics,
            backends=self._asked_backends(role),
            limits=self.task.context.study.budget,
            pruned=pruned(result.stopped_after_s, workload.counted_s, prune_above_ms),
            too_few=saturated(workload, result.achieved_rps),
        )
