"""Numbers with units, and the one dimension that a column has."""

import pytest

from intop.config.quantity import dimension, in_unit, quantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", (12, "")),
        ("-1", (-1, "")),
        ("+.5e3", (500, "")),
        ("512mb", (512, "mb")),
        ("4 KB", (4, "kb")),
        ("1.5GiB", (1.5, "gib")),
        ("250ms", (250, "ms")),
        ("20 µs", (20, "µs")),
        ("75%", (75, "%")),
        ("1e999", (float("inf"), "")),
    ],
)
def test_a_number_has_a_unit_or_none(text: str, expected: tuple[float, str]) -> None:
    assert quantity(text) == expected


@pytest.mark.parametrize(
    "text", ["", "mb", "1_000", "٣", "0x10", "1,5", "5 apples", "12ab", "1 2", "nan", "--1", "1e"]
)
def test_other_texts_are_no_quantity(text: str) -> None:
    assert quantity(text) is None


def test_a_text_of_a_hundred_thousand_digits_is_looked_at_once() -> None:
    assert quantity("9" * 100_000 + "!") is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["", ""], ""),
        (["", "kb", "gib", "b"], "bytes"),
        (["m"], "bytes"),
        (["m", "s"], "seconds"),
        (["%"], "per cent"),
        (["mhz", "ghz"], "Hz"),
        (["kb", "s"], None),
        (["apples"], None),
    ],
)
def test_all_units_of_a_column_have_one_dimension(words: list[str], expected: str | None) -> None:
    assert dimension(words) == expected


@pytest.mark.parametrize(
    ("number", "word", "of", "expected"),
    [
        (2, "kb", "bytes", 2048),
        (1, "gib", "bytes", 2**30),
        (3, "m", "bytes", 3 * 2**20),
        (3, "m", "seconds", 180),
        (250, "ms", "seconds", 0.25),
        (-1, "", "bytes", -1),
        (7, "", "", 7),
    ],
)
def test_numbers_are_converted(number: float, word: str, of: str, expected: float) -> None:
    assert in_unit(number, word, of) == expected
