"""The rule of which trials may be mixed: same machines, load and defaults."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from intop.domain.cluster import Cluster, HostAddress
from intop.domain.parameter import barred, normalised
from intop.domain.probing import HostFacts, Probe, changes
from intop.domain.server import NGINX, SERVERS
from intop.domain.trial import UNKNOWN, Conditions, Trial
from intop.domain.workload import Workload
from intop.errors import IncomparableError
from intop.resources import shipped
from intop.run.available_space import offered, probed_of
from intop.run.context import Task

if TYPE_CHECKING:
    from intop.hosts.load.types import LoadTool
    from intop.hosts.rig import ClusterFacts

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"

REPLICAS_OWN = ("nginx_conf",)
"""The conditions that replicas may differ in: their configuration names other servers."""

COMMON = tuple(f.name for f in fields(Conditions) if f.name not in REPLICAS_OWN)
"""The conditions that all mixed trials share."""

OWN_LOAD = ("rate_rps", "connections", "traffic", "paths")
"""The conditions that a trial of a sweep may change."""

OF_WORKLOAD = (
    *OWN_LOAD,
    *("workload", "script", "load_tool", "threads", "duration_s", "timeout_s", "judged_by"),
)
"""The conditions that follow from the workload and from the tool that sends it."""


def conditions_of(
    task: Task, cluster: Cluster, facts: "ClusterFacts", tool: "LoadTool", probe: Probe
) -> Conditions:
    """Return the conditions of trials on this cluster with this load.

    The facts must have the load balancer; other hosts are left empty where one is missing. `probe`
    has the load balancer's own values.
    """
    from intop.hosts.nginx_conf import fingerprint

    congestion_control = probe.readings.get(CONGESTION_CONTROL)
    balancer = facts.hosts[cluster.load_balancer.name]
    addresses = [host.hostname for host in cluster.hosts]
    return Conditions(
        arch=cluster.arch,
        machine=balancer.machine,
        kernel=balancer.kernel,
        cpu=balancer.cpu,
        server=cluster.server.name,
        nginx=balancer.nginx,
        link=cluster.link,
        emulation=cluster.emulation,
        cpus=balancer.cpus,
        nginx_conf="" if facts.nginx_conf is None else fingerprint(facts.nginx_conf, addresses),
        generator=_in_words(cluster.load_generators, facts),
        backends=_in_words(cluster.backends, facts, nginx=True),
        congestion_control="" if congestion_control is None else congestion_control.value or "",
        peers_congestion_control=_peers_congestion_control(cluster, facts),
        server_cpus=balancer.nginx_cpus,
        **of_workload(task.workload, cluster, tool),
    )


def of_workload(workload: Workload, cluster: Cluster, tool: "LoadTool") -> dict[str, Any]:
    """Return the conditions of OF_WORKLOAD. Raises ResultMissingError without a duration."""
    from intop.hosts.load.tools import script_fingerprint

    paths = workload.asked(cluster.static_paths, cluster.dynamic_path)
    return {
        "load_tool": f"{tool.name} {tool.version}",
        "workload": workload.name,
        "script": script_fingerprint(shipped("lua"), workload.kind, workload.script),
        "rate_rps": workload.due_rps,
        "connections": workload.connections,
        "threads": workload.threads if tool.name == "wrk2" else 1,
        "duration_s": workload.counted_s,
        "timeout_s": workload.timeout_s,
        "paths": workload.only_path or _in_short(paths),
        "traffic": workload.traffic,
        "judged_by": workload.judged_by,
    }


def check_same(
    task: Task, conditions: Conditions, probe: Probe, before: Probe | None, replica: str
) -> None:
    """Refuse to add trials to those of another cluster, load or set of defaults.

    `before` has the same replica's answers of then, if it was asked. Raises IncomparableError.
    """
    if lines := differences(task, conditions, probe, before, replica):
        raise IncomparableError(
            f"{task.title}: this campaign's trials were made under other conditions "
            f"(then against now):\n  " + "\n  ".join(lines) + "\n"
            "Bring them back, or start anew with --new"
        )


def differences(
    task: Task, conditions: Conditions, probe: Probe, before: Probe | None, replica: str
) -> list[str]:
    """Return a line for each difference to the campaign's trials, with both values."""
    trials = task.store.trials(task.subject)
    if not trials:
        return no_longer_tuned(task, probe)
    trials = [t for t in trials if not t.planned.has_its_own_load] or trials
    last = next((t for t in reversed(trials) if t.planned.duration_s is None), trials[-1])
    if task.tries_durations or last.planned.duration_s is not None:
        conditions = replace(conditions, duration_s=last.conditions.duration_s)
    # A campaign may have only sweeps or other workloads, whose own loads say nothing.
    own: Sequence[str] = OWN_LOAD if last.planned.has_its_own_load else ()
    own = OF_WORKLOAD if last.planned.other_workload else own
    lines = last.conditions.differences(conditions, [n for n in COMMON if n not in own])
    lines += nginx_changed(trials, conditions, replica)
    if before is not None:
        lines += defaults_changed(task, before, probe)
    return lines + no_longer_tuned(task, probe)


def no_longer_tuned(task: Task, probe: Probe) -> list[str]:
    """Return a line for each planned key that this intop would not tune like that.

    The catalogue may have changed, or what a host offers. Measured values beyond today's bounds are
    data as any other; planned ones are refused.
    """
    study = task.context.study
    # Keys that the study itself leaves out by now are none of these.
    offer = offered(study, probe, "high")
    known = {p.key: p for each in (probed_of(study, probe), offer) for p in each.space.parameters}
    own = probe.values
    reasons = {**study.catalogue.former, **offer.refused}
    reasons_by_key: dict[str, str] = {}
    for place in task.store.places(task.subject):
        for key, value in place.configuration.values.items():
            if key in reasons_by_key:
                continue
            if (parameter := known.get(key)) is None:
                why = reasons.get(key) or barred(key) or "not in the catalogue"
                reasons_by_key[key] = f"tuned against left out, {why}"
            elif (
                value != normalised(own.get(key, ""))
                and not place.is_done(study.budget.retries)
                and (unfit := parameter.unfit(value))
            ):
                reasons_by_key[key] = f"{value!r} planned, which is {unfit}"
    return [f"{key}: {reason}" for key, reason in sorted(reasons_by_key.items())]


def nginx_changed(trials: Sequence[Trial], conditions: Conditions, replica: str) -> list[str]:
    """Return a line if a replica's server is configured otherwise than in its last trial."""
    last = next((t.conditions for t in reversed(trials) if t.replica == replica), None)
    if last is None:
        return []
    title, is_nginx = SERVERS[conditions.server].title, conditions.server == NGINX.name
    if conditions.nginx_conf == UNKNOWN:
        shows = "nginx -T fails there" if is_nginx else "its configuration can't be read there"
        why = f"no {title} runs on {replica}, or {shows}"
    elif last.nginx_conf == UNKNOWN:
        seen = "nginx -T could not be run" if is_nginx else "its configuration could not be read"
        why = f"{seen} on {replica} then"
    else:
        file = "nginx.conf" if is_nginx else f"{title}'s configuration"
        why = f"{file} on {replica}, or a file that it includes, was changed"
    return [f"{line}: {why}" for line in last.differences(conditions, REPLICAS_OWN)]


def defaults_changed(task: Task, before: Probe, now: Probe) -> list[str]:
    """Return a line for each key whose value or access on the host has changed."""
    # The kernel's first namespace adds to such a list whatever is chosen once.
    lists = {p.choices_from_in_namespace for p in task.context.study.catalogue.parameters}
    return changes(before, now, set() if now.facts.in_namespace else lists)


def _in_words(
    addresses: Iterable[HostAddress], facts: "ClusterFacts", *, nginx: bool = False
) -> str:
    """Return such as `3 x Intel Xeon, 2 CPUs, Linux 6.1.0`; "" if a host is missing."""
    counted: Counter[str] = Counter()
    for address in addresses:
        if (host := facts.hosts.get(address.name)) is None:
            return ""
        pinned = f", load on CPUs {address.load_cpus}" if address.load_cpus else ""
        counted[_host_in_words(host, nginx=nginx) + pinned] += 1
    return "; ".join(f"{n} x {text}" if n > 1 else text for text, n in sorted(counted.items()))


def _peers_congestion_control(cluster: Cluster, facts: "ClusterFacts") -> str:
    """Return such as `clients cubic, backends bbr`; "" if a host is missing or was not asked."""
    parts = []
    for role, addresses in (("clients", cluster.load_generators), ("backends", cluster.backends)):
        hosts = [facts.hosts.get(address.name) for address in addresses]
        algorithms = {"" if host is None else host.congestion_control for host in hosts}
        if "" in algorithms:
            return ""
        parts.append(f"{role} {' and '.join(sorted(algorithms))}")
    return ", ".join(parts)


def _host_in_words(host: HostFacts, *, nginx: bool) -> str:
    parts = [host.cpu, f"{host.cpus} CPU{'s' if host.cpus > 1 else ''}", f"Linux {host.kernel}"]
    if nginx:
        parts.append(host.nginx.replace("/", " ") or "no nginx")
    return ", ".join(parts)


def _in_short(paths: tuple[str, ...]) -> str:
    """Return such as `24 paths (0f3c2a91)`; other paths or weights have another sum."""
    digest = hashlib.sha256("\n".join(paths).encode()).hexdigest()[:8]
    if len(paths) == 1:
        return paths[0]
    count = len(set(paths))
    return f"{count} {'weighted ' if count < len(paths) else ''}paths ({digest})"


def said_by(probe: Probe | None, replica: str) -> Probe | None:
    """Return the answers of a replica other than the first; None where nobody asked it."""
    return None if probe is None else probe.replicas.get(replica)
