"""Artefacts: fitted models in a file, with all that says what they may be used for."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from intop.domain.encoding import Matrix, Variable
from intop.domain.training import ModelError
from intop.domain.trial import Conditions

FORMAT = 1
"""The format of an artefact's manifest. Another number is refused, so every change of its fields is
one."""


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
    """The error on held-out rows."""
    file: str
    """Its name in the artefact."""
    sha256: str
    """The hash of the file's content."""
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
        if self.space != (actual := fingerprint(self.origin.variables)):
            raise ValueError(f"the variables have the fingerprint {actual}, not {self.space}")


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
