"""How many measurements a warm start is worth, and what two machines have in common."""

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.multi_arm import Contest, Contestant, Crosswise
from intop.domain.parameter import Component, Parameter
from intop.domain.stats import Interval
from intop.experiment.transfer.compromise import common_parameters
from intop.experiment.transfer.stage import worst_cases
from intop.experiment.transfer.warm_starts import worth


def test_an_error_between_two_sizes_goes_with_the_logarithm_of_the_rows() -> None:
    assert 10 * sqrt(4) == pytest.approx(worth([10, 40, 80], [60, 40, 20], 50))
    assert pytest.approx(worth([10, 40, 80], [60, 40, 20], 40)) == 40


def test_beyond_the_curve_there_is_no_number() -> None:
    assert worth([10, 40, 80], [60, 40, 20], 19) is None
    assert worth([10, 40, 80], [60, 40, 20], 70) == 10


def test_an_error_that_grows_with_the_rows_is_noise() -> None:
    assert 10 * sqrt(2) == pytest.approx(worth([10, 20, 40], [60, 40, 45], 50))
    assert worth([10, 20, 40], [60, 40, 45], 39) is None
    with pytest.raises(ValueError, match="no learning curve"):
        worth([], [], 1)


def parameter(key: str, **values: Any) -> Parameter:
    return Parameter(
        key=key, unit="", scope="namespace", risk="low", mechanism="", document="", **values
    )


def numeric(key: str, low: int, high: int) -> Parameter:
    return parameter(key, kind="integer", components=(Component(name="", low=low, high=high),))


def choice(key: str, *choices: str) -> Parameter:
    return parameter(key, kind="choice", choices=choices)


def test_common_parameters_have_what_both_offer() -> None:
    one = [
        numeric("a", 1, 100),
        choice("b", "x", "y", "z"),
        numeric("c", 1, 9),
        choice("d", "1", "2"),
    ]
    other = [
        numeric("a", 10, 900),
        choice("b", "z", "x"),
        choice("d", "2", "3"),
        numeric("e", 1, 9),
    ]
    result, left_out = common_parameters(
        ["a", "b", "c", "d", "e"], [{p.key: p for p in offer} for offer in (one, other)]
    )
    assert {"a": numeric("a", 10, 100), "b": choice("b", "x", "z")} == result
    assert left_out == {
        "c": "not offered by both",
        "d": "no value in common",
        "e": "not offered by both",
    }


def contest(*contestants: Contestant) -> Contest:
    return Contest(
        contestants=contestants, reference="default", rounds=3, level=0.95, ratio_level=0.98
    )


def test_the_worst_case_is_the_least_gain_of_all_machines() -> None:
    default = Contestant(
        name="default",
        title="",
        configuration=DEFAULT,
        keys=0,
        already=0,
        left_out={},
        is_reference=True,
    )
    tuned = replace(
        default,
        name="x86 winner",
        configuration=Configuration({"a": "1"}),
        is_reference=False,
        ratio=Interval(3.0, 2.0, 4.0),
    )
    both = replace(tuned, name="compromise", ratio=Interval(2.0, 1.5, 2.5))
    # On the other machine the compromise could not be measured, and the winner changes nothing.
    same = replace(tuned, ratio=None, same_as="default")
    result = worst_cases(
        [
            Crosswise(arch="x86", emulation="", contest=contest(default, tuned, both)),
            Crosswise(
                arch="arm",
                emulation="TCG",
                contest=contest(default, same, replace(both, ratio=None)),
            ),
        ]
    )
    assert [(c.name, c.arch) for c in result] == [("x86 winner", "arm"), ("compromise", None)]
    assert Interval(1.0, 1.0, 1.0) == result[0].ratios["arm"]
