"""What a foreign table came to, in sentences."""

from dataclasses import replace

import numpy as np
import pytest

from intop.domain.encoding import Variable
from intop.domain.table import Inventory, Table
from intop.report.table import inventory
from printed import shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")

FOUND = Inventory(
    path="/a/runs.csv",
    target="p95",
    rows=30,
    failed=4,
    trials=26,
    configurations=20,
    replicated=5,
    copies=2,
    lost=3,
    left_out={
        "tool": "the same in all rows",
        "id": "30 texts",
        "os": "the same in all rows",
    },
)
TABLE = Table(
    variables=(
        Variable(name="a", key="a", low=1, high=1000, scale="log"),
        Variable(name="b", key="b", low=1, high=2),
        Variable(name="c", key="c", choices=("off", "on")),
    ),
    values=np.zeros((0, 3)),
    measured=(),
    inventory=FOUND,
)


def test_all_counts_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, inventory("runs.csv p95", TABLE))
    assert out.splitlines() == [
        "runs.csv p95: 30 rows, 3 variables: 2 numbers (1 on a logarithmic scale), 1 choices",
        "  26 trials of 20 configurations, of which 5 have several",
        "  2 trials repeat an earlier one of their configuration exactly",
        "  4 failed trials teach nothing; 3 configurations have no others, and are left out",
        "  left out, the same in all rows: tool, os",
        "  left out, 30 texts: id",
        "",
    ]


def test_what_there_is_none_of_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    plain = replace(FOUND, failed=0, copies=0, lost=0, replicated=0, left_out={})
    out = shown(capsys, inventory("runs.csv p95", replace(TABLE, inventory=plain)))
    first, empty = out.splitlines()[1:]
    assert "" == empty
    assert first == (
        "  26 trials of 20 configurations; none has several, which would tell how much they scatter"
    )
