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
    assert number(value) == expected


def test_signs_and_intervals() -> None:
    assert number(-0.0) == "0"
    assert number(1.5, "+") == "+1.50"
    assert interval(11.7, 10.13, 13.7) == "11.7 (10.1 to 13.7)"
    assert (percent(0.95), percent(0.995)) == ("95 %", "99.5 %")
    assert tuple(counted(n, "key") for n in (1, 0, 2)) == ("1 key", "0 keys", "2 keys")
