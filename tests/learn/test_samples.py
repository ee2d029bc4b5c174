"""What models are trained on: a row for each configuration."""

import math

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
    assert 2 == len(part)
    assert [[0.3], [0.1]] == part.values.tolist()
    assert ((2.0, 8.0), (2.0,)) == part.measured
    again = Samples(variables=X, values=part.values, measured=part.measured)
    assert again.log_target.tolist() == part.log_target.tolist()
    assert 0 == len(SAMPLES.rows([]))


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
    assert 6 == len({SAMPLES.digest, *(other.digest for other in others)})


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
