"""A replica that drifts away from the others is found and named."""

import numpy as np
import pytest

from intop.run.replica_drift import replica_drift


def latencies(
    replicas: int, rounds: int, sd: float, seed: int, slower: int = 0, since: int = 10
) -> dict[str, list[float]]:
    """Around 100 ms, with noise, and a level that all share and that wanders."""
    rng = np.random.default_rng(seed)
    common = np.cumsum(rng.normal(0, 0.02, rounds))
    logs = np.log(100) + common + rng.normal(0, sd, (replicas, rounds))
    if slower:
        logs[slower, since:] += np.log(1.2)
    return {f"lb{n}": np.exp(row).tolist() for n, row in enumerate(logs)}


def first_alarm(made: dict[str, list[float]], begin: int = 0) -> int | None:
    """The number of rounds after which a replica is named."""
    rounds = len(made["lb0"])
    for n in range(begin, rounds + 1):
        if replica_drift({name: values[:n] for name, values in made.items()}):
            return n
    return None


@pytest.mark.parametrize("replicas", [2, 3])
def test_a_replica_slowed_by_a_fifth_is_named_within_eight_sentinels(replicas: int) -> None:
    for seed in range(20):
        made = latencies(replicas, 18, 0.03, seed, slower=1)
        alarm = first_alarm(made, 10)
        assert alarm is not None
        result = replica_drift({name: values[:alarm] for name, values in made.items()})
        assert result is not None
        assert result.replica == "lb1"
        assert 1.1 < result.ratio < 1.35
        assert 8 <= result.first <= 12


@pytest.mark.parametrize("replicas", [2, 3])
def test_hardly_a_campaign_without_drift_has_an_alarm(replicas: int) -> None:
    alarms = [first_alarm(latencies(replicas, 20, 0.05, 100 + n)) for n in range(40)]
    assert sum(alarm is not None for alarm in alarms) <= 2


def test_what_moves_all_replicas_is_no_drift_of_one() -> None:
    made = latencies(3, 18, 0.03, 1)
    for values in made.values():
        values[9:] = [2 * value for value in values[9:]]
    assert replica_drift(made) is None


def test_too_few_sentinels_or_replicas_tell_nothing() -> None:
    assert replica_drift({}) is None
    assert replica_drift({"lb0": [1.0] * 30}) is None
    assert replica_drift({"lb0": [1.0] * 30, "lb1": [1.0, 1.0, 1.0, 1.0, 9.0]}) is None
    assert replica_drift({"lb0": [1.0] * 30, "lb1": [1.0] * 30}) is None


def test_exact_values_have_no_doubt() -> None:
    result = replica_drift({"lb0": [10.0] * 8, "lb1": [10.0] * 4 + [12.0] * 4})
    assert result is not None
    assert (result.replica, result.first) == ("lb1", 4)
    assert result.ratio == pytest.approx(1.2)


def test_a_few_sentinels_that_met_the_same_trouble_are_no_drift() -> None:
    made = latencies(2, 20, 0.01, 1)
    made["lb1"][8:11] = [1.5 * value for value in made["lb1"][8:11]]
    assert first_alarm(made) is None


def test_an_odd_sentinel_before_it_hides_no_drift() -> None:
    for seed in range(20):
        made = latencies(2, 18, 0.02, seed, slower=1)
        made["lb0"][seed % 10] *= 1.5
        made["lb1"][(seed + 3) % 10] *= 1.5
        assert first_alarm(made) is not None
