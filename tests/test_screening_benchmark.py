"""What the benchmark of screening holds rankings against."""

import numpy as np
import pytest

from benchmarks.screening import MATTER, Surface, as_samples, strengths

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
    found = strengths(rows)
    assert {SACK, "net.ipv4.tcp_rmem"} == set(found)
    sack, rmem = found[SACK], found["net.ipv4.tcp_rmem"]
    assert (True, pytest.approx(0.70, abs=0.03)) == (sack.separated, sack.effect)
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
    found = as_samples(table)
    assert [SACK, "net.ipv4.tcp_rmem"] == [v.key for v in found.variables]
    assert [[1, 65536], [0, 131072]] == found.values.tolist()
    assert ((10.0, 20.0), (30.0,)) == found.measured


def test_a_made_up_surface_feels_what_matters_and_nothing_else() -> None:
    rng = np.random.default_rng(1)
    surface = Surface.made(rng)
    assert 100 == len({v.key for v in surface.variables})
    genes = rng.random((64, len(surface.variables)))
    before = surface.log_p99(surface.values(genes))
    felt = set()
    for column, variable in enumerate(surface.variables):
        other = genes.copy()
        other[:, column] = rng.permutation(other[:, column])
        if not np.array_equal(before, surface.log_p99(surface.values(other))):
            felt.add(variable.key)
    assert set(MATTER) == felt
