"""The steps of the pipeline, by the registry of stages."""

from intop.domain.report import Step
from intop.run.registry import in_tune


def steps() -> tuple[Step, ...]:
    """One for each command of `tune`. Where stages share one, the last says what it does."""
    found: dict[str, Step] = {}
    for stage in in_tune():
        found[stage.command] = Step(
            command=stage.command,
            does=stage.description,
            kind="computed"
            if not stage.measures
            else "measured"
            if stage.is_of_the_paper
            else "measured, not in the paper",
            hands_on=stage.hands_on,
        )
    return tuple(found.values())
