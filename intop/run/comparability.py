"""Which trials may be mixed: those of the same machines, load and defaults, and no others."""

import hashlib
from dataclasses import replace

from intop.domain.cluster import Cluster
from intop.domain.probing import HostFacts, Probe, changes, space_of
from intop.domain.trial import Conditions
from intop.errors import IncomparableError
from intop.hosts.load import LoadTool, script_fingerprint
from intop.resources import shipped
from intop.run import registry
from intop.run.available_space import probed_of
from intop.run.context import Task


def conditions_of(task: Task, cluster: Cluster, facts: HostFacts, tool: LoadTool) -> Conditions:
    """What trials on this cluster, with this load, are measured under."""
    workload = task.workload
    return Conditions(
        arch=cluster.arch,
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
        link=cluster.link,
        paths=_in_short(asked_paths(task, cluster)),
        emulation=cluster.emulation,
    )


def asked_paths(task: Task, cluster: Cluster) -> tuple[str, ...]:
    """The paths that the load asks for."""
    return task.workload.asked(cluster.static_paths, cluster.dynamic_path)


def check_same(task: Task, conditions: Conditions, probe: Probe, before: Probe | None) -> None:
    """Refuse to add trials to those of another cluster, load or set of defaults.

    `before` is what the same replica said then, None where nobody asked it. Raises
    IncomparableError.
    """
    if found := differences(task, conditions, probe, before):
        raise IncomparableError(
            f"{task.title}: this campaign's trials were made under other conditions "
            f"(then against now):\n  " + "\n  ".join(found) + "\n"
            "Bring them back, or start anew with --new"
        )


def differences(
    task: Task, conditions: Conditions, probe: Probe, before: Probe | None
) -> list[str]:
    """One line for each thing that is not as the campaign's trials were made, with both values."""
    trials = task.store.trials(task.subject)
    if not trials:
        return []
    trials = [t for t in trials if t.planned.rate_rps is None] or trials
    last = next((t for t in reversed(trials) if not registry.stage(t.stage).prepares), trials[-1])
    if task.tries_durations or registry.stage(last.stage).prepares:
        conditions = replace(conditions, duration_s=last.conditions.duration_s)
    found = last.conditions.differences(conditions)
    study = task.context.study
    catalogue = study.catalogue
    if before is not None:
        found += defaults_changed(task, before, probe)
    # What the study itself leaves out by now is another matter.
    offer = space_of(catalogue.parameters, catalogue.constraints, probe, "high")
    offered = {p.key for one in (offer, probed_of(study, probe)) for p in one.space.parameters}
    tuned = {key for t in trials for key in t.planned.configuration.values}
    found += [
        f"{key}: tuned against left out, {offer.refused.get(key, 'not in the catalogue')}"
        for key in sorted(tuned - offered)
    ]
    return found


def defaults_changed(task: Task, before: Probe, now: Probe) -> list[str]:
    """One line for each key whose value on the host, or whether it can be set, has changed."""
    # A kernel's first namespace adds to such a list whatever is chosen once; only others heed it.
    lists = {p.choices_from_in_namespace for p in task.context.study.catalogue.parameters}
    return changes(before, now, set() if now.facts.in_namespace else lists)


def _in_short(paths: tuple[str, ...]) -> str:
    """Such as `24 paths (0f3c2a91)`: other ones have another sum."""
    digest = hashlib.sha256("\n".join(paths).encode()).hexdigest()[:8]
    return paths[0] if len(paths) == 1 else f"{len(paths)} paths ({digest})"
