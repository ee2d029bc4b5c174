"""Numbers as people read them."""

import pytest

from intop.words import counted, interval, number, percent


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1234.5, "1234"),
        (99.96, "100"),
        (10.04, "10.0"),
        (9.999, "10.0"),
        (0.1, "0.10"),
        (0.0123, "0.012"),
        (0, "0"),
        (-31.26, "-31.3"),
        (-310.4, "-310"),
        (-0.0001, "-0.0001"),
    ],
)
def test_numbers_have_the_digits_that_say_something(value: float, expected: str) -> None:
    assert expected == number(value)


def test_signs_and_intervals() -> None:
    assert "0" == number(-0.0)
    assert "+1.50" == number(1.5, "+")
    assert "11.7 (10.1 to 13.7)" == interval(11.7, 10.13, 13.7)
    assert ("95 %", "99.5 %") == (percent(0.95), percent(0.995))
    assert ("1 key", "0 keys", "2 keys") == tuple(counted(n, "key") for n in (1, 0, 2))
