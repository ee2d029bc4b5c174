"""Whether replicas measure the same."""

import pytest

from intop.domain.agreement import agreement

SAME = (10.0, 11.0, 9.5, 10.5, 10.2, 9.8)


def test_replicas_that_measure_the_same_are_in_use() -> None:
    result = agreement({"a": SAME, "b": tuple(reversed(SAME)), "c": SAME}, level=0.99)
    assert result.in_use == (0, 1, 2)
    first, second, _ = result.replicas
    assert (first.name, first.trials, first.ratio) == ("a", 6, None)
    assert second.ratio is not None
    assert pytest.approx(second.ratio.value) == 1
    assert first.judged_ms == pytest.approx(10.16, abs=0.01)


def test_one_that_measures_something_else_is_left_out() -> None:
    slow = tuple(2 * x for x in SAME)
    result = agreement({"a": SAME, "slow": slow, "c": SAME}, level=0.99)
    assert result.in_use == (0, 2)
    assert result.replicas[1].ratio is not None
    assert pytest.approx(result.replicas[1].ratio.value) == 0.5


def test_the_level_is_that_of_all_comparisons_together() -> None:
    def width(count: int) -> float:
        names = {f"r{n}": tuple(x + n * 0.01 for x in SAME) for n in range(count)}
        ratio = agreement(names, level=0.95).replicas[1].ratio
        assert ratio is not None
        return ratio.high / ratio.low

    assert width(2) < width(5)


@pytest.mark.parametrize("measured", [{"a": SAME, "b": (10.0,)}, {"a": (), "b": SAME}])
def test_nothing_is_known_from_too_few_trials(measured: dict[str, tuple[float, ...]]) -> None:
    result = agreement(measured, level=0.99)
    assert result.in_use == (0,)
    assert result.replicas[1].ratio is None
