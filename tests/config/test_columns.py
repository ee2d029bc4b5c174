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
    result = meaning(column(*texts))
    assert result.choices == ()
    assert numbers == result.numbers.tolist()
    assert not np.signbit(result.numbers[result.numbers == 0]).any()


@pytest.mark.parametrize(
    ("texts", "choices", "numbers"),
    [
        (["yes", "no", "Yes"], ("off", "on"), [1, 0, 1]),
        (["true", "TRUE", "1", "yes", "0"], ("off", "on"), [1, 1, 1, 1, 0]),
        (["True", "1.0", "0.0", "False"], ("off", "on"), [1, 1, 0, 0]),
        (["y", "N", "yes", "0"], ("off", "on"), [1, 0, 1, 0]),
        (["t", "F", "True"], ("off", "on"), [1, 0, 1]),
        (["n", "f"], ("f", "n"), [1, 0]),
        (["WAHR", "falsch", "wahr", "0"], ("off", "on"), [1, 0, 1, 0]),
        (["oui", "non", "1"], ("off", "on"), [1, 0, 1]),
        (["32bit", "64bit"], ("32bit", "64bit"), [0, 1]),
        (["1st", "2nd", "3rd"], ("1st", "2nd", "3rd"), [0, 1, 2]),
        (["true", "1", "", "TRUE", "0"], ("(missing)", "off", "on"), [2, 2, 0, 2, 1]),
        (["none", "on", "Off"], ("none", "off", "on"), [0, 2, 1]),
        (["on", "2"], ("2", "on"), [1, 0]),
        (["off", "1", "2"], ("1", "2", "off"), [2, 0, 1]),
        (["inf", "auto"], ("auto", "inf"), [1, 0]),
        (["auto", "64", "ipv4"], ("64", "auto", "ipv4"), [1, 0, 2]),
        (["none", "lru"], ("lru", "none"), [1, 0]),
        (["auto", "64", "None"], ("64", "None", "auto"), [2, 0, 1]),
        (["1.24", "1.24.1", "1.25.3"], ("1.24", "1.24.1", "1.25.3"), [0, 1, 2]),
        (["4096 131072 6291456", "4096 87380 6291456"],
         ("4096 131072 6291456", "4096 87380 6291456"), [0, 1]),
        (["off", "TRUE", "false"], ("off", "on"), [0, 1, 0]),
        (["lru", "auto", "lru"], ("auto", "lru"), [1, 0, 1]),
        (["auto", "64", "128"], ("128", "64", "auto"), [2, 1, 0]),
        (["a", "", "nan"], ("(missing)", "a", "nan"), [1, 0, 2]),
        (["", "NA"], ("(missing)", "NA"), [0, 1]),
        (["on", "auto"], ("auto", "on"), [1, 0]),
    ],
)  # fmt: skip
def test_all_else_are_choices(
    texts: list[str], choices: tuple[str, ...], numbers: list[float]
) -> None:
    result = meaning(column(*texts))
    assert (choices, numbers) == (result.choices, result.numbers.tolist())


MANY = [str(n) for n in range(MOST_CHOICES)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["1", "", "3"], "a.csv:3: column 'x': has no number ('') where others have"),
        (["1", "2", "NaN"], "a.csv:4: column 'x': has no number ('NaN') where others have"),
        (["1", "inf", "3"], "a.csv:3: column 'x': must be 0, or 1e-100 to 1e+100 in size, and is"),
        (["1e999", "3"], "a.csv:2: column 'x': must be 0, or 1e-100 to 1e+100 in size, and is"),
        (["1", "-1e-200"], "a.csv:3: column 'x': must be 0, or 1e-100 to 1e+100 in size, and is"),
        (["1", "2", "None"], "a.csv:4: column 'x': has no number ('None') where others have: fill"),
        (["1", "-"], "a.csv:3: column 'x': has no number ('-') where others have: fill it in"),
        (["1", "<NA>", "2"], "a.csv:3: column 'x': has no number ('<NA>') where others have"),
        (["#DIV/0!", "2"], "a.csv:2: column 'x': has no number ('#DIV/0!') where others have"),
        (["0.5", "0,5"], "a.csv:3: column 'x': '0,5' has a comma: write a point before decimals"),
        (["0,5", "0,7"], "a.csv:2: column 'x': '0,5' has a comma: write a point before decimals"),
        (["1", "1,200"], "a.csv:3: column 'x': '1,200' has a comma: write a point before decimals"),
        (["1.234,5", "7"], "a.csv:2: column 'x': '1.234,5' has a comma: write a point before"),
        (["0,5 ms", "7 ms"], "a.csv:2: column 'x': '0,5 ms' has a comma: write a point before"),
        (["1 200", "999"], "a.csv:2: column 'x': '1 200' has a blank between its digits: write"),
        (["1\u202f200", "9"], "a.csv:2: column 'x': '1\\u202f200' has a blank between its digits"),
        (["1'200", "999"], "a.csv:2: column 'x': \"1'200\" has a mark between its digits: write"),
        (["1_000", "2_000"], "a.csv:2: column 'x': '1_000' has a mark between its digits: write"),
        (["1.234.567", "5"], "a.csv:2: column 'x': '1.234.567' has several points: write a point"),
        (["0x10", "0x20"], "a.csv:2: column 'x': '0x10' is not decimal: write 16"),
        (["٣", "4"], "a.csv:2: column 'x': '٣' has another sign or other digits: write 3"),
        (
            ["\u22125", "4"],
            "a.csv:2: column 'x': '\u22125' has another sign or other digits: write -5",
        ),
        (["1", "2", "12O"], "a.csv:4: column 'x': '12O' is no number, which most others are"),
        (["1", "2", "<5"], "a.csv:4: column 'x': '<5' is no number, which most others are"),
        (["1", "$5"], "a.csv:3: column 'x': '$5' has a currency: write the number alone"),
        (["(null)", "5"], "a.csv:2: column 'x': has no number ('(null)') where others have"),
        (["5", "#WERT!"], "a.csv:3: column 'x': has no number ('#WERT!') where others have"),
        (["5", "#NV"], "a.csv:3: column 'x': has no number ('#NV') where others have"),
        (["12 €", "15 €"], "a.csv:2: column 'x': '12 €' has a currency: write the number alone"),
        (["100-", "200-"], "a.csv:2: column 'x': '100-' has its sign behind it: write it before"),
        (["(100)", "(1,200)"], "a.csv:2: column 'x': '(100)' stands in brackets: write a minus"),
        (["~100", "~200"], "a.csv:2: column 'x': '~100' is not exact: write the number alone"),
        (["5±1", "6 +/- 2"], "a.csv:2: column 'x': '5±1' has its error beside it: write the num"),
        (["np.float64(1.5)", "2"], "a.csv:2: column 'x': 'np.float64(1.5)' is an object of Python"),
        (["Decimal('2')"] * 2, "a.csv:2: column 'x': \"Decimal('2')\" is an object of Python"),
        (["=5", "=6"], "a.csv:2: column 'x': '=5' is a formula of a spreadsheet: write the numb"),
        (['="5"', "'6"], "a.csv:2: column 'x': '=\"5\"' is marked as text by a spreadsheet: write"),
        (["00:01:30", "0:02:00"], "a.csv:2: column 'x': '00:01:30' is a time of several units"),
        (["1h30m", "1m 30s"], "a.csv:2: column 'x': '1h30m' is a time of several units: write"),
        (["9", "1Gbit", "5Mbit", "7 Mbit"], "a.csv:3: column 'x': '1Gbit' has a unit that is not"),
        (["1 core", "2 cores", "4 cores"], "a.csv:2: column 'x': '1 core' has a unit that is not"),
        (["5 req/s", "6 req/s", "7 req/s"], "a.csv:2: column 'x': '5 req/s' has a unit that is n"),
        (["1", "2", "Mean"], "a.csv:4: column 'x': 'Mean' among numbers: take the row out, if it"),
        (["bbr\u200b", "bbr"], "a.csv:3: column 'x': 'bbr' and 'bbr\\u200b' (line 2) are one"),
        (["1", "2", "∞"], "a.csv:4: column 'x': '∞' is no number, which most others are"),
        (["ms", *MANY[:12]], "a.csv:2: column 'x': 'ms' is no number, which most others are"),
        (["10s", "4kb"], "a.csv:3: column 'x': has units of different kinds (s, kb): write all in"),
        (["BBR", "cubic", "bbr"], "a.csv:4: column 'x': 'bbr' and 'BBR' (line 2) are one choice"),
        (["on", "y"], "a.csv:3: column 'x': 'y' and 'on' (line 2) are one choice"),
        (["on", "1", "auto"], "a.csv:3: column 'x': '1' and 'on' (line 2) are one choice"),
        (["inf", "-inf"], "a.csv:2: column 'x': must be 0, or 1e-100 to 1e+100 in size, and is"),
        (["a  b", "a b"], "a.csv:3: column 'x': 'a b' and 'a  b' (line 2) are one choice"),
        (["auto", "64", "off", "64.0"], "a.csv:5: column 'x': '64.0' and '64' (line 3) are one"),
        ([*MANY, "12O"], "a.csv:66: column 'x': '12O' is no number, which most others are"),
        (
            [*(f"{n}ms" for n in MANY), "4kb"],
            "a.csv:66: column 'x': has units of different kinds (ms, kb): write all in one kind",
        ),
    ],
)
def test_what_is_among_numbers_and_none_is_told(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        meaning(column(*texts))
    assert str(caught.value).startswith(message)


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
    assert pytest.approx(made.place(values).tolist()) == [0, 0.25, 1]


def test_a_variable_has_the_choices_that_occur() -> None:
    meant = Meaning(numbers=np.array([2.0, 0, 2]), choices=("a", "b", "c"))
    made, values = variable("x", meant)
    assert made.choices == ("a", "c")
    assert values.tolist() == [1, 0, 1]
