"""What models are trained on: a row for each configuration."""

import math
from pathlib import Path

import numpy as np
import pytest

from intop.domain.encoding import Variable
from intop.learn.samples import Samples

X = (Variable(name="x", key="x"),)
SAMPLES = Samples(
    variables=X,
    values=np.array([[0.1], [0.2], [0.3]]),
    measured=((2.0,), (1.0, 100.0, 4.0), (2.0, 8.0)),
)


def test_the_target_is_the_median_of_the_logarithms_of_a_rows_trials() -> None:
    assert [math.log(2), math.log(4), math.log(4)] == pytest.approx(SAMPLES.log_target.tolist())


def test_rows_keep_all_of_their_trials() -> None:
    part = SAMPLES.rows([2, 0])
    assert len(part) == 2
    assert part.values.tolist() == [[0.3], [0.1]]
    assert part.measured == ((2.0, 8.0), (2.0,))
    again = Samples(variables=X, values=part.values, measured=part.measured)
    assert again.log_target.tolist() == part.log_target.tolist()
    assert len(SAMPLES.rows([])) == 0


def test_a_digest_tells_samples_apart() -> None:
    assert SAMPLES.digest == SAMPLES.rows([0, 1, 2]).digest
    others = [
        SAMPLES.rows([0, 2, 1]),
        SAMPLES.rows([0, 1]),
        Samples(variables=X, values=SAMPLES.values + 0.1, measured=SAMPLES.measured),
        Samples(variables=X, values=SAMPLES.values, measured=((2.1,), *SAMPLES.measured[1:])),
        Samples(
            variables=(Variable(name="x", key="x", high=2),),
            values=SAMPLES.values,
            measured=SAMPLES.measured,
        ),
    ]
    assert len({SAMPLES.digest, *(other.digest for other in others)}) == 6


def test_lent_rows_are_the_last_ones_and_stay_lent() -> None:
    other = Samples(variables=X, values=np.array([[0.4], [0.5]]), measured=((3.0,), (5.0,)))
    both = SAMPLES.lending(other)
    assert (len(both), both.lent, SAMPLES.lent) == (5, 2, 0)
    assert both.own.digest == SAMPLES.digest == SAMPLES.own.digest
    part = both.rows([2, 0, 4])
    assert (part.lent, part.values.tolist()) == (1, [[0.3], [0.1], [0.5]])
    assert part.own.values.tolist() == [[0.3], [0.1]]
    assert [math.log(3), math.log(5)] == pytest.approx(both.log_target[3:].tolist())
    # A part that is drawn has them last, too, and the same rows as its own are other samples.
    assert all(
        both.part(3, seed).lent == (both.part(3, seed).values > 0.3).sum() for seed in range(20)
    )
    owned = Samples(variables=X, values=both.values, measured=both.measured)
    assert both.digest != owned.digest


@pytest.mark.parametrize(
    ("shape", "measured", "message"),
    [
        ((2, 1), ((1.0,),), r"1 rows of 1 variables don't have the shape \(2, 1\)"),
        ((1, 2), ((1.0,),), r"1 rows of 1 variables don't have the shape \(1, 2\)"),
        ((2, 1), ((1.0,), ()), "each configuration needs a trial at least"),
        ((1, 1), ((1.0, 0.0),), "must be a positive number"),
        ((1, 1), ((-1.0,),), "must be a positive number"),
        ((1, 1), ((math.nan,),), "must be a positive number"),
        ((1, 1), ((math.inf,),), "must be a positive number"),
    ],
)
def test_what_is_no_sample_is_refused(
    shape: tuple[int, int], measured: tuple[tuple[float, ...], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Samples(variables=X, values=np.ones(shape), measured=measured)


def test_what_models_learn_of_replicates_is_the_median_in_code_and_documents() -> None:
    samples = Samples(
        variables=X,
        values=np.zeros((2, 1)),
        measured=((10.0, 11.0, 2000.0), (10.0, 1000.0)),
    )
    assert pytest.approx(np.exp(samples.log_target)) == [11.0, 100.0]
    docs = Path(__file__).parents[2] / "docs"
    for name, output in (
        ("measurement.md", "the models and the search get the median of its trials' log P99"),
        ("models.md", "What models learn is the median of their log P99"),
    ):
        assert output in " ".join((docs / name).read_text().split())
