"""All stages by name, in the order of a campaign."""

from collections.abc import Container
from typing import TYPE_CHECKING

from intop.features import load, own_places, stage_places, tune_places

if TYPE_CHECKING:
    from intop.run.stage import AnyStage


def stage(name: str) -> "type[AnyStage]":
    """Return the stage of this name. Raises KeyError for an unknown one."""
    kind: type[AnyStage] = load(stage_places()[name])
    return kind


def stages() -> "tuple[type[AnyStage], ...]":
    """Return all stages."""
    return tuple(map(stage, stage_places()))


def of_tune() -> "tuple[type[AnyStage], ...]":
    """Return the stages of `tune`, with those that prepare a campaign."""
    return tuple(map(stage, tune_places()))


def in_tune() -> "tuple[type[AnyStage], ...]":
    """Return the stages that `tune` names. The first that measures prepares the campaign, too."""
    return tuple(s for s in of_tune() if not s.prepares)


def is_own(name: str) -> bool:
    """Return whether a stage has a command of its own, and is no part of `tune`."""
    return name in own_places()


def own(names: Container[str]) -> "tuple[type[AnyStage], ...]":
    """Return those of these stages that have a command of their own. No other is imported."""
    return tuple(stage(name) for name in own_places() if name in names)
