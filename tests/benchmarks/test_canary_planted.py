"""The benchmark of planted canaries: what it counts, and what it finds wrong."""

import math
from dataclasses import replace

from benchmarks.canary_planted import Called, Planted, fixed_horizon

GAIN = Called(
    outcome="gain", stopped="", pairs=7, blocks=7, lost=0, met=900, failed=0, logs=[-0.2, -0.18]
)
HARM = replace(GAIN, outcome="harm", stopped="lb: P99 was 250 ms", pairs=0, blocks=1, logs=[])
ASKED = Planted.__new__(Planted)


def test_the_pairs_of_a_fixed_horizon_follow_from_mean_and_scatter() -> None:
    """By tables of Student's t: an effect of one standard deviation takes 16 pairs for 95 %."""
    logs = [-1 + math.sqrt(0.5), -1 - math.sqrt(0.5)]
    assert fixed_horizon(logs) == 16
    assert fixed_horizon([3 * log for log in logs]) == 16
    assert fixed_horizon([-0.2]) == 0
    assert fixed_horizon([0.3, -0.3]) == 0


def test_one_of_twenty_may_be_called_wrongly() -> None:
    results = {f"gain 1.2, {n}": GAIN for n in range(19)} | {"gain 1.5, 1": HARM}
    assert ASKED.missed(results) == []
    assert ASKED.missed({**results, "gain 1.5, 2": HARM}) == ["gains: 19 of 21"]


def test_a_large_harm_has_to_be_stopped_in_time() -> None:
    late = replace(HARM, blocks=3)
    assert ASKED.missed({"harm 4, 1": HARM, "harm 1.5, 1": replace(HARM, stopped="")}) == []
    assert ASKED.missed({"harm 4, 1": late}) == ["harm 4: 1 were not stopped in time"]


def test_the_table_has_a_row_for_each_kind() -> None:
    rows = list(ASKED.table({"gain 1.2, 1": GAIN, "gain 1.2, 2": GAIN, "harm 4, 1": HARM}))
    assert rows[2].startswith("| gain 1.2 | 2 of 2 | 0.83 | 7, 7 |")
    assert rows[3] == "| harm 4 | 1 of 1 | - | 0, 0 | - | 1 at most | 900, 900 | 0 | 0 |"
