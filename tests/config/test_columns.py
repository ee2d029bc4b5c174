"""What a column of text means."""

from pathlib import Path

import numpy as np
import pytest

from intop.config.columns import MOST_CHOICES, Meaning, meaning, variable
from intop.config.table_file import Column
from intop.errors import ConfigurationError


def column(*texts: str) -> Column:
    """A column of these rows, of which the first is in line 2."""
    distinct = list(dict.fromkeys(texts))
    return Column(
        path=Path("a.csv"),
        name="x",
        texts=tuple(distinct),
        codes=np.array([distinct.index(text) for text in texts], dtype=np.int64),
        place=lambda row: f"line {row + 2}",
    )


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1", "-2.5", "1e3"], [1, -2.5, 1000]),
        (["512mb", "1gb", "0", "-1", "512MB"], [2.0**29, 2.0**30, 0, -1, 2.0**29]),
        (["4KB", "64k", "1GiB", "12"], [4096, 65536, 2.0**30, 12]),
        (["10s", "250ms", "2m"], [10, 0.25, 120]),
        (["0", "-0"], [0, 0]),
        (["5 %", "70%"], [5, 70]),
    ],
)
def test_numbers_are_read_in_one_unit(texts: list[str], numbers: list[float]) -> None:
    found = meaning(column(*texts))
    assert () == found.choices
    assert numbers == found.numbers.tolist()
    assert not np.signbit(found.numbers[found.numbers == 0]).any()


@pytest.mark.parametrize(
    ("texts", "choices", "numbers"),
    [
        (["yes", "no", "Yes"], ("off", "on"), [1, 0, 1]),
        (["off", "TRUE", "false"], ("off", "on"), [0, 1, 0]),
        (["lru", "auto", "lru"], ("auto", "lru"), [1, 0, 1]),
        (["auto", "64", "128"], ("128", "64", "auto"), [2, 1, 0]),
        (["a", "", "nan"], ("(missing)", "a", "nan"), [1, 0, 2]),
        (["10s", "4kb"], ("10s", "4kb"), [0, 1]),
        (["", "NA"], ("(missing)", "NA"), [0, 1]),
        (["on", "auto"], ("auto", "on"), [1, 0]),
    ],
)
def test_all_else_are_choices(
    texts: list[str], choices: tuple[str, ...], numbers: list[float]
) -> None:
    found = meaning(column(*texts))
    assert (choices, numbers) == (found.choices, found.numbers.tolist())


MANY = [str(n) for n in range(MOST_CHOICES)]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["1", "", "3"], "a.csv:3: column 'x': has no number ('') where others have"),
        (["1", "2", "NaN"], "a.csv:4: column 'x': has no number ('NaN') where others have"),
        (["1", "inf", "3"], "a.csv:3: column 'x': must be 0, or 1e-100 to 1e+100 in size, and is"),
        (["1e999", "3"], "a.csv:2: column 'x': must be 0, or 1e-100 to 1e+100 in size, and is"),
        (["1", "-1e-200"], "a.csv:3: column 'x': must be 0, or 1e-100 to 1e+100 in size, and is"),
        ([*MANY, "12O"], "a.csv:66: column 'x': '12O' is no number, which most others are"),
        (
            [*(f"{n}ms" for n in MANY), "4kb"],
            "a.csv:66: column 'x': has units of different kinds (ms, kb): write all in one kind",
        ),
    ],
)
def test_what_is_among_numbers_and_none_is_told(texts: list[str], told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        meaning(column(*texts))
    assert str(caught.value).startswith(told)


def numeric(*numbers: float) -> Meaning:
    return Meaning(numbers=np.array(numbers, dtype=np.float64))


@pytest.mark.parametrize(
    ("numbers", "low", "scale"),
    [
        ((1, 100), 1, "linear"),
        ((1, 101), 1, "log"),
        ((0, 5, 100), 0, "linear"),
        ((-1, 5, 5000), 0.5, "log"),
        ((-1, 0, 5, 5000), -1, "linear"),
        ((-500, -1), -500, "linear"),
    ],
)
def test_more_than_two_decades_are_logarithmic(
    numbers: tuple[float, ...], low: float, scale: str
) -> None:
    made, values = variable("x", numeric(*numbers))
    assert (low, numbers[-1], scale) == (made.low, made.high, made.scale)
    assert list(numbers) == values.tolist()


def test_a_special_value_has_a_place_of_its_own_on_a_logarithmic_scale() -> None:
    made, values = variable("x", numeric(0, 5, 5000))
    assert [0, 0.25, 1] == pytest.approx(made.place(values).tolist())


def test_a_variable_has_the_choices_that_occur() -> None:
    meant = Meaning(numbers=np.array([2.0, 0, 2]), choices=("a", "b", "c"))
    made, values = variable("x", meant)
    assert ("a", "c") == made.choices
    assert [1, 0, 1] == values.tolist()
