"""The compromise: a configuration that the models of two machines both find good."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from intop.campaign.collected import learned_samples
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.encoding import Matrix
from intop.domain.multi_arm import COMPROMISE, Compromise
from intop.domain.parameter import Component, Parameter
from intop.domain.space import Space
from intop.domain.training import Training
from intop.learn.samples import Vector
from intop.learn.searching.search import search
from intop.learn.surrogate import fit_trees
from intop.run.available_space import stored_probed
from intop.run.context import Task


@dataclass(frozen=True)
class _Machine:
    """One machine's models, asked about configurations of the common space.

    A parameter that they don't know is without effect to them: its screening found none.
    """

    arch: str
    predict: Callable[[Matrix], Vector]
    space: Space
    common: Space

    def log_ratio(self, values: Matrix) -> Vector:
        """Return the predicted log latency (n,) less that of the machine's default."""
        default = self.space.values([DEFAULT])
        own = np.repeat(default, len(values), axis=0)
        places = {variable.name: n for n, variable in enumerate(self.common.variables)}
        for n, mine in enumerate(self.space.variables):
            if (place := places.get(mine.name)) is not None:
                # All that is common is known to both, so nothing is unheard of.
                theirs = self.common.variables[place]
                own[:, n] = theirs.in_terms_of(mine, values[:, place], np.nan)
        return self.predict(own) - self.predict(default)


def compromise(
    tasks: Sequence[Task], winners: Sequence[Configuration]
) -> tuple[Compromise | None, list[str]]:
    """Return the configuration whose worst predicted log ratio is lowest, or why there is none.

    It has parameters that the models of one machine know, at least, and that both offer.
    """
    trainings = [task.store.get(task.subject, Training) for task in tasks]
    known = [
        (task, training, *learned_samples(task, training)[:2])
        for task, training in zip(tasks, trainings, strict=True)
        if training is not None
    ]
    if len(known) < len(tasks):
        return None, [
            f"{task.title}: no models yet, so no compromise is sought. Run: intop train --arch "
            f"{task.subject.arch} --workload {task.workload.name}"
            for task, training in zip(tasks, trainings, strict=True)
            if training is None
        ]
    common, left_out = _common_space(tasks, [space for _, _, space, _ in known])
    if common is None:
        title = f"{' and '.join(t.subject.arch for t in tasks)} {tasks[0].workload.name}"
        return None, [f"{title}: no compromise: no tuned parameter can be set on both alike"]
    machines = [
        _Machine(
            task.subject.arch,
            fit_trees(training.fitted, samples, task.seed("search")),
            space,
            common,
        )
        for task, training, space, samples in known
    ]
    budget = tasks[0].context.study.budget
    best = search(
        common,
        lambda values: np.max([machine.log_ratio(values) for machine in machines], axis=0),
        model=COMPROMISE,
        seed=tasks[0].seed("compromise"),
        population=budget.population,
        generations=budget.generations,
        patience=budget.patience,
        start=common.genes(common.values(winners)),
    ).candidates[0]
    values = common.values([best.configuration])
    ratios = {m.arch: float(np.exp(-m.log_ratio(values)[0])) for m in machines}
    return Compromise(configuration=best.configuration, ratios=ratios, left_out=left_out), []


def _common_space(
    tasks: Sequence[Task], spaces: Sequence[Space]
) -> tuple[Space | None, dict[str, str]]:
    """Return what both machines offer of what one was tuned by, and what is left out."""
    offers = [probed.space for task in tasks if (probed := stored_probed(task)) is not None]
    wanted = list(dict.fromkeys(p.key for space in spaces for p in space.parameters))
    common, left_out = common_parameters(
        wanted, [{p.key: p for p in offer.parameters} for offer in offers]
    )
    if not common:
        return None, left_out
    first = offers[0]
    try:
        space = Space(tuple(common.values()), first.constraints, first.defaults, first.followers)
    except ValueError:
        return None, left_out
    return space, left_out


def common_parameters(
    wanted: Sequence[str], offers: Sequence[Mapping[str, Parameter]]
) -> tuple[dict[str, Parameter], dict[str, str]]:
    """Return the wanted keys as all machines offer them, and why each of the others is left out.

    A range is what all of them have in common, choices are those of all.
    """
    common: dict[str, Parameter] = {}
    left_out: dict[str, str] = {}
    for key in wanted:
        offered = [offer[key] for offer in offers if key in offer]
        if len(offered) < len(offers):
            left_out[key] = "not offered by both"
            continue
        narrowed: Parameter | None = offered[0]
        for parameter in offered[1:]:
            narrowed = None if narrowed is None else _narrowed(narrowed, parameter)
        if narrowed is None:
            left_out[key] = "no value in common"
        else:
            common[key] = narrowed
    return common, left_out


def _narrowed(a: Parameter, b: Parameter) -> Parameter | None:
    """Return what both can be, or None."""
    if a.is_numeric != b.is_numeric or a.scale != b.scale:
        return None
    if not a.is_numeric:
        choices = tuple(choice for choice in a.choices if choice in b.choices)
        return replace(a, choices=choices) if len(choices) > 1 else None
    if len(a.components) != len(b.components):
        return None
    components: list[Component] = []
    for own, theirs in zip(a.components, b.components, strict=True):
        low, high = max(own.low, theirs.low), min(own.high, theirs.high)
        if low >= high:
            return None
        components.append(replace(own, low=low, high=high))
    return replace(a, components=tuple(components))
