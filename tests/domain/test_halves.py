"""What sysctls and directives of a winner are worth alone, and together."""

import numpy as np
import pytest

from intop.domain.configuration import Configuration
from intop.domain.halves import KERNEL, NGINX, halves, halves_of

SOMAXCONN, BACKLOG = "net.core.somaxconn", "nginx:listen.backlog"
DEFAULTS = {SOMAXCONN: "128", BACKLOG: "511"}


def test_each_half_has_the_parameters_of_its_kind() -> None:
    both = Configuration({SOMAXCONN: "777", BACKLOG: "888"})
    assert {
        KERNEL: Configuration({SOMAXCONN: "777"}),
        NGINX: Configuration({BACKLOG: "888"}),
    } == halves_of(both, DEFAULTS)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {SOMAXCONN: "777"},
        {BACKLOG: "888"},
        {SOMAXCONN: "128", BACKLOG: "888"},
        {SOMAXCONN: "777", BACKLOG: "511"},
    ],
)
def test_a_half_that_changes_nothing_is_not_measured(values: dict[str, str]) -> None:
    assert halves_of(Configuration(values), DEFAULTS) == {}


def rounds(kernel: float, nginx: float, both: float, count: int = 8) -> list[np.ndarray]:
    """P99 by arm: the default's divided by these gains, with a round's own factor and noise."""
    rng = np.random.default_rng(1)
    base = 10 * np.exp(rng.normal(0, 0.3, count))
    return [base / gain * np.exp(rng.normal(0, 0.01, count)) for gain in (1, kernel, nginx, both)]


@pytest.mark.parametrize(
    ("gains", "says"),
    [
        ((1, 1, 3), "together they are more than the product of both: "),
        ((2, 1, 2), "together they are not clearly more or less than the product of both: "),
        ((2, 2, 2), "together they are less than the product of both: "),
    ],
)
def test_it_says_which_half_gains_and_what_they_are_together(
    gains: tuple[float, float, float], says: str
) -> None:
    default, kernel, nginx, both = (list(arm) for arm in rounds(*gains))
    result = halves(default, kernel, nginx, both, level=0.95)
    assert result is not None
    for interval, gain in zip((result.kernel, result.nginx, result.both), gains, strict=True):
        assert interval.low < interval.value < interval.high
        assert interval.value == pytest.approx(gain, rel=0.02)
    assert result.together.value == pytest.approx(gains[2] / gains[0] / gains[1], rel=0.03)
    assert says in result.summary
    assert (result.rounds, result.level) == (8, 0.95)


def test_one_round_says_nothing() -> None:
    assert halves([5.0], [4.0], [3.0], [2.0], level=0.95) is None
