"""The noisy bed of refine: what is drawn, and how two versions are compared."""

import numpy as np
import pytest

from benchmarks.search_noise import drawn, paired


def test_a_tail_has_half_of_the_noise_of_p99() -> None:
    rng = np.random.default_rng(1)
    tails, p99s = np.array([drawn(0.21, rng) for _ in range(4_000)]).T
    # Student's t has a standard deviation that few draws don't know; half of it is within 0.76.
    assert np.quantile(np.abs(tails), 0.5) == pytest.approx(0.5 * 0.76 * 0.21 / 3**0.5, rel=0.1)
    assert np.quantile(np.abs(p99s), 0.5) == pytest.approx(0.76 * 0.21 / 3**0.5, rel=0.2)
    assert np.mean(tails > 1.5) == pytest.approx(0.03, abs=0.01)


def test_pairs_say_how_sure_a_difference_is() -> None:
    mean, error = paired(np.array([0.1, 0.3]))
    assert (mean, error) == pytest.approx((0.2, 0.1))
