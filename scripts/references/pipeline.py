"""The stages of the registry, as the picture of the pipeline has them."""

from intop.report.figures.pipeline import Step, pipeline
from intop.run.registry import in_tune


def steps() -> tuple[Step, ...]:
    """One for each command of `tune`. Where stages share one, the last says what it does."""
    found: dict[str, Step] = {}
    for stage in in_tune():
        kind = "measured" if stage.measures else "computed"
        found[stage.command] = Step(
            stage=stage.command,
            does=stage.description,
            kind=kind if stage.is_of_the_paper else "measured, not in the paper",
            hands_on=stage.hands_on,
        )
    return tuple(found.values())


def document() -> str:
    """The picture, as SVG."""
    return pipeline(steps()).svg()
