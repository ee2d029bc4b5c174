"""What a foreign table came to, in sentences."""

from dataclasses import replace

import numpy as np
import pytest

from intop.campaign.train.view import inventory
from intop.domain.encoding import Variable
from intop.domain.table import Inventory, Table
from kit.printed import shown

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
        "runs.csv p95: 30 rows, 3 variables: 2 numbers (1 on a logarithmic scale), 1 choice",
        "  26 trials of 20 configurations, 5 with several",
        "  2 exact copies of earlier trials of the same configuration",
        "  nothing to learn from 4 failed trials; 3 configurations without others left out",
        "  left out, the same in all rows: tool, os",
        "  left out, 30 texts: id",
        "  choices, not numbers: c",
        "",
    ]


def test_what_there_is_none_of_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    plain = replace(FOUND, failed=0, copies=0, lost=0, replicated=0, left_out={})
    out = shown(capsys, inventory("runs.csv p95", replace(TABLE, inventory=plain)))
    first, choices, empty = out.splitlines()[1:]
    assert (choices, empty) == ("  choices, not numbers: c", "")
    assert first == (
        "  26 trials of 20 configurations; none has several, which would tell how much they scatter"
    )


def test_a_single_one_is_no_plural(capsys: pytest.CaptureFixture[str]) -> None:
    single = replace(FOUND, rows=1, failed=1, trials=1, configurations=1, copies=1, lost=1)
    table = replace(TABLE, variables=TABLE.variables[:1], inventory=single)
    assert shown(capsys, inventory("x", table)).splitlines()[:4] == [
        "x: 1 row, 1 variable: 1 number (1 on a logarithmic scale), 0 choices",
        "  1 trial of 1 configuration, 5 with several",
        "  1 exact copy of earlier trials of the same configuration",
        "  nothing to learn from 1 failed trial; 1 configuration without others left out",
    ]
