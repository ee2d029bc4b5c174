"""Models as documents: their errors, the components they learn, saved ones, foreign tables."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from intop.document.columns import Column, numbers, texts
from intop.document.model import Notes, Section, Table, tabled
from intop.domain.artefact import Manifest
from intop.domain.table import Inventory
from intop.domain.table import Table as ForeignTable
from intop.domain.training import NEAR_CEILING, Components, Objective, Training, judged_by
from intop.words import counted, few, percent, percent_change

CEILING = "noise ceiling"
"""The row of a perfect model."""
STRONG = 0.5
"""The correlation from which on a metric is named in a component's sentence."""
SHOWN_COLUMNS = 8


def errors(title: str, training: Training) -> Section:
    """Held-out error by family, and what a perfect model would reach."""
    trials = f"{training.trials} trials of {training.configurations} configurations"
    if training.lent:
        trials += f", learned with {training.lent} of the screening"
    title += ": error of the models on configurations they have not seen"
    return Section(
        title=f"{title} ({trials}, {len(training.keys)} parameters)",
        blocks=(error_table(training), Notes(tuple(judgement(training)))),
    )


def error_table(training: Training) -> Table:
    """A row for each family, and one for a perfect model."""
    top = training.ceiling
    return Table(
        name="model-errors",
        title="Errors on configurations that were held out",
        columns=(
            Column("family", "text"),
            Column("MAPE", unit="%"),
            *numbers(f"R² of log {training.target}", "rank correlation"),
            *(Column(name, unit="%") for name in ("coverage", "regret")),
            Column("time", unit="s"),
        ),
        rows=(
            *(
                (e.family, e.mape, e.r2, e.spearman, 100 * e.coverage, e.regret, e.seconds)
                for e in training.errors
            ),
            *([(CEILING, top.mape, top.r2, top.spearman, None, None, None)] if top else []),
        ),
    )


def judgement(training: Training) -> Iterator[str]:
    """Return the errors in sentences."""
    if levels := sorted({e.level for e in training.errors}):
        yield (
            f"Coverage: how many lie in the interval of their prediction, which is to hold "
            f"{few([percent(level) for level in levels])}. Regret: by how much the one predicted "
            f"lowest was measured higher than the lowest."
        )
    if training.best:
        yield f"Best by cross-validation: {training.best}."
    if not training.explains:
        yield (
            "The models explain nothing (R² at most 0), so their predictions are guesses. Only the "
            "first of their candidates is measured."
        )
    yield from _ceiling(training)


def _ceiling(training: Training) -> Iterator[str]:
    """Return such as: Noise ceiling: a perfect model would have MAPE 8 %, R² 0.91, ..."""
    ceiling = training.ceiling
    if ceiling is None:
        yield "Noise ceiling: can't be told, nothing was measured twice."
        return
    if ceiling.scale is None:
        by = f"by the {ceiling.configurations} configurations that were measured more than once"
    else:
        by = f"by the latencies in each trial, times {ceiling.scale:.2f} by replicates"
    yield (
        f"Noise ceiling: a perfect model would have MAPE {ceiling.mape:.0f} %, R² {ceiling.r2:.2f} "
        f"and rank correlation {ceiling.spearman:.2f} (a trial scatters by "
        f"{percent_change(math.exp(ceiling.sd)).lstrip('+')} %, {by})."
    )
    if training.is_at_ceiling:
        yield (
            f"The error of {training.best} is at most {NEAR_CEILING:g} times that: what is left "
            f"is noise, and another model would not help."
        )


def trained(title: str, training: Training) -> Section:
    """The errors of the families, and the components of what they were trained on."""
    section, learned = errors(title, training), training.components
    if learned is None:
        return section
    return replace(
        section, blocks=(*section.blocks, components(title, learned, training.objective))
    )


def components(title: str, components: Components, objective: Objective = "p99") -> Section:
    """The components that are needed, with what they are made of, and the groups of metrics."""
    places = range(components.needed)
    left_out = (
        [f"left out, constant: {', '.join(components.constant)}"] if components.constant else []
    )
    rows = (
        (
            ("share of variance", *(f"{components.explained[n]:.0%}" for n in places)),
            *(
                (metric, *(f"{components.loadings[n][row]:+.2f}" for n in places))
                for row, metric in enumerate(components.metrics)
            ),
        )
        if components.loadings
        else ()
    )
    return tabled(
        f"{title}: principal components of the performance metrics ({components.trials} trials)",
        (*texts("correlation with"), *numbers(*(f"{place + 1}" for place in places))),
        rows,
        (*_component_sentences(components), *left_out, objective_sentence(objective)),
    )


def objective_sentence(objective: Objective) -> str:
    """Return a sentence about the models' target."""
    if objective == "component":
        return (
            "objective: the first component, as P99 equivalent (on the scale of log P99); "
            "intop verify judges by P99 itself"
        )
    return f"objective: {judged_by(objective)}"


def _component_sentences(components: Components) -> list[str]:
    if not components.loadings:
        varying = f"{len(components.metrics)} metrics that vary"
        return [f"can't be told from {components.trials} trials with {varying}"]
    several = "component reaches" if components.needed == 1 else "components reach"
    together = [f"  {', '.join(group)}" for group in components.groups] or ["  none"]
    return [
        *(_component_sentence(components, n) for n in range(components.needed)),
        f"{components.needed} {several} 90 % of the variance",
        f"metrics that move together (chains of correlations above {components.together:g}):",
        *together,
    ]


def _component_sentence(components: Components, number: int) -> str:
    """Return such as: component 1 (61%): up log P99, log max; down achieved rate."""
    pairs = list(zip(components.metrics, components.loadings[number], strict=True))
    rising = ", ".join(metric for metric, loading in pairs if loading >= STRONG)
    falling = ", ".join(metric for metric, loading in pairs if loading <= -STRONG)
    parts = [f"up {rising}"] * bool(rising) + [f"down {falling}"] * bool(falling)
    what = "; ".join(parts) or f"a little of everything, no correlation reaches {STRONG:g}"
    return f"component {number + 1} ({components.explained[number]:.0%}): {what}"


def manifest(name: str, manifest: Manifest) -> Section:
    """Return an artefact's origin, and its models with their held-out errors."""
    origin, conditions = manifest.origin, manifest.origin.conditions
    unit = f" in {origin.unit}" if origin.unit else ""
    notes = (
        (
            f"predict log {origin.target}{unit} from {len(origin.variables)} variables (space "
            f"{manifest.space[:12]}), fitted to {origin.trials} trials of {origin.configurations} "
            f"configurations (data {origin.samples[:12]})"
        ),
        (
            f"study {origin.study} of {origin.campaign}, measured on {conditions.cpu} "
            f"({conditions.machine}, kernel {conditions.kernel}) at {conditions.rate_rps:g} "
            "requests/s"
        ),
        f"saved at {manifest.saved_at} with {_listed(manifest.versions)}",
    )
    return tabled(
        f"{name}: models of {origin.arch} {origin.workload}",
        (
            Column("family", "text"),
            *numbers("MAPE", "R² of the logarithm", "rank correlation"),
            *texts("and with", "SHA-256"),
        ),
        (
            (
                model.family,
                f"{model.error.mape:.0f} %",
                f"{model.error.r2:.2f}",
                f"{model.error.spearman:.2f}",
                _listed({k: v for k, v in model.libraries.items() if k not in manifest.versions}),
                model.sha256[:12],
            )
            for model in manifest.models
        ),
        notes,
    )


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{library} {version}" for library, version in versions.items())


def inventory(title: str, table: ForeignTable) -> Section:
    """Return the data that the models learn from, and what was left out, and why."""
    inventory = table.inventory
    scales = [v.scale for v in table.variables if not v.choices]
    logarithmic = scales.count("log")
    chosen = [v.name for v in table.variables if v.choices]
    kinds = counted(len(scales), "number")
    kinds += f" ({logarithmic} on a logarithmic scale)" if logarithmic else ""
    heading = (
        f"{title}: {counted(inventory.rows, 'row')}, {counted(len(table.variables), 'variable')}: "
        f"{kinds}, {counted(len(chosen), 'choice')}"
    )
    lines = _inventory_sentences(inventory)
    lines += [f"  choices, not numbers: {few(chosen, SHOWN_COLUMNS)}"] if chosen else []
    return Section(title=heading, blocks=(Notes(tuple(lines)),))


def _inventory_sentences(inventory: Inventory) -> list[str]:
    trials, configurations = counted(inventory.trials, "trial"), inventory.configurations
    lines = [f"{trials} of {counted(configurations, 'configuration')}"]
    if inventory.replicated:
        lines[0] += f", {inventory.replicated} with several"
    else:
        lines[0] += "; none has several, which would tell how much they scatter"
    if inventory.copies:
        copies = "1 exact copy" if inventory.copies == 1 else f"{inventory.copies} exact copies"
        lines.append(f"{copies} of earlier trials of the same configuration")
    if inventory.failed:
        failed = f"nothing to learn from {counted(inventory.failed, 'failed trial')}"
        if inventory.lost:
            failed += f"; {counted(inventory.lost, 'configuration')} without others left out"
        lines.append(failed)
    by_reason: dict[str, list[str]] = {}
    for name, why in inventory.left_out.items():
        by_reason.setdefault(why, []).append(name)
    lines += [f"left out, {why}: {few(keys, SHOWN_COLUMNS)}" for why, keys in by_reason.items()]
    return [f"  {line}" for line in lines]
