"""The parameters that hosts offer to be tuned, under a study's rules."""

from collections.abc import Sequence

from intop.config.study import Study
from intop.domain.nginx.offer import offer
from intop.domain.parameter import Risk
from intop.domain.probing import Probe, Probed, space_of
from intop.run.context import Task


def probed_of(study: Study, probe: Probe) -> Probed:
    """Return what a host with these answers offers, and why the rest is left out."""
    return offered(study, probe, study.max_risk, study.wanted)


def offered(study: Study, probe: Probe, max_risk: Risk, wanted: Sequence[str] = ("*",)) -> Probed:
    """Return the same with another risk and other patterns of keys than the study's."""
    catalogue = study.catalogue
    patterns = wanted if "kernel" in study.tunes else ()
    kernel = space_of(catalogue.parameters, catalogue.constraints, probe, max_risk, patterns)
    if "nginx" not in study.tunes or probe.nginx is None:
        return kernel
    nginx = offer(
        study.directives,
        probe.nginx,
        max_risk,
        wanted=wanted,
        by_name=study.wanted,
        replicas={name: host.nginx for name, host in probe.replicas.items() if host.nginx},
    )
    return Probed(kernel.space.joined(nginx.space), {**kernel.refused, **nginx.refused})


def stored_probed(task: Task) -> Probed | None:
    """Return what the task's host offers; None before any stage ran."""
    probe = task.store.get(task.subject, Probe)
    return None if probe is None else probed_of(task.context.study, probe)


def lists_of_choices(study: Study) -> set[str | None]:
    """Return the keys that only list the choices of other keys: replicas share the common ones."""
    parameters = study.catalogue.parameters
    return {k for p in parameters for k in (p.choices_from, p.choices_from_in_namespace)}
