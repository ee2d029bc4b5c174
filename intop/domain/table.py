"""Tables: configurations that somebody else measured, ready for models."""

from collections.abc import Mapping
from dataclasses import dataclass

from intop.domain.encoding import Matrix, Variable

PARQUET = ".parquet"
NO_PYARROW = "Parquet needs pyarrow, which is not installed: pip install 'intop[parquet]'"


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
    """

    variables: tuple[Variable, ...]
    values: Matrix
    measured: tuple[tuple[float, ...], ...]
    inventory: Inventory
