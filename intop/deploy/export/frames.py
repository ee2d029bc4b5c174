"""Trials of a store as a data frame, for notebooks and files."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from intop.campaign.collected import equivalents, learned_samples
from intop.campaign.models import UNIT, target_of
from intop.campaign.train.limits import limited_effort, noise_ceiling
from intop.config.catalogue import load_catalogue
from intop.config.counters import load_counters
from intop.config.directives import load_directives
from intop.domain.counters import CounterCatalogue
from intop.domain.parameter import Parameter
from intop.domain.probing import Probe
from intop.domain.table import Field, Recipe
from intop.errors import IntopError, ResultMissingError
from intop.frame import MODELLED, Part, fields_of, frame
from intop.resources import shipped
from intop.run.context import Context, Task
from intop.store import Store, Subject, opened_to_read, shown

if TYPE_CHECKING:
    from pandas import DataFrame


PLACE = ("study", "campaign", "arch", "workload", "stage")
"""The columns that say which plan a trial is of."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """A campaign's trials, what the columns are, and how models are trained on them."""

    table: "DataFrame"
    fields: tuple[Field, ...]
    recipes: tuple[Recipe, ...]


def trials(
    store: str | Path,
    *,
    study: str | None = None,
    campaign: int | None = None,
    arch: str | None = None,
    workload: str | None = None,
    catalogue: Path | None = None,
    counters: bool = False,
) -> "DataFrame":
    """Return the trials of a store (a file, or a URL), or of one study, campaign and so on.

    The catalogue names the components of parameters; the default is the one that comes with intop.
    With `counters` there is a column for each of the kernel's counters that was not 0 everywhere.
    Raises ResultMissingError where there are none, UsageError for what is no store.
    """
    configs = shipped("configs")
    known = load_catalogue(catalogue or configs / "parameters.toml").parameters
    known += load_directives(configs / "nginx.toml").parameters
    parts: list[Part] = []
    with opened_to_read(str(store)) as opened:
        for stored in opened.campaigns() if opened else ():
            if opened and study in (None, stored.study) and campaign in (None, stored.id):
                parts += [
                    _part(opened, subject)
                    for subject in opened.subjects(stored)
                    if arch in (None, subject.arch) and workload in (None, subject.workload)
                ]
    if not any(part.trials for part in parts):
        raise ResultMissingError(f"{shown(str(store))} has no such trials. Run: intop progress")
    return frame(parts, _by_key(known), _explained() if counters else None)


def export(context: Context, stages: Collection[str] = (), *, counters: bool = False) -> Export:
    """The trials of these stages (none: of all) of a context's campaign; `counters` as in `trials`.

    Where `train` has what it needs, there is a recipe to repeat it. Raises ResultMissingError
    where there are no trials.
    """
    parts: list[Part] = []
    recipes: list[Recipe] = []
    for task in context.subjects():
        modelled: Mapping[tuple[str, int], float] = {}
        try:
            recipes.append(_recipe(task))
            if context.study.objective == "component":
                modelled = equivalents(task)
        except (IntopError, ValueError) as error:  # the latter: other parameters since
            context.progress.say(f"no models can be trained on the export: {error}")
        parts.append(_part(task.store, task.subject, stages, modelled))
    if not any(part.trials for part in parts):
        raise ResultMissingError(f"{context.study.name}: nothing is measured yet. Run: intop tune")
    study = context.study
    parameters = _by_key((*study.catalogue.parameters, *study.directives.parameters))
    explained = _explained() if counters else None
    table = frame(parts, parameters, explained)
    fields = fields_of(parts, parameters, explained)
    return Export(
        table=table,
        fields=tuple(_listed(f, table) if f.name in PLACE else f for f in fields),
        recipes=tuple(replace(recipe, outside=_outside(table, recipe)) for recipe in recipes),
    )


def _listed(field: Field, table: "DataFrame") -> Field:
    """A column with all of its values, so that no other one is taken for another trial's."""
    return replace(field, values=tuple(table[field.name].unique().tolist()))


def _outside(table: "DataFrame", recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """The values of a recipe's trials that are in no range and no list of its variables."""
    from pandas import isna

    of_it = (table["arch"] == recipe.arch) & (table["workload"] == recipe.workload)
    outside: dict[str, tuple[str, ...]] = {}
    for variable in recipe.variables:
        if variable.name not in table:
            continue
        cells = table.loc[of_it, variable.name].unique().tolist()
        if variable.choices:
            texts = ["" if isna(cell) else str(cell) for cell in cells]
            values = tuple(text for text in texts if text not in variable.choices)
        else:
            numbers = [cell for cell in cells if not isna(cell)]
            values = tuple(str(number) for number in numbers if not variable.has(float(number)))
        if values:
            outside[variable.name] = values
    return outside


def _recipe(task: Task) -> Recipe:
    """Return the settings of `train`. Raises ResultMissingError and IntopError, as it does."""
    study = task.context.study
    _, samples, trials = learned_samples(task)
    effort = limited_effort(task, noise_ceiling(task, samples, trials))
    return Recipe(
        study=study.name,
        campaign=task.subject.campaign.id,
        arch=task.subject.arch,
        workload=task.workload.name,
        column="judged_ms" if study.objective != "component" else MODELLED.name,
        target=target_of(study),
        unit=UNIT,
        variables=samples.variables,
        folds=effort.folds,
        repeats=effort.repeats,
        trials=effort.trials,
        timeout_s=effort.timeout_s,
        seed=effort.seed,
        level=effort.level,
        time_s=effort.time_s,
        enough=effort.enough,
        is_lent=samples.lent > 0,
    )


def _part(
    store: Store,
    subject: Subject,
    stages: Collection[str] = (),
    modelled: Mapping[tuple[str, int], float] | None = None,
) -> Part:
    probe = store.get(subject, Probe)
    return Part(
        study=subject.campaign.study,
        campaign=subject.campaign.id,
        arch=subject.arch,
        workload=subject.workload,
        defaults={} if probe is None else probe.values,
        trials=store.trials(subject, *stages),
        modelled=modelled or {},
    )


def _explained() -> CounterCatalogue:
    return load_counters(shipped("configs") / "counters.toml")


def _by_key(parameters: Iterable[Parameter]) -> dict[str, Parameter]:
    return {parameter.key: parameter for parameter in parameters}
