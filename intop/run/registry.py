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
    "pick": "intop.stages.pick:Pick",
    "judge": "intop.stages.verify:Judge",
    "explain": "intop.stages.explain.stage:Explain",
    "mediation": "intop.experiment.mediation:Mediate",
    "transfer": "intop.experiment.transfer:Crossing",
    "contest": "intop.experiment.contest:MultiArm",
    "sweep": "intop.experiment.sweep:SweepAlong",
    "across": "intop.experiment.across:AcrossWorkloads",
    "soak": "intop.stages.soak.stage:SoakApplied",
    "apply": "intop.deploy.apply:RollOut",
}
"""The place of each stage, by name. Stages are imported on demand: most commands need few."""


def stage(name: str) -> "type[AnyStage]":
    """Return the stage of this name. Raises KeyError for an unknown one."""
    return _loaded(STAGES[name])


def stages() -> "tuple[type[AnyStage], ...]":
    """Return all stages."""
    return tuple(map(stage, STAGES))


def in_tune() -> "tuple[type[AnyStage], ...]":
    """Return the stages of `tune`. The first that measures prepares the campaign, too."""
    return tuple(s for s in stages() if not (s.of_its_own or s.prepares))


@cache
def _loaded(place: str) -> "type[AnyStage]":
    module, _, name = place.partition(":")
    loaded: type[AnyStage] = getattr(import_module(module), name)
    return loaded
