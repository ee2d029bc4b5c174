"""Components of metrics whose common causes are known."""

import math

import numpy as np
import pytest

from intop.domain.performance import P99, Performance
from intop.learn.components import components, p99_equivalent

ROWS = 80
RNG = np.random.default_rng(1)
DELAY, WORK, ALONE = RNG.normal(size=(3, ROWS))


def noisy(cause: np.ndarray, scale: float, noise: float = 0.2) -> np.ndarray:
    return scale * (cause + noise * RNG.normal(size=ROWS)) + 3


PLANTED = {
    P99: noisy(DELAY, 0.5),
    "log max": noisy(DELAY, 2.0),
    "achieved rate": noisy(DELAY, -100.0),
    "balancer's CPU": noisy(WORK, 0.1),
    "backends' CPU": noisy(WORK, 0.01),
    "retransmits": ALONE,
    "error share": np.zeros(ROWS),
}


def table(columns: dict[str, np.ndarray], rows: int = ROWS) -> Performance:
    made = np.column_stack(list(columns.values()))[:rows]
    return Performance(metrics=tuple(columns), rows=tuple(map(tuple, made.tolist())))


def test_metrics_with_a_common_cause_are_found_together() -> None:
    result = components(table(PLANTED))
    assert result.groups == (
        (P99, "log max", "achieved rate"),
        ("balancer's CPU", "backends' CPU"),
    )
    assert result.needed == 3
    assert result.constant == ("error share",)
    assert pytest.approx(sum(result.explained)) == 1
    assert sorted(result.explained, reverse=True) == list(result.explained)


def test_a_loading_is_the_correlation_with_a_component_in_which_p99_grows() -> None:
    result = components(table(PLANTED))
    first = [result.loading(0, metric) for metric in (P99, "log max", "achieved rate")]
    assert pytest.approx(first, abs=0.03) == [0.97, 0.97, -0.97]
    assert all(result.loading(n, P99) >= 0 for n in range(len(result.loadings)))
    assert result.loading(0, "error share") == 0
    # What all components explain of a standardised metric is the whole of it.
    squares = np.square(result.loadings).sum(axis=0)
    assert np.ones(6) == pytest.approx(squares)


def test_a_chain_of_correlations_is_one_group() -> None:
    steps = [DELAY, DELAY + 0.6 * WORK, DELAY + 1.4 * WORK]
    assert abs(np.corrcoef(steps[0], steps[2])[0, 1]) < 0.8
    result = components(table(dict(zip("abc", steps, strict=True))))
    assert result.groups == (("a", "b", "c"),)


def test_metrics_that_say_the_same_are_one_component() -> None:
    result = components(table({P99: DELAY, "log max": 2 * DELAY, "log P90": -DELAY}))
    assert (len(result.loadings), result.needed) == (1, 1)
    assert pytest.approx(result.loadings[0]) == (1.0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("given", "rows", "metrics"),
    [(PLANTED, 9, 6), ({P99: DELAY, "error share": np.ones(ROWS)}, ROWS, 1), (PLANTED, 0, 0)],
)
def test_of_too_little_there_are_none(
    given: dict[str, np.ndarray], rows: int, metrics: int
) -> None:
    result = components(table(given, rows))
    assert (result.loadings, result.explained, result.needed, result.groups) == ((), (), 0, ())
    assert (rows, metrics) == (result.trials, len(result.metrics))
    with pytest.raises(ValueError, match=f"10 trials and 2 metrics .* {rows} and {metrics}$"):
        p99_equivalent(table(given, rows))


def test_the_objective_reads_as_p99_and_has_less_noise() -> None:
    logs = [math.log(ms) for ms in p99_equivalent(table(PLANTED))]
    assert np.mean(PLANTED[P99]) == pytest.approx(np.mean(logs))
    assert np.std(PLANTED[P99]) == pytest.approx(np.std(logs))
    assert np.corrcoef(logs, DELAY)[0, 1] > np.corrcoef(PLANTED[P99], DELAY)[0, 1] > 0.9


def test_a_component_without_p99_is_no_objective() -> None:
    busy = {name: noisy(WORK, 1.0) for name in ("balancer's CPU", "backends' CPU", "TIME_WAIT")}
    with pytest.raises(ValueError, match="little to do with P99: their correlation is 0"):
        p99_equivalent(table({P99: DELAY, **busy}))
