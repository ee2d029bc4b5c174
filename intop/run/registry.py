"""All stages by name, in the order of a campaign."""

from typing import TYPE_CHECKING

from intop.features import load, stage_places

if TYPE_CHECKING:
    from intop.run.stage import AnyStage


def stage(name: str) -> "type[AnyStage]":
    """Return the stage of this name. Raises KeyError for an unknown one."""
    kind: type[AnyStage] = load(stage_places()[name])
    return kind


def stages() -> "tuple[type[AnyStage], ...]":
    """Return all stages."""
    return tuple(map(stage, stage_places()))


def in_tune() -> "tuple[type[AnyStage], ...]":
    """Return the stages of `tune`. The first that measures prepares the campaign, too."""
    return tuple(s for s in stages() if not (s.of_its_own or s.prepares))
