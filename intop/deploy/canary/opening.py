"""Opening a host with real traffic for a canary: it is asked what it has, and refused in time."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256

from intop.deploy.canary.limits import FEWEST_REQUESTS, BlockLimits
from intop.deploy.canary.own_metrics import asking, check
from intop.deploy.canary.sources import Sources
from intop.deploy.canary.testbed import CHECK_S, CanaryTestbed, Timing
from intop.domain.canary import (
    DELIVERY,
    MOVES_THE_END,
    CanarySettings,
    OwnMetric,
    judged_by,
    moving_keys,
)
from intop.domain.cluster import NOT_DESCRIBED, HostAddress
from intop.domain.configuration import Configuration
from intop.domain.nginx.access_logs import AccessLog, access_logs
from intop.domain.nginx.conf import Conf
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.nginx.standing import address as listening_address
from intop.domain.probing import HostFacts, Probe, Probed, asked_keys, unfit
from intop.domain.trial import Conditions
from intop.errors import CommandError, HostError, UsageError
from intop.hosts import sysctl
from intop.hosts.access_log import CONNECTION, LogReader, usable_log
from intop.hosts.delivery import DeliveryReader
from intop.hosts.facts import facts_and_conf
from intop.hosts.guard import guarded
from intop.hosts.host import Host
from intop.hosts.nginx import serving_conf
from intop.run.available_space import probed_of
from intop.run.context import Task

SAMPLES = 15
"""Samples of TCP_INFO in a block, as far as the steps that follow allow."""
SHORTEST_STEP_S, LONGEST_STEP_S = 0.25, 5.0
LINES, FEWEST_LINES_PER_S = 20_000, 2 * FEWEST_REQUESTS / CHECK_S
"""Lines of a busy access log that are read in a block, and in each second at least, so that each
check of the limits has enough of them. P99 by so many in a block is within about 3 %, which is less
than blocks differ by."""

WHEN_LISTENING = {
    "net.core.somaxconn": "a socket takes it when it begins to listen",
    "net.core.rmem_default": "accepted connections get the listening socket's",
    "net.core.wmem_default": "accepted connections get the listening socket's",
    "net.ipv4.tcp_rmem": "accepted connections get the listening socket's default size",
    "net.ipv4.tcp_wmem": "accepted connections get the listening socket's default size",
    "net.ipv4.tcp_fastopen": "a socket takes it when it begins to listen",
}
"""Keys that nginx has to be restarted for, with the reason."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The way in which blocks on a host are measured."""

    timing: Timing
    limits: BlockLimits
    log_path: str = ""
    """The access log; "" for the only usable one."""
    connections: str = ""
    """The connections that count: new, all, or "" for new ones where the log tells them."""
    before_block: Callable[[], str] = lambda: ""
    """Returns why no block with the configuration may begin now; "" where it may."""


@contextmanager
def canary_testbed(
    task: Task, address: HostAddress, configuration: Configuration, observation: Observation
) -> Iterator[CanaryTestbed]:
    """Connect to a host, take the guard, and restore the host at the end.

    Raises:
        UsageError: for values that don't fit the host or need a restart, for logs that don't
            tell what is needed, and for a metric that gives no number.
        HostError: for a host that can't be reached or used.
    """
    study, say = task.context.study, task.context.progress.say
    timing = observation.timing
    with closing(task.context.connect(address)) as host:
        facts, conf = _facts(host)
        log = usable_log(tuple(access_logs(conf)), observation.log_path)
        only_new = observation.connections != "all" and log.has(CONNECTION)
        if observation.connections == "new" and not only_new:
            raise UsageError(f"{log.path}: log_format {log.name} lacks $connection")
        if not only_new:
            say(
                f"{address.name}: {log.path} has requests of connections from before a block, too. "
                "Parameters that act on new connections only look smaller than they are"
            )
        if log.condition:
            say(f"{address.name}: {log.path} has only the requests that {log.condition} selects")
        values, _ = split_by_kind(configuration.values)
        readings = sysctl.probe(host, asked_keys(study.catalogue.parameters))
        offered = probed_of(study, Probe(facts=facts, readings=readings))
        own = {key: reading.value for key, reading in readings.items()}
        _check(address.name, configuration, offered, own)
        check(host, study.canary.metrics, study.path, timing.block_s)
        sources = Sources(
            log=LogReader(host, log, most_per_s=lines_per_s(timing.block_s)),
            only_new=only_new,
            delivery=_delivery(host, conf, timing, say),
            ask=asking(host, study.canary.metrics),
        )
        with closing(sources), guarded(host, values, say=say) as guard:
            _warn(address.name, configuration, sources, say)
            yield CanaryTestbed(
                task=task,
                guard=guard,
                sources=sources,
                name=address.name,
                probed=offered,
                conditions=_conditions(task, facts, _observed(log, timing, sources, study.canary)),
                timing=timing,
                limits=observation.limits,
                before_block=observation.before_block,
            )


def _facts(host: Host) -> tuple[HostFacts, Conf]:
    """Return the facts of a host and its nginx's configuration. Raises HostError without them."""
    name = host.address.name
    facts, shown = facts_and_conf(host)
    if not facts.is_root:
        raise HostError(name, "is reached by a user who isn't root: set sudo = true, or use --sudo")
    return facts, serving_conf(host, shown)


def ports_of(conf: Conf) -> tuple[int, ...]:
    """Return the TCP ports on which nginx serves HTTP; 80 where none is written."""
    ports: list[int] = []
    for place in conf.named("listen"):
        words = place.statement.arguments
        is_tcp = words and not words[0].startswith("unix:") and "quic" not in words
        if is_tcp and place.context == ("http", "server"):
            address = listening_address(words[0])
            ports += range(address.first, address.last + 1)
    return tuple(dict.fromkeys(ports)) or (80,)


def lines_per_s(block_s: float) -> float:
    """Return how many lines of the access log are read a second, in blocks of so many seconds."""
    return max(LINES / block_s, FEWEST_LINES_PER_S)


def sample_step_s(block_s: float) -> float:
    """Return the seconds between samples of TCP_INFO, in blocks of so many seconds."""
    return min(LONGEST_STEP_S, max(SHORTEST_STEP_S, block_s / SAMPLES))


def _delivery(
    host: Host, conf: Conf, timing: Timing, say: Callable[[str], None]
) -> DeliveryReader | None:
    """Return the reader of the host's TCP_INFO; None, with a message, where it can't be read."""
    try:
        return DeliveryReader(host, ports_of(conf), step_s=sample_step_s(timing.block_s))
    except CommandError as error:
        say(f"{error}. Nothing tells then how fast answers reach the clients")
        return None


def _warn(
    name: str, configuration: Configuration, sources: Sources, say: Callable[[str], None]
) -> None:
    """Say what judges a configuration that moves nginx's times."""
    judge = judged_by(configuration, sees_delivery=sources.delivery is not None)
    for key in moving_keys(configuration):
        reason = f"$request_time can't judge {key}: {MOVES_THE_END[key]}"
        if judge == DELIVERY:
            say(f"{name}: {reason}. The verdict uses delivery time by TCP_INFO")
        else:
            instead = (
                "TCP_INFO, which could, can't be read"
                if sources.delivery is None
                else "Delivery time can, for a configuration without keys that act elsewhere"
            )
            say(f"{name}: WARNING  {reason}. {instead}. So --keep keeps nothing")


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


def _observed(log: AccessLog, timing: Timing, sources: Sources, settings: CanarySettings) -> str:
    """Return what decides the numbers of a block, in words."""
    return ", ".join(
        [
            log.path,
            "new connections" if sources.only_new else "all connections",
            "no TCP_INFO" if sources.delivery is None else "TCP_INFO",
            f"wash-out of {timing.washout_s} s",
            *(f"{name} {_digest(metric)}" for name, metric in settings.metrics.items()),
        ]
    )


def _digest(metric: OwnMetric) -> str:
    """Return what changes with a metric's source: numbers of two sources are never pooled."""
    return sha256(repr(metric).encode()).hexdigest()[:8]


def _conditions(task: Task, facts: HostFacts, observed: str) -> Conditions:
    """Return the conditions of blocks: the host, and how its traffic is observed."""
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
        link=NOT_DESCRIBED,
        paths="",
        observation=observed,
        congestion_control=facts.congestion_control,
        server_cpus=facts.nginx_cpus,
    )
