"""Numbers as people read them."""

import pytest

from intop.report.numbers import interval, number, percent


@pytest.mark.parametrize(
    ("value", "told"),
    [(1234.5, "1234"), (99.96, "100"), (12.34, "12.3"), (1.234, "1.23"), (0.0321, "0.032")],
)
def test_three_digits_and_two_of_what_is_small(value: float, told: str) -> None:
    assert told == number(value)


def test_signs_and_intervals() -> None:
    assert "0" == number(-0.0)
    assert "+1.50" == number(1.5, "+")
    assert "11.7 (10.1 to 13.7)" == interval(11.7, 10.13, 13.7)
    assert "95 %" == percent(0.95)
