"""Components of the performance metrics as text."""

from rich.console import Group, RenderableType
from rich.text import Text

from intop.domain.results import Components, Objective, Training
from intop.report.text import bold, errors, new_table

STRONG = 0.5
"""The correlation from which on a metric is named in a component's sentence."""


def trained(title: str, training: Training) -> RenderableType:
    """The errors of the families, and the components of what they were trained on."""
    told = training.components
    parts = [] if told is None else [components(title, told, training.objective)]
    return Group(errors(title, training), *parts)


def components(title: str, found: Components, objective: Objective = "p99") -> RenderableType:
    """The components that are needed, with what they are made of, and the groups of metrics."""
    heading = bold(
        f"{title}: principal components of the performance metrics ({found.trials} trials)"
    )
    lines = [*_about(found), *_left_out(found), objective_sentence(objective)]
    if not found.loadings:
        return Group(heading, Text("\n".join(lines)), "")
    numbers = range(found.needed)
    table = new_table(("correlation with", "left"), *((f"{n + 1}", "right") for n in numbers))
    table.add_row("share of variance", *(f"{found.explained[n]:.0%}" for n in numbers))
    for place, metric in enumerate(found.metrics):
        table.add_row(metric, *(f"{found.loadings[n][place]:+.2f}" for n in numbers))
    return Group(heading, table, Text("\n".join(lines)), "")


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


def _left_out(found: Components) -> list[str]:
    named = (("constant", found.constant), ("not known of every trial", found.unknown))
    return [f"left out, {why}: {', '.join(metrics)}" for why, metrics in named if metrics]
