"""Tables: configurations in files, ready for models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from intop.domain.encoding import Matrix, Variable

PARQUET = ".parquet"
NO_PYARROW = "Parquet needs pyarrow, which is not installed: pip install 'intop[parquet]'"


def schema_of(path: Path) -> Path:
    """Where it is written what the columns of a table of trials mean, and how to train on it."""
    return path.with_name(f"{path.name}.schema.json")


@dataclass(frozen=True)
class Field:
    """A column of a table that we write. `type` is one of the Table Schema standard.

    `values` are all that its cells have; empty where they are not listed.
    """

    name: str
    unit: str
    meaning: str
    type: Literal["string", "integer", "number", "datetime"] = "string"
    values: tuple[str | int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that `intop train` goes by, apart from the trials: the same recipe makes the same models.

    It is for the trials of one architecture and workload of a campaign. With `is_lent`, models also
    learn from the screening, as from lent rows (see `learn.samples.Samples`). `column` has what the
    models learn, which people know as `target`. A search that `timeout_s` ends is the exception:
    how far it came depends on the machine. `outside` has by variable what its trials have and its
    range or list of choices does not, such as a default. Raises ValueError for numbers that no
    study has.
    """

    study: str
    campaign: int
    arch: str
    workload: str
    column: str
    target: str
    unit: str
    variables: tuple[Variable, ...]
    folds: int
    repeats: int
    trials: int
    timeout_s: float | None
    seed: int
    level: float
    is_lent: bool = False
    outside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        """Such as `x86 slt`."""
        return f"{self.arch} {self.workload}"


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """What a file's rows came to: what models learn from, what was left out, and why.

    Of `rows`, `failed` ones don't teach and `trials` do; they are of so many `configurations`, of
    which `replicated` have several trials. `copies` are rows that repeat inputs and target of an
    earlier one. `lost` configurations are left out since all of their trials failed. `left_out`
    has the reason for each column that varies in no useful way; what the user ignores is not in it.
    """

    path: str
    target: str
    rows: int
    failed: int
    trials: int
    configurations: int
    replicated: int
    copies: int
    lost: int
    left_out: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Configurations with what was measured of them, one row each.

    `values` (configurations, variables): numbers with a unit are in bytes, seconds, per cent or Hz,
    a choice is its index. `measured` has the target of each configuration's trials, all positive.
    The last `lent` rows are as in `learn.samples.Samples`, and not in the inventory.
    """

    variables: tuple[Variable, ...]
    values: Matrix
    measured: tuple[tuple[float, ...], ...]
    inventory: Inventory
    lent: int = 0
