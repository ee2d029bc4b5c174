"""Warm starts, on a source that is like the target, and on one that is not."""

from dataclasses import replace

import numpy as np
import pytest

from builders.trials import table
from intop.domain.encoding import Matrix, Variable
from intop.learn import accuracy
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import fit, predicted
from intop.learn.transfer import CORRECTED, MAPPED, SCRATCH, Warm, prior, warm_start

RNG = np.random.default_rng(5)
PLACES = RNG.random((260, 5))
CHOICE = ("cubic", "reno", "bbr")


def shape(values: Matrix) -> Vector:
    """Steep, and with an interaction: twenty rows are few."""
    return 3 * np.abs(values[:, 0] - 0.4) + 2 * values[:, 1] * (values[:, 2] > 0.5)


SOURCE = table(PLACES[:120], shape(PLACES[:120]))
TARGET = table(PLACES[120:140], 1 + 0.7 * shape(PLACES[120:140]) + 0.2 * PLACES[120:140, 3])
REST = table(PLACES[140:], 1 + 0.7 * shape(PLACES[140:]) + 0.2 * PLACES[140:, 3])


def warm(source: Samples, family: str = "SVR") -> Warm:
    return warm_start(family, TARGET, prior(family, TARGET.variables, source, 1), 1)


def error(guesses: Vector) -> float:
    return accuracy.mape(REST.log_target, guesses)


def scratch(family: str = "SVR") -> float:
    defaults = dict(FAMILIES[family].defaults)
    model = fit(FAMILIES[family].build(TARGET.variables, defaults, 1), TARGET)
    return error(predicted(model, REST.values))


@pytest.mark.parametrize("family", ["SVR", "LightGBM"])
def test_a_related_source_saves_most_of_the_error(family: str) -> None:
    result = warm(SOURCE, family)
    assert error(result(REST.values)) < 0.75 * scratch(family)
    assert result.shares[MAPPED] + result.shares[CORRECTED] > 0.8
    assert pytest.approx(sum(result.shares.values())) == 1


def test_a_shuffled_source_does_hardly_any_harm() -> None:
    order = np.random.default_rng(2).permutation(len(SOURCE))
    shuffled = replace(SOURCE, measured=tuple(SOURCE.measured[n] for n in order))
    result = warm(shuffled)
    assert result.shares[MAPPED] < 0.1
    assert error(result(REST.values)) < 1.1 * scratch()


def test_without_a_variable_in_common_it_is_from_scratch() -> None:
    others = tuple(replace(v, name=f"y{n}") for n, v in enumerate(SOURCE.variables))
    result = warm(replace(SOURCE, variables=others))
    assert dict(result.shares) == {SCRATCH: 1.0}
    assert scratch() == pytest.approx(error(result(REST.values)))


def test_a_source_that_always_says_the_same_is_no_obstacle() -> None:
    same = replace(SOURCE, measured=((2.0,),) * len(SOURCE))
    assert np.all(np.isfinite(warm(same)(REST.values)))


def test_what_the_source_has_measured_is_not_predicted() -> None:
    known = prior("SVR", SOURCE.variables, SOURCE, 1)
    assert SOURCE.log_target.tolist() == known(SOURCE.values).tolist()


def test_choices_in_another_order_and_other_ranges_are_told_apart() -> None:
    number = Variable(name="n", key="n", low=1, high=100, scale="log")
    word = Variable(name="w", key="w", choices=CHOICE)
    rows = np.array([[n, w] for n in (1.0, 10.0, 100.0) for w in range(3)])
    source = Samples(
        variables=(number, word, Variable(name="own", key="own")),
        values=np.column_stack([rows, np.zeros(len(rows))]),
        measured=tuple((float(1 + w),) for _, w in rows),
    )
    mine = (
        replace(word, choices=("bbr", "vegas", "cubic")),
        replace(number, high=1000),
        Variable(name="mine", key="mine"),
    )
    known = prior("RFR", mine, source, 1)
    assert known.pairs == ((0, 1), (1, 0))
    cubic, bbr = known(np.array([[2, 10, 0.5], [0, 1000, 0.5]]))
    assert cubic < 0.3 < 0.8 < bbr
    # What the source never had is a guess, and no error.
    assert np.isfinite(known(np.array([[1, 10, 0.5]]))).all()


def test_too_few_rows_are_refused() -> None:
    few = TARGET.rows(range(7))
    with pytest.raises(ValueError, match="needs 8 rows of its own, got 7"):
        warm_start("SVR", few, prior("SVR", few.variables, SOURCE, 1), 1)
