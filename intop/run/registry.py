"""All stages, in the order of a campaign. A stage is one file, and one line here."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intop.run.stage import AnyStage

STAGES: dict[str, str] = {
    "pilot": "intop.stages.pilot:FindDuration",
    "replicas": "intop.run.replicas:Replicas",
    "screen": "intop.stages.screen:Screen",
    "collect": "intop.stages.collect:Collect",
    "refine": "intop.stages.refine:Refine",
    "train": "intop.stages.train:Train",
    "search": "intop.stages.search:GlobalSearch",
    "pick": "intop.stages.verify:Pick",
    "judge": "intop.stages.verify:Judge",
    "explain": "intop.stages.explain.stage:Explain",
    "mediation": "intop.stages.mediation:Mediate",
    "transfer": "intop.stages.transfer:Crossing",
    "contest": "intop.stages.contest:MultiArm",
    "sweep": "intop.stages.sweep:SweepAlong",
    "across": "intop.stages.across:AcrossWorkloads",
    "soak": "intop.stages.soak.stage:SoakApplied",
    "apply": "intop.deploy.apply:RollOut",
}
"""Where each of them is. They are imported when they are asked for: most commands need few."""


def stage(name: str) -> "type[AnyStage]":
    """The stage of this name. Raises KeyError for one that there is not."""
    return _loaded(STAGES[name])


def stages() -> "tuple[type[AnyStage], ...]":
    """All of them."""
    return tuple(map(stage, STAGES))


def in_tune() -> "tuple[type[AnyStage], ...]":
    """Those of `tune`. What prepares a campaign belongs to the first of them that measures."""
    return tuple(s for s in stages() if not (s.of_its_own or s.prepares))


@cache
def _loaded(place: str) -> "type[AnyStage]":
    module, _, name = place.partition(":")
    found: type[AnyStage] = getattr(import_module(module), name)
    return found
