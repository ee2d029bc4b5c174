"""What the benchmark of screening holds rankings against."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.made_up import MadeUp, issue, like_lab
from benchmarks.screening import strengths
from benchmarks.tables import as_samples
from intop.domain.encoding import Matrix
from intop.domain.trial import PlannedTrial
from intop.learn.design import latin_hypercube

SACK, RMEM = "net.ipv4.tcp_sack", "net.ipv4.tcp_rmem[max]"


def row(arm: str, p99_ms: float) -> dict[str, str]:
    return {"arm": arm, "p99_ms": str(p99_ms)}


def test_what_acts_alone_is_told_from_what_does_not_and_rounds_are_no_scatter() -> None:
    rounds = (1.0, 2.0, 5.0, 1.5)
    rows = [
        row(arm, base * slow * scatter)
        for slow, wave in zip(rounds, (1.0, 1.02, 0.99, 1.01), strict=True)
        for arm, base, scatter in (
            ("default", 100, 1.0),
            (f"{SACK}: 0", 200, wave),
            (f"{RMEM}: 1 2 3", 101, 2 - wave),
            (f"{RMEM}: 1 2 4", 99, wave),
        )
    ]
    result = strengths(rows)
    assert set(result) == {SACK, "net.ipv4.tcp_rmem"}
    sack, rmem = result[SACK], result["net.ipv4.tcp_rmem"]
    assert (sack.separated, sack.effect) == (True, pytest.approx(0.70, abs=0.03))
    assert rmem.separated is False
    assert sack.error < 0.02


def test_a_table_becomes_configurations_with_all_of_their_trials() -> None:
    table = [
        {"configuration": c, "arm": "", SACK: sack, RMEM: most, "p99_ms": p99}
        for c, sack, most, p99 in (
            ("aa", "1", "65536", "10"),
            ("bb", "0", "131072", "30"),
            ("aa", "1", "65536", "20"),
        )
    ]
    result = as_samples(table)
    assert [v.key for v in result.variables] == [SACK, "net.ipv4.tcp_rmem"]
    assert result.values.tolist() == [[1, 65536], [0, 131072]]
    assert result.measured == ((10.0, 20.0), (30.0,))


@pytest.mark.parametrize("made_up", [issue, like_lab])
def test_a_made_up_cluster_feels_what_matters_and_nothing_else(
    made_up: Callable[..., MadeUp],
) -> None:
    made = made_up(1)
    space = made.offer.space
    here = space.genes(space.values(latin_hypercube(space, 8, seed=1)))
    before, felt = p99_of(made, space.decode(here)), set()
    for column, result in enumerate(space.columns):
        there = here.copy()
        there[:, column] = np.roll(there[:, column], 1)
        if before != p99_of(made, space.decode(there)):
            felt.add(result.parameter.key)
    assert made.matter == felt
    assert len(felt) == 8


def test_where_nothing_acts_there_is_nothing_to_choose() -> None:
    flat = issue(1, flat=True)
    space = flat.offer.space
    first, *others = p99_of(flat, space.values(latin_hypercube(space, 5, seed=1)))
    assert not flat.matter
    # One place's noise, whatever the configuration.
    assert [first] * 4 == others


def p99_of(made: MadeUp, values: Matrix) -> list[float]:
    """P99 of configurations, each at the same place of a plan: with the same noise."""
    return [
        made.answer(PlannedTrial(index=7, role="replicate", configuration=c), "screen").p99_ms
        for c in made.offer.space.configurations(values)
    ]
