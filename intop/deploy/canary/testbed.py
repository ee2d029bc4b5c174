"""A host with real traffic, under guard, where blocks of a canary are measured."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Event

from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.quantities import LEAST_ACKED_MB, delivery_ms_per_mb
from intop.deploy.canary.sources import Sources
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.counters import HostCounters
from intop.domain.probing import Probed
from intop.domain.trial import Conditions, PlannedTrial, Status, Trial
from intop.errors import RefusedValueError, UnreachableError
from intop.hosts.access_log import NOTHING, LoggedRequests
from intop.hosts.guard import GOES_ON, GuardedHost
from intop.run.context import Task
from intop.version import __version__

CHECK_S = 10.0
"""The longest time between two looks at a block."""
FEWEST_REQUESTS = 100
"""Requests from which on a block counts: fewer have no P99."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The times of a block."""

    block_s: int
    """The seconds that count."""
    washout_s: int
    """The seconds before them, after a switch."""
    check_s: float = CHECK_S


@dataclass(frozen=True)
class _Block:
    """The outcome of a block."""

    requests: LoggedRequests
    counters: HostCounters
    broken: str
    """The limit that it broke; "" for none."""
    notes: tuple[str, ...]
    """Events of the block, such as a rotation of the log."""


@dataclass(kw_only=True)
class CanaryTestbed:
    """One host, with the sources of its measurements."""

    task: Task
    guard: GuardedHost
    sources: Sources
    name: str
    probed: Probed
    conditions: Conditions
    timing: Timing
    limits: BlockLimits
    needs_delivery: bool = False
    """Whether a block without a delivery time does not count."""
    before_block: Callable[[], str] = lambda: ""
    """Returns why no block with the configuration may begin now; "" where it may."""
    default: LoggedRequests | None = None
    """The default's latest block, which limits the next ones."""
    _aborted: Event = field(default_factory=Event)

    @property
    def applied(self) -> str:
        """Nothing: a canary is compared with the host as it is."""
        return ""

    def trial(
        self,
        planned: PlannedTrial,
        stage: str,
        attempt: int,
        prune_above_ms: float | None = None,
    ) -> Trial:
        """Give the host a side's values, wait, and measure a block.

        The host has its own values again when this returns. A block of the configuration that
        breaks a limit is `pruned`, and one that says too little is disturbed. Raises what
        `GuardedHost.apply` does, and UnreachableError for a lost host.
        """
        del prune_above_ms
        is_canary = not planned.configuration.is_default
        # Both sides wait alike, or blocks of the default would have all of the bad times.
        self._wait_for_leave()
        if is_canary and self.default is None:  # of a canary that goes on
            self.default = self._measured(DEFAULT).requests
        started, started_s = datetime.now(UTC), time.monotonic()
        block = self._measured(planned.configuration)
        trial = Trial(
            planned=planned,
            stage=stage,
            attempt=attempt,
            status="ok",
            detail="",
            conditions=self.conditions,
            started_at=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - started_s,
            seed=0,
            tool_version=__version__,
            replica=self.name,
            histogram=block.requests.histogram,
            achieved_rps=block.requests.total / block.counters.at_s[-1],
            errors={"status": block.requests.failed},
            counters={self.name: block.counters},
        )
        status, detail = self._status(block, trial)
        if status == "ok" and not is_canary:
            self.default = block.requests
        shown = trial.histogram if status in ("ok", "pruned") else None
        return replace(trial, status=status, detail=detail, histogram=shown)

    def _measured(self, configuration: Configuration) -> _Block:
        """Give the host these values, wait for the wash-out, measure, and restore."""
        sources, timing = self.sources, self.timing
        is_canary = not configuration.is_default
        self.guard.apply(configuration)
        try:
            sources.begin()
            began_s = time.monotonic()
            counted_s = began_s + timing.washout_s
            end_s = counted_s + timing.block_s
            met, requests, broken = NOTHING, NOTHING, ""
            is_counting, why = False, ""
            while not (broken or why) and (now_s := time.monotonic()) < end_s:
                if now_s >= counted_s and not is_counting:
                    is_counting = True
                    sources.begin_counting()
                next_s = end_s if is_counting else counted_s
                self._wait(min(next_s - now_s, timing.check_s))
                part = sources.requests()
                met = met.joined(part)
                requests = requests.joined(part) if is_counting else requests
                if is_canary and self.default is not None:
                    share = (time.monotonic() - began_s) / timing.block_s
                    broken = self.limits.broken_by(self.default, met, share)
                why = "" if broken else self.before_block()
            seconds, ended_s = max(time.monotonic() - counted_s, 1e-9), time.time()
            # A block that is stopped needs no counters, and the host its own values.
            counters = HostCounters(at_s=(seconds,), unread=("sockets",))
            if not (broken or why):
                counters = sources.counters(seconds)
        finally:
            if is_canary:
                self.guard.apply(DEFAULT)
        notes = (*met.notes, f"it was stopped: {why}") if why else met.notes
        if not (broken or why):
            counters, missing = sources.with_metrics(counters, ended_s)
            notes += missing
        if not requests.total and requests.old:
            sources.log.begin_anew()
        return _Block(requests, counters, broken, notes)

    def _status(self, block: _Block, trial: Trial) -> tuple[Status, str]:
        requests = block.requests
        if block.broken:
            return ("pruned" if requests.histogram.total else "failed"), block.broken
        if block.notes:
            return "disturbed", "; ".join(dict.fromkeys(block.notes))
        if requests.histogram.total < FEWEST_REQUESTS:
            reason = f"only {requests.total} requests were logged"
            if requests.old:
                reason += (
                    f", and {requests.old} on connections from before the block (--connections)"
                )
            if requests.unreadable:
                reason += f", and {requests.unreadable} lines are of another format"
            return "disturbed", reason
        if self.needs_delivery and block.counters.unread:
            return "disturbed", "TCP_INFO could not be read, so there is no delivery time"
        if self.needs_delivery and delivery_ms_per_mb(trial) is None:
            return "disturbed", (
                "TCP_INFO tells no delivery time: clients acknowledged less than "
                f"{1000 * LEAST_ACKED_MB:.0f} kB on connections that were seen"
            )
        return "ok", ""

    def _wait_for_leave(self) -> None:
        """Keep the default until the configuration may be there."""
        reason = ""
        while why := self.before_block():
            if why != reason:
                reason = why
                self.task.context.progress.say(f"{self.name} has its own values meanwhile: {why}")
            self._wait(self.timing.check_s)

    def _wait(self, seconds: float) -> None:
        """Raises UnreachableError where the block was aborted."""
        if self._aborted.wait(seconds):
            raise UnreachableError(self.name, "the block was stopped")

    def keep(self, configuration: Configuration, record: Mapping[str, str]) -> None:
        """Leave a configuration there and end the session. Raises what `GuardedHost.keep` does."""
        self.guard.keep(configuration, record)

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        """Return None: a canary tries nothing out."""
        del configuration
        return None

    def check_connections(self) -> None:
        """Look whether the host is still ours. Raises UnreachableError and ForeignChangeError."""
        try:
            self.guard.apply(DEFAULT)
        except UnreachableError as error:
            raise UnreachableError(error.host, f"{error.message}. {GOES_ON}") from error

    def wait_until_quiet(self) -> None:
        """Wait for nothing: the traffic is not ours."""

    def abort(self) -> None:
        """End the block that is under way in another thread."""
        self._aborted.set()
