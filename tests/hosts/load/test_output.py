"""The one line of JSON that a load prints: all of it is checked before it counts."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from intop.domain.histogram import Histogram
from intop.hosts.load.output import (
    LARGEST,
    check_kind,
    counts,
    flag,
    histogram,
    json_line,
    short,
    tail,
    whole,
)

DEEP = "[" * 100_000
LONG = "9" * 5000


def refused(message: str, work: Callable[..., Any], *words: Any, **options: Any) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        work(*words, **options)


# The line -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['{"a":1}', 'words\n{"a":1}\nmore\n', ' {no\n{"a":1}'])
def test_the_line_is_found_among_others(text: str) -> None:
    assert json_line(text) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one line of JSON, found 0"),
        ("words\n[1]\n", "expected one line of JSON, found 0"),
        ("{}\n{}", "expected one line of JSON, found 2"),
        ('{"a":1', "the line of JSON is broken"),
        ("{\n", "the line of JSON is broken"),
        ('{"a":1} {}', "the line of JSON is broken"),
        (f'{{"a":{DEEP}', "the line of JSON is broken"),
        (f'{{"a":{LONG}}}', "the line of JSON is broken"),
    ],
    ids=lambda text: text[:20],
)
def test_a_line_that_is_none_is_refused(text: str, message: str) -> None:
    refused(message, json_line, text)


@pytest.mark.parametrize(
    ("data", "result"),
    [
        ({}, "(None, None)"),
        ({"schema": 1, "script": "slt"}, "(1, 'slt')"),
        ({"schema": 2, "script": "dlt"}, "(2, 'dlt')"),
        ({"schema": "2", "script": "slt"}, "('2', 'slt')"),
    ],
)
def test_what_another_script_printed_is_refused(data: dict[str, Any], result: str) -> None:
    refused(f"schema and script are {result}, not (2, 'slt')", check_kind, data, 2, "slt")


def test_what_our_script_printed_is_taken() -> None:
    check_kind({"schema": 2, "script": "slt"}, 2, "slt")


# Numbers and flags --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, LARGEST])
def test_a_whole_number_is_one(number: int) -> None:
    assert number == whole({"n": number}, "n")


def test_a_number_may_be_below_zero_where_that_is_said() -> None:
    assert whole({"n": -5}, "n", least=-5) == -5
    refused("n is -6, not a whole number", whole, {"n": -6}, "n", least=-5)


@pytest.mark.parametrize(
    "value", [-1, 1.0, 1.5, "1", None, True, [], {}, LARGEST + 1, float("nan"), float("inf")]
)
def test_what_is_no_whole_number_is_refused_by_name(value: Any) -> None:
    refused(f"n is {value!r}, not a whole number", whole, {"n": value}, "n")


def test_a_number_that_is_missing_is_refused_by_name() -> None:
    refused("n is None, not a whole number", whole, {}, "n")


@pytest.mark.parametrize("value", [True, False])
def test_a_flag_is_one(value: bool) -> None:
    assert value is flag({"f": value}, "f")


@pytest.mark.parametrize("value", [1, 0, None, "true", []])
def test_what_is_no_flag_is_refused_by_name(value: Any) -> None:
    refused(f"f is {value!r}, neither true nor false", flag, {"f": value}, "f")


# Errors and histograms ----------------------------------------------------------------------------


def test_errors_are_those_of_the_kinds_that_are_known() -> None:
    assert counts({"a": 1, "b": 0, "c": 5}, ("a", "b")) == {"a": 1, "b": 0}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "errors is None, not an object"),
        ([1], "errors is [1], not an object"),
        ({"a": 1}, "b is None, not a whole number"),
        ({"a": 1, "b": -1}, "b is -1, not a whole number"),
    ],
)
def test_errors_that_are_not_counted_are_refused(data: Any, message: str) -> None:
    refused(message, counts, data, ("a", "b"))


def test_a_histogram_is_its_pairs() -> None:
    assert Histogram.from_pairs([(5, 2), (900, 1)]) == histogram([[900, 1], [5, 2]])
    assert histogram([]).total == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "lags is None, not a list"),
        ({}, "lags is {}, not a list"),
        ([5], "lags has 5, not a latency and a count"),
        ([[1]], "lags has [1], not a latency and a count"),
        ([[1, 2, 3]], "lags has [1, 2, 3], not a latency and a count"),
        ([[1.0, 2]], "lags has [1.0, 2], not a latency and a count"),
        ([[1, True]], "lags has [1, True], not a latency and a count"),
        ([[1, LARGEST + 1]], "lags has a number that no histogram holds"),
        ([[LARGEST + 1, 1]], "lags has a number that no histogram holds"),
        ([[1, 0]], "(1, 0): not a latency in us and a positive count"),
        ([[-1, 1]], "(-1, 1): not a latency in us and a positive count"),
        ([[7_200_000_000, 1]], "(7200000000, 1): not a latency in us and a positive count"),
    ],
)
def test_what_is_no_histogram_is_refused_by_name(data: Any, message: str) -> None:
    refused(message, histogram, data, "lags")


# Messages -----------------------------------------------------------------------------------------


def test_values_are_shortened_for_messages() -> None:
    assert short("abc") == "'abc'"
    assert short("x" * 200) == f"'{96 * 'x'}..."
    assert short("x" * 98) == f"'{98 * 'x'}'"


def test_a_value_that_can_not_be_shown_is_no_error_of_its_own() -> None:
    assert short(10**5000) == "too much to be shown"
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert short(nested) == "too much to be shown"


def test_the_end_of_an_output_is_shown() -> None:
    assert tail("") == "(nothing was printed)"
    assert tail("\n  \n") == "(nothing was printed)"
    assert "\n".join(map(str, range(12, 20))) == tail("\n\n".join(map(str, range(20))))
    assert tail(f"short\n{500 * 'x'}\n") == f"short\n{200 * 'x'}"
