"""Artefacts: fitted models in a file, with all that says what they may be used for."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from intop.domain.comparison import EXPECTED_DIFFERENCES, MUST_BE_EQUAL, WARNED_DIFFERENCES
from intop.domain.encoding import Matrix, Variable
from intop.domain.training import ModelError
from intop.domain.trial import Conditions

FORMAT = 1
"""Of an artefact's manifest. Another number is refused, so every change of its fields is one."""

FEW = 3
"""How many of a longer list of differences are told."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The origin of models: what they were fitted to, and what that was measured on."""

    study: str
    campaign: str
    arch: str
    workload: str
    target: str
    """Models predict its logarithm."""
    unit: str
    variables: tuple[Variable, ...]
    defaults: Mapping[str, str]
    """The hosts' values by key."""
    conditions: Conditions
    replicas: tuple[str, ...]
    """Load balancers that were measured on."""
    configurations: int
    trials: int
    samples: str
    """The fingerprint of the `configurations` with the values of all their `trials`."""


@dataclass(frozen=True, kw_only=True)
class SavedModel:
    """One family's model, fitted to all rows."""

    family: str
    hyperparameters: dict[str, float | int | str | bool]
    error: ModelError
    """Of held-out rows."""
    file: str
    """Its name in the artefact."""
    sha256: str
    """Of the file's content."""
    libraries: dict[str, str]
    """Import names and versions of those whose objects it is made of."""
    says: tuple[float, ...]
    """Its predictions for the rows of `probes`."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """An artefact's own description. Raises ValueError for a fingerprint of other variables."""

    format: int
    saved_at: str
    """UTC, ISO 8601."""
    versions: dict[str, str]
    """Versions that it was saved with."""
    origin: Origin
    space: str
    """The fingerprint of the variables."""
    models: tuple[SavedModel, ...]

    def __post_init__(self) -> None:
        if self.space != (found := fingerprint(self.origin.variables)):
            raise ValueError(f"the variables have the fingerprint {found}, not {self.space}")


def fingerprint(variables: Sequence[Variable]) -> str:
    """Return the SHA-256 over the variables' names, ranges, scales and choices, in their order.

    Defaults are not in it, but those outside of a range: what a host has where nothing is set
    doesn't change what a number of a configuration means.
    """
    plain = [
        (v.name, v.key, float(v.low), float(v.high), v.scale, v.choices)
        + (() if v.own is None else (float(v.own),))
        for v in variables
    ]
    return hashlib.sha256(json.dumps(plain, separators=(",", ":")).encode()).hexdigest()


def probes(variables: Sequence[Variable]) -> Matrix:
    """Return values (5, variables) from the low ends to the high ends, to ask a model about."""
    steps = np.linspace(0.0, 1.0, 5)
    columns = [
        np.rint(steps * (len(v.choices) - 1)) if v.choices else v.low + steps * (v.high - v.low)
        for v in variables
    ]
    return np.column_stack(columns)


def obstacles(theirs: Origin, ours: Origin) -> list[str]:
    """Why models of one origin say nothing about another: a line each, with both values."""
    lines = [
        f"{what}: {one} against {two}"
        for what, one, two in (
            ("architecture", theirs.arch, ours.arch),
            ("target", f"{theirs.target} in {theirs.unit}", f"{ours.target} in {ours.unit}"),
        )
        if one != two
    ]
    lines += theirs.conditions.differences(ours.conditions, MUST_BE_EQUAL)
    return lines + _other_variables(theirs.variables, ours.variables)


def remarks(theirs: Origin, ours: Origin) -> list[str]:
    """What to know of models that can be used: a sentence each."""
    told: list[str] = []
    same_campaign = (theirs.study, theirs.campaign) == (ours.study, ours.campaign)
    if theirs.samples != ours.samples:
        if same_campaign and ours.trials > theirs.trials:
            told.append(
                f"they were fitted to {theirs.trials} trials, and the campaign has {ours.trials} "
                f"by now"
            )
        else:
            told.append(
                f"they are of other trials: {theirs.trials} of {theirs.configurations} "
                f"configurations on {', '.join(theirs.replicas)}, "
                f"study {theirs.study} of {theirs.campaign}"
            )
    names = [n for n in (*EXPECTED_DIFFERENCES, *WARNED_DIFFERENCES) if n != "arch"]
    if other := theirs.conditions.differences(ours.conditions, names):
        told.append(f"they were measured elsewhere (theirs against this one's): {'; '.join(other)}")
    if other := _other_defaults(theirs.defaults, ours.defaults):
        told.append(f"the hosts' defaults differ (theirs against this one's): {_few(other)}")
    return told


def _other_variables(theirs: Sequence[Variable], ours: Sequence[Variable]) -> list[str]:
    known, here = {v.name: v for v in theirs}, {v.name: v for v in ours}
    lines = [f"{name}: varied there, not here" for name in known if name not in here]
    lines += [f"{name}: varied here, not there" for name in here if name not in known]
    lines += [
        f"{name}: {_described(one)} against {_described(here[name])}"
        for name, one in known.items()
        if name in here and one != here[name]
    ]
    if not lines and list(known) != list(here):
        lines.append(f"order: {', '.join(known)} against {', '.join(here)}")
    return lines


def _described(variable: Variable) -> str:
    if variable.choices:
        return f"one of {', '.join(variable.choices)}"
    own = "" if variable.own is None else f", or {variable.own:.15g}"
    return f"{variable.low:.15g} to {variable.high:.15g} ({variable.scale}){own}"


def _other_defaults(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    return [
        f"{key}: {value} against {ours[key]}"
        for key, value in theirs.items()
        if key in ours and ours[key] != value
    ]


def _few(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - FEW} more" if len(lines) > FEW else ""
    return "; ".join(lines[:FEW]) + more
