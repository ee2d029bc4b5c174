"""A host with real traffic, under guard, where blocks of a canary are measured."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Event

from intop.deploy.canary.limits import BlockLimits
from intop.domain.canary import ALL_CONNECTIONS, MOVES_THE_END
from intop.domain.cluster import HostAddress
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.nginx.access_logs import access_logs
from intop.domain.nginx.conf import Conf
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.probing import HostFacts, Probe, Probed, asked_keys, unfit
from intop.domain.trial import Conditions, PlannedTrial, Status, Trial
from intop.errors import (
    CommandError,
    HostError,
    RefusedValueError,
    UnreachableError,
    UsageError,
)
from intop.hosts import sysctl
from intop.hosts.access_log import CONNECTION, NOTHING, LoggedRequests, LogReader, usable_log
from intop.hosts.facts import facts_and_conf
from intop.hosts.guard import GOES_ON, GuardedHost, guarded
from intop.hosts.host import Host
from intop.hosts.nginx import serving_conf
from intop.run.available_space import probed_of
from intop.run.context import Task
from intop.version import __version__

CHECK_S = 10.0
"""The longest time between two looks at a block."""
FEWEST_REQUESTS = 100
"""Requests from which on a block counts: fewer have no P99."""

WHEN_LISTENING = {
    "net.core.somaxconn": "a socket takes it when it begins to listen",
    "net.core.rmem_default": "accepted connections get the listening socket's",
    "net.core.wmem_default": "accepted connections get the listening socket's",
    "net.ipv4.tcp_rmem": "accepted connections get the listening socket's default size",
    "net.ipv4.tcp_wmem": "accepted connections get the listening socket's default size",
    "net.ipv4.tcp_fastopen": "a socket takes it when it begins to listen",
}
"""Keys that nginx has to be restarted for, with the reason."""


@dataclass(frozen=True)
class _Block:
    """The outcome of a block."""

    requests: LoggedRequests
    seconds: float
    broken: str
    """The limit that it broke; "" for none."""
    notes: tuple[str, ...]
    """Events of the log in the block, such as a rotation."""


@dataclass(kw_only=True)
class CanaryTestbed:
    """One host, with the reader of its access log."""

    task: Task
    guard: GuardedHost
    log: LogReader
    name: str
    probed: Probed
    conditions: Conditions
    block_s: int
    washout_s: int
    limits: BlockLimits
    only_new: bool
    before_block: Callable[[], str] = lambda: ""
    """Returns why no block with the configuration may begin now; "" where it may."""
    check_s: float = CHECK_S
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
        """Give the host a side's values, wait, and count the requests of a block.

        The host has its own values again when this returns. A block of the configuration that
        breaks a limit is `pruned`, and one that says too little is disturbed. Raises what
        `GuardedHost.apply` does, and UnreachableError for a lost host.
        """
        del prune_above_ms
        is_canary = not planned.configuration.is_default
        # Both sides wait alike, or blocks of the default would have all of the bad times.
        self._wait_for_leave()
        if is_canary and self.default is None:  # of a canary that goes on
            self.default = self._counted(DEFAULT).requests
        started, started_s = datetime.now(UTC), time.monotonic()
        block = self._counted(planned.configuration)
        status, detail = self._status(block)
        if status == "ok" and not is_canary:
            self.default = block.requests
        return Trial(
            planned=planned,
            stage=stage,
            attempt=attempt,
            status=status,
            detail=detail,
            conditions=self.conditions,
            started_at=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - started_s,
            seed=0,
            tool_version=__version__,
            replica=self.name,
            histogram=block.requests.histogram if status in ("ok", "pruned") else None,
            achieved_rps=block.requests.total / block.seconds,
            errors={"status": block.requests.failed},
        )

    def _counted(self, configuration: Configuration) -> _Block:
        """Give the host these values, wait for the wash-out, count requests, and restore."""
        is_canary = not configuration.is_default
        self.guard.apply(configuration)
        try:
            self._read()
            after = self.log.connection if self.only_new else None
            began_s = time.monotonic()
            counted_s, end_s = began_s + self.washout_s, began_s + self.washout_s + self.block_s
            met, requests, broken = NOTHING, NOTHING, ""
            while not broken and (now_s := time.monotonic()) < end_s:
                is_washing_out = now_s < counted_s
                self._wait(min((counted_s if is_washing_out else end_s) - now_s, self.check_s))
                part = self._read(after)
                met = met.joined(part)
                requests = requests if is_washing_out else requests.joined(part)
                if is_canary and self.default is not None:
                    share = (time.monotonic() - began_s) / self.block_s
                    broken = self.limits.broken_by(self.default, met, share)
                if why := self.before_block():
                    met = met.joined(replace(NOTHING, notes=(f"it was stopped: {why}",)))
                    break
            taken_s = max(time.monotonic() - counted_s, 1e-9)
        finally:
            if is_canary:
                self.guard.apply(DEFAULT)
        if not requests.total and requests.old:
            self.log.begin_anew()
        return _Block(requests, taken_s, broken, met.notes)

    def _read(self, after: int | None = None) -> LoggedRequests:
        """Return what was logged. A log that is away for a moment is a note."""
        try:
            return self.log.read(after=after)
        except CommandError as error:
            return replace(NOTHING, notes=(str(error),))

    def _status(self, block: _Block) -> tuple[Status, str]:
        requests = block.requests
        if block.broken:
            return ("pruned" if requests.histogram.total else "failed"), block.broken
        if block.notes:
            return "disturbed", "; ".join(dict.fromkeys(block.notes))
        if requests.histogram.total >= FEWEST_REQUESTS:
            return "ok", ""
        reason = f"only {requests.total} requests were logged"
        if requests.old:
            reason += f", and {requests.old} on connections from before the block (--connections)"
        if requests.unreadable:
            reason += f", and {requests.unreadable} lines are of another format"
        return "disturbed", reason

    def _wait_for_leave(self) -> None:
        """Keep the default until the configuration may be there."""
        reason = ""
        while why := self.before_block():
            if why != reason:
                reason = why
                self.task.context.progress.say(f"{self.name} has its own values meanwhile: {why}")
            self._wait(self.check_s)

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


@contextmanager
def canary_testbed(
    task: Task,
    address: HostAddress,
    configuration: Configuration,
    *,
    log_path: str = "",
    connections: str = "",
    **settings: object,
) -> Iterator[CanaryTestbed]:
    """Connect to a host, take the guard, and restore the host at the end.

    `connections` is "new", "all", or "" for new ones where the log tells them. The other settings
    are those of CanaryTestbed.

    Raises:
        UsageError: for values that don't fit the host or need a restart, and for logs that don't
            tell what is needed.
        HostError: for a host that can't be reached or used.
    """
    study, say = task.context.study, task.context.progress.say
    with closing(task.context.connect(address)) as host:
        facts, conf = _facts(host)
        log = usable_log(tuple(access_logs(conf)), log_path)
        only_new = connections != "all" and log.has(CONNECTION)
        if connections == "new" and not only_new:
            raise UsageError(f"{log.path}: log_format {log.name} lacks $connection")
        if not only_new:
            say(
                f"{address.name}: {log.path} has requests of connections from before a block, too. "
                "Parameters that act on new connections only look smaller than they are"
            )
        for key in MOVES_THE_END.keys() & configuration.values.keys():
            say(
                f"{address.name}: WARNING  $request_time can't judge {key}: {MOVES_THE_END[key]}. "
                "Only the limits and the failed requests tell of it"
            )
        if log.condition:
            say(f"{address.name}: {log.path} has only the requests that {log.condition} selects")
        values, _ = split_by_kind(configuration.values)
        readings = sysctl.probe(host, asked_keys(study.catalogue.parameters))
        offered = probed_of(study, Probe(facts=facts, readings=readings))
        own = {key: reading.value for key, reading in readings.items()}
        _check(address.name, configuration, offered, own)
        with guarded(host, values, say=say) as guard:
            yield CanaryTestbed(
                task=task,
                guard=guard,
                log=LogReader(host, log),
                name=address.name,
                probed=offered,
                conditions=_conditions(task, facts, log.path, settings, only_new=only_new),
                only_new=only_new,
                **settings,  # type: ignore[arg-type]
            )


def _facts(host: Host) -> tuple[HostFacts, Conf]:
    """Return the facts of a host and its nginx's configuration. Raises HostError without them."""
    name = host.address.name
    facts, shown = facts_and_conf(host)
    if not facts.is_root:
        raise HostError(name, "is reached by a user who isn't root: set sudo = true, or use --sudo")
    return facts, serving_conf(host, shown)


def _check(name: str, configuration: Configuration, offered: Probed, own: dict[str, str]) -> None:
    """Raises UsageError for values that can't be tried on a host without a restart of nginx."""
    _, directives = split_by_kind(configuration.values)
    reasons = unfit(configuration, offered, own)
    reasons |= {key: WHEN_LISTENING[key] for key in configuration.values if key in WHEN_LISTENING}
    reasons |= dict.fromkeys(directives, "nginx would have to be reloaded for each block")
    if reasons:
        listed = "\n  ".join(f"{key}: {why}" for key, why in reasons.items())
        raise UsageError(
            f"{name}: nothing was set. A canary can't try these values:\n  {listed}\n"
            "Choose a configuration without them by --configuration"
        )


def _conditions(
    task: Task, facts: HostFacts, log_path: str, settings: Mapping[str, object], *, only_new: bool
) -> Conditions:
    """Return the conditions of blocks: the host, the log and how its requests are counted."""
    return Conditions(
        arch=task.subject.arch,
        machine=facts.machine,
        kernel=facts.kernel,
        cpu=facts.cpu,
        cpus=facts.cpus,
        nginx=facts.nginx,
        load_tool="real traffic",
        workload=task.workload.name,
        script="",
        rate_rps=0.0,
        connections=0,
        threads=0,
        duration_s=0,
        timeout_s=0,
        link=f"wash-out of {settings.get('washout_s')} s",
        paths=log_path,
        traffic="" if only_new else ALL_CONNECTIONS,
        congestion_control=facts.congestion_control,
        server_cpus=facts.nginx_cpus,
    )
