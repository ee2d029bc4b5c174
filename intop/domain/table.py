"""Tables: configurations in files, ready for models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from intop.domain.encoding import Matrix, Variable

PARQUET = ".parquet"
NO_PYARROW = "Parquet needs pyarrow, which is not installed: pip install 'intop[parquet]'"


def schema_of(path: Path) -> Path:
    """Return the path of a table's schema: what its columns mean, and how to train on it."""
    return path.with_name(f"{path.name}.schema.json")


@dataclass(frozen=True)
class Field:
    """A column of a table that we write."""

    name: str
    unit: str
    meaning: str
    type: Literal["string", "integer", "number", "datetime"] = "string"
    """A type of the Table Schema standard."""
    values: tuple[str | int, ...] = ()
    """All values of its cells; empty where they are not listed."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of `intop train`, apart from the trials of an architecture and workload.

    The same recipe makes the same models, unless `timeout_s` ends a search. Raises ValueError for
    numbers that no study has.
    """

    study: str
    campaign: int
    arch: str
    workload: str
    column: str
    """The column with what models learn."""
    target: str
    """Its name for people."""
    unit: str
    variables: tuple[Variable, ...]
    folds: int
    repeats: int
    trials: int
    timeout_s: float | None
    seed: int
    level: float
    time_s: float | None = None
    """The time that the training was cut to."""
    enough: float = 0.0
    """The error that ended a search."""
    is_lent: bool = False
    """Models also learn from the screening, as from lent rows (`learn.samples.Samples`)."""
    outside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of trials beyond a variable's range or choices, such as a default."""

    def __post_init__(self) -> None:
        if not self.variables:
            raise ValueError("there are no variables")
        limits = {"folds": (2, 20), "repeats": (1, 20), "trials": (1, 100_000)}
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be from {low} to {high}")
        if not 0 <= self.seed < 2**32:
            raise ValueError("seed must have 32 bits")

    @property
    def title(self) -> str:
        """The title, such as `x86 slt`."""
        return f"{self.arch} {self.workload}"


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The use of a file's rows and columns."""

    path: str
    target: str
    rows: int
    failed: int
    """Rows that models do not learn from."""
    trials: int
    """Rows that models learn from."""
    configurations: int
    """The configurations of these trials."""
    replicated: int
    """Configurations with several trials."""
    copies: int
    """Rows that repeat inputs and target of an earlier one."""
    lost: int
    """Configurations that are left out since all of their trials failed."""
    left_out: Mapping[str, str]
    """The reason for each column that varies in no useful way, without the user's own."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Configurations with their measurements, one row each."""

    variables: tuple[Variable, ...]
    values: Matrix
    """(configurations, variables): a choice's index, or bytes, seconds, per cent or Hz."""
    measured: tuple[tuple[float, ...], ...]
    """The targets of each configuration's trials, all positive."""
    inventory: Inventory
    lent: int = 0
    """The number of last rows that are as in `learn.samples.Samples`, and not in the inventory."""
