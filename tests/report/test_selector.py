from dataclasses import fields, replace
from typing import Any

import pytest

from builders.trials import CONDITIONS
from intop.domain.trial import Conditions
from intop.errors import UsageError
from intop.report.chosen_sides import NAMES, selector


def fits(text: str, **changes: Any) -> bool:
    return selector(text).fits(replace(CONDITIONS, **changes))


def test_an_architecture_needs_no_name() -> None:
    result = selector("arm")
    assert result.wanted == (("arch", "arm"),)
    assert result.is_architecture
    assert not selector("arm,campaign:1").is_architecture
    assert not selector("arm,x86").is_architecture
    assert (fits("arm"), fits("x86")) == (False, True)


@pytest.mark.parametrize(
    ("text", "kernel", "expected"),
    [
        ("kernel:6.1", "6.1.0-56-cloud-arm64", True),
        ("kernel:6.1", "6.18.44", False),
        ("kernel:6.1", "5.6.1", False),
        ("kernel:6.1.0-56", "6.1.0-56-cloud-arm64", True),
        ("kernel:CLOUD-ARM64", "6.1.0-56-cloud-arm64", False),
        ("kernel:.*", "6.1", False),
    ],
)
def test_words_of_a_value_are_enough_but_no_parts_of_words(
    text: str, kernel: str, *, expected: bool
) -> None:
    assert fits(text, kernel=kernel) == expected


def test_letters_may_be_small_and_numbers_are_words() -> None:
    assert fits("cpu:epyc", cpu="AMD EPYC 7B13")
    assert fits("nginx:1.22", nginx="nginx/1.22.1")
    assert fits("rate_rps:60", rate_rps=60.0)
    assert not fits("rate_rps:60", rate_rps=600.0)


def test_with_commas_it_must_be_all_of_them() -> None:
    link = "delay 15 ms, loss 0.2 %, 75 Mbit/s"
    assert fits("link:loss 0.2 %, link:75 Mbit/s,x86", link=link)
    assert not fits("link:loss 0.2 %,link:80 Mbit/s", link=link)


def test_studies_and_campaigns_are_no_conditions() -> None:
    result = selector("study:lab,campaign:3")
    assert result.fits(CONDITIONS)
    assert result.wants("campaign", 3)
    assert not result.wants("campaign", 30)
    assert result.wants("study", "lab")
    assert result.wants("kernel", "anything")


def test_every_condition_but_the_workload_can_be_chosen_by() -> None:
    assert {f.name for f in fields(Conditions)} - {"workload"} == set(NAMES) - {"study", "campaign"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sparc", "'sparc' is no side of a comparison. Say x86, arm, campaign:3"),
        ("", "'' is no side"),
        ("x86,", "'x86,' is no side"),
        ("kernel:", "'kernel:' is no side"),
        ("colour:red", "no trial has a 'colour'. Choose by study, campaign, arch, machine, kernel"),
        ("campaign:last", "a campaign is called by its number"),
        ("arch:sparc", "an architecture is x86 or arm"),
    ],
)
def test_what_is_no_side_is_refused_with_what_is(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        selector(text)
