"""Components of the performance metrics as a document."""

from dataclasses import replace

from intop.domain.training import Components, Objective, Training
from intop.report.document.columns import numbers, texts
from intop.report.document.model import Section, tabled
from intop.report.text import errors

STRONG = 0.5
"""The correlation from which on a metric is named in a component's sentence."""


def trained(title: str, training: Training) -> Section:
    """The errors of the families, and the components of what they were trained on."""
    found, told = errors(title, training), training.components
    if told is None:
        return found
    return replace(found, blocks=(*found.blocks, components(title, told, training.objective)))


def components(title: str, found: Components, objective: Objective = "p99") -> Section:
    """The components that are needed, with what they are made of, and the groups of metrics."""
    places = range(found.needed)
    left_out = [f"left out, constant: {', '.join(found.constant)}"] if found.constant else []
    rows = (
        (
            ("share of variance", *(f"{found.explained[n]:.0%}" for n in places)),
            *(
                (metric, *(f"{found.loadings[n][row]:+.2f}" for n in places))
                for row, metric in enumerate(found.metrics)
            ),
        )
        if found.loadings
        else ()
    )
    return tabled(
        f"{title}: principal components of the performance metrics ({found.trials} trials)",
        (*texts("correlation with"), *numbers(*(f"{place + 1}" for place in places))),
        rows,
        (*_about(found), *left_out, objective_sentence(objective)),
    )


def objective_sentence(objective: Objective) -> str:
    """What the models learn."""
    if objective == "component":
        return (
            "objective: the first component, as P99 equivalent (on the scale of log P99); "
            "intop verify judges by P99 itself"
        )
    return "objective: P99"


def _about(found: Components) -> list[str]:
    if not found.loadings:
        return [
            f"can't be told from {found.trials} trials with {len(found.metrics)} metrics that vary"
        ]
    several = "component reaches" if found.needed == 1 else "components reach"
    together = [f"  {', '.join(group)}" for group in found.groups] or ["  none"]
    return [
        *(_sentence(found, n) for n in range(found.needed)),
        f"{found.needed} {several} 90 % of the variance",
        f"metrics that move together (chains of correlations above {found.together:g}):",
        *together,
    ]


def _sentence(found: Components, number: int) -> str:
    """Such as: component 1 (61%): up log P99, log max; down achieved rate."""
    told = list(zip(found.metrics, found.loadings[number], strict=True))
    rising = ", ".join(metric for metric, loading in told if loading >= STRONG)
    falling = ", ".join(metric for metric, loading in told if loading <= -STRONG)
    parts = [f"up {rising}"] * bool(rising) + [f"down {falling}"] * bool(falling)
    what = "; ".join(parts) or f"a little of everything, no correlation reaches {STRONG:g}"
    return f"component {number + 1} ({found.explained[number]:.0%}): {what}"
