"""The features of intop, and where the parts of each are. This module imports none of them.

A feature is a folder. Its `__init__.py` has a `FEATURE` that names its stages, stored results,
commands and figures as `module:name`. They are imported on demand: most commands need few of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

FEATURES = (
    "intop.campaign",
    "intop.explain",
    "intop.causes",
    "intop.experiment",
    "intop.soak",
    "intop.deploy",
    "intop.report",
    "intop.traffic",
)
"""The folders of all features. Stages are in this order, and so are the steps of `tune`."""


@dataclass(frozen=True, kw_only=True)
class Feature:
    """The parts of a feature."""

    stages: Mapping[str, str] = field(default_factory=dict)
    """The stages of `tune` by name, in its order."""
    own_stages: Mapping[str, str] = field(default_factory=dict)
    """The stages that only a command of their own carries out."""
    results: Mapping[str, str] = field(default_factory=dict)
    """The types of stored results by the names that a store has for them. Names never change."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """The commands by name."""
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The functions that draw a result's figures, by its type (`document.figures`)."""


@cache
def features() -> tuple[Feature, ...]:
    """Return all features, in order."""
    return tuple(import_module(folder).FEATURE for folder in FEATURES)


@cache
def tune_places() -> dict[str, str]:
    """Return the place of each stage of `tune`, by name."""
    return {name: place for feature in features() for name, place in feature.stages.items()}


@cache
def own_places() -> dict[str, str]:
    """Return the place of each stage that has a command of its own, by name."""
    return {name: place for feature in features() for name, place in feature.own_stages.items()}


def stage_places() -> dict[str, str]:
    """Return the place of each stage, by name."""
    return tune_places() | own_places()


def commands() -> dict[str, str]:
    """Return the place of each command, by name."""
    return {name: place for feature in features() for name, place in feature.commands.items()}


def figures_of(kind: type) -> list[Any]:
    """Return the functions that draw the figures of a type of result."""
    place = _place(kind)
    return [load(name) for feature in features() for name in feature.figures.get(place, ())]


def result_types() -> dict[str, type]:
    """Return the types of all stored results by their names in the store."""
    return {name: load(place) for place, name in _result_names().items()}


def result_name(kind: type) -> str | None:
    """Return the name that a store has for a type of result; None for a type it does not keep."""
    return _result_names().get(_place(kind))


@cache
def load(place: str) -> Any:
    """Return what is at a place, `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@cache
def _result_names() -> dict[str, str]:
    return {place: name for feature in features() for name, place in feature.results.items()}


def _place(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
