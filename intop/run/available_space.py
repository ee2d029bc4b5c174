"""What hosts offer to be tuned, under a study's rules."""

from collections.abc import Sequence

from intop.config.study import Study
from intop.domain.nginx.offer import offer
from intop.domain.parameter import Risk
from intop.domain.probing import Probe, Probed, space_of
from intop.run.context import Task


def probed_of(study: Study, probe: Probe) -> Probed:
    """What a host that said this offers, and what is left out of the space and why."""
    return offered(study, probe, study.max_risk, study.wanted)


def offered(study: Study, probe: Probe, max_risk: Risk, wanted: Sequence[str] = ("*",)) -> Probed:
    """The same, with another risk and other patterns of keys than the study's."""
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
        replicas={name: one.nginx for name, one in probe.replicas.items() if one.nginx},
    )
    return Probed(kernel.space.joined(nginx.space), {**kernel.refused, **nginx.refused})


def stored_probed(task: Task) -> Probed | None:
    """What the task's host was found to offer and to refuse, or None before any stage ran."""
    probe = task.store.get(task.subject, Probe)
    return None if probe is None else probed_of(task.context.study, probe)


def lists_of_choices(study: Study) -> set[str | None]:
    """The keys that only say what others can be: replicas have in common what all of them list."""
    parameters = study.catalogue.parameters
    return {k for p in parameters for k in (p.choices_from, p.choices_from_in_namespace)}
