"""The noise ceiling against what a model that knows the truth does reach."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import beta

from intop.domain.encoding import Variable
from intop.domain.histogram import Histogram
from intop.learn.accuracy import mape, r_squared, rank_correlation
from intop.learn.ceiling import ceiling
from intop.learn.samples import Samples, Vector


def measured(truth: Vector, counts: Vector, sd: float, rng: np.random.Generator) -> Samples:
    trials = [
        tuple(np.exp(rng.normal(mean, sd, count)).tolist())
        for mean, count in zip(truth, counts, strict=True)
    ]
    return Samples(
        variables=(Variable(name="x", key="x"),),
        values=np.zeros((len(truth), 1)),
        measured=tuple(trials),
    )


@pytest.mark.parametrize(("sd", "spread"), [(0.1, 0.5), (0.3, 0.5), (0.3, 0.1)])
def test_it_is_what_a_model_that_knows_the_truth_reaches(sd: float, spread: float) -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(3, spread, 300)
    samples = measured(truth, rng.choice([1, 2, 3], 300), sd, rng)
    result = ceiling(samples)
    assert result is not None
    target = samples.log_target
    assert result.sd == pytest.approx(sd, rel=0.1)
    assert result.mape == pytest.approx(mape(target, truth), rel=0.1)
    assert result.r2 == pytest.approx(r_squared(target, truth), abs=0.06)
    assert result.spearman == pytest.approx(rank_correlation(target, truth), abs=0.06)
    assert result.configurations == sum(len(trials) > 1 for trials in samples.measured)
    assert result == ceiling(samples)


def test_more_trials_of_each_row_raise_it() -> None:
    rng = np.random.default_rng(4)
    truth = rng.normal(3, 0.3, 100)
    few, many = (ceiling(measured(truth, np.full(100, count), 0.3, rng)) for count in (2, 15))
    assert few is not None
    assert many is not None
    assert many.mape < 0.6 * few.mape
    assert many.r2 > few.r2 + 0.1


def test_a_row_with_many_trials_counts_as_one() -> None:
    """The default is measured again and again, and may scatter less than all others."""
    rng = np.random.default_rng(5)
    noisy = measured(rng.normal(3, 0.3, 40), np.full(40, 3), 0.3, rng)
    quiet = tuple(np.exp(rng.normal(3, 0.001, 400)).tolist())
    both = Samples(
        variables=noisy.variables, values=np.zeros((41, 1)), measured=(*noisy.measured, quiet)
    )
    result = ceiling(both)
    assert result is not None
    assert result.sd == pytest.approx(0.3, rel=0.15)


def test_where_nothing_was_measured_twice_there_is_none() -> None:
    rng = np.random.default_rng(6)
    assert ceiling(measured(rng.normal(3, 1, 9), np.ones(9, int), 0.1, rng)) is None


def test_noise_and_nothing_else_can_not_be_explained() -> None:
    rng = np.random.default_rng(7)
    result = ceiling(measured(np.full(60, 3.0), np.full(60, 3), 0.2, rng))
    assert result is not None
    assert result.r2 < 0.2
    assert 5 < result.mape < 25


def test_replicates_that_agree_leave_all_to_the_model() -> None:
    samples = Samples(
        variables=(Variable(name="x", key="x"),),
        values=np.zeros((3, 1)),
        measured=((1.0, 1.0), (2.0, 2.0), (3.0,)),
    )
    result = ceiling(samples)
    assert result is not None
    assert (result.mape, result.sd, result.configurations) == (0, 0, 2)
    assert (result.r2, result.spearman) == pytest.approx((1, 1))
    alike = ceiling(samples.rows([0]))
    assert alike is not None
    assert (alike.mape, alike.r2, alike.spearman) == (0, 0, 0)


REQUESTS = 160


def loaded(
    between: float, rng: np.random.Generator, rows: int = 400
) -> tuple[Samples, list[list[Histogram]], Vector]:
    """Rows with one to three trials each, their latencies, and the rows' true log medians of P99.

    Latencies are log-normal, in half of the rows with three times the spread. Trials differ by
    `between` besides.
    """
    histograms, truth = [], []
    quantile = NormalDist().inv_cdf(float(beta.median(159, 2)))
    for row in range(rows):
        middle, spread = rng.normal(4, 0.3), 0.1 if row % 2 else 0.3
        truth.append(middle + spread * quantile)
        histograms.append(
            [
                Histogram.from_pairs(
                    (round(1000 * latency), 1)
                    for latency in np.exp(
                        middle + rng.normal(0, between) + rng.normal(0, spread, REQUESTS)
                    )
                )
                for _ in range(rng.choice([1, 2, 3]))
            ]
        )
    samples = Samples(
        variables=(Variable(name="x", key="x"),),
        values=np.zeros((rows, 1)),
        measured=tuple(tuple(h.percentile_ms(99.0) for h in made) for made in histograms),
    )
    return samples, histograms, np.array(truth)


@pytest.mark.parametrize("between", [0.0, 0.2])
def test_latencies_tell_the_noise_and_replicates_what_they_miss(between: float) -> None:
    samples, histograms, truth = loaded(between, np.random.default_rng(8))
    result = ceiling(samples, histograms)
    assert result is not None
    assert result.scale is not None
    # What trials differ in besides counts as proportional to each row's own noise, which it isn't.
    assert result.mape == pytest.approx(mape(samples.log_target, truth), rel=0.25)
    assert result.r2 == pytest.approx(r_squared(samples.log_target, truth), abs=0.06)
    assert (result.scale > 1.5) == (between > 0)
    assert result == ceiling(samples, histograms)


def test_latencies_tell_the_noise_where_nothing_was_measured_twice() -> None:
    samples, histograms, truth = loaded(0, np.random.default_rng(9))
    once = samples.rows([n for n, made in enumerate(histograms) if len(made) == 1])
    alone = [made for made in histograms if len(made) == 1]
    result = ceiling(once, alone)
    assert result is not None
    assert (result.scale, result.configurations) == (1, 0)
    judged = truth[[len(made) == 1 for made in histograms]]
    assert result.mape == pytest.approx(mape(once.log_target, judged), rel=0.2)


def test_latencies_that_are_all_alike_have_no_noise() -> None:
    alike = [[Histogram.from_pairs([(1000 * n, REQUESTS)])] for n in (3, 4, 5)]
    samples = Samples(
        variables=(Variable(name="x", key="x"),),
        values=np.zeros((3, 1)),
        measured=tuple((made[0].percentile_ms(99.0),) for made in alike),
    )
    result = ceiling(samples, alike)
    assert result is not None
    assert (result.sd, result.scale) == (0, 1)
    assert result.mape == pytest.approx(0)
