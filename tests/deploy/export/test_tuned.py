"""A profile as TuneD's own parser, which is Python's, reads it."""

from configparser import ConfigParser
from dataclasses import replace

import pytest

from builders.results import DEPLOYMENT
from intop.deploy.export.tuned import checked_name, profile
from intop.domain.sysctl_file import is_ours
from intop.errors import UsageError


def read(text: str) -> ConfigParser:
    """With the options that TuneD's loader has."""
    parser = ConfigParser(
        delimiters=("="), inline_comment_prefixes=("#"), strict=False, interpolation=None
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    return parser


def test_it_has_a_summary_and_the_values() -> None:
    text = profile(DEPLOYMENT, written_at="now")
    result = read(text)
    assert is_ours(text)
    assert result.sections() == ["main", "sysctl"]
    assert dict(result["sysctl"]) == DEPLOYMENT.values
    assert dict(result["main"]) == {
        "summary": "intop, x86 slt: P99 is 3.10 times lower (95 % interval 2.20 to 4.40)"
    }
    assert "alone 2.90 (2.00 to 4.20)" in text


def test_it_can_build_on_another_profile() -> None:
    result = read(profile(DEPLOYMENT, written_at="now", include="throughput-performance"))
    assert result["main"]["include"] == "throughput-performance"
    with pytest.raises(UsageError, match="can't be the name of a TuneD profile"):
        profile(DEPLOYMENT, written_at="now", include="a\nb")


def test_names_from_files_add_no_setting() -> None:
    hostile = "a\n[sysctl]\nkernel.x=1 ${f:exec:id}"
    one = replace(DEPLOYMENT, study=hostile, workload=hostile)
    result = read(profile(one, written_at="now"))
    assert result.sections() == ["main", "sysctl"]
    assert dict(result["sysctl"]) == DEPLOYMENT.values
    assert "$" not in result["main"]["summary"]


@pytest.mark.parametrize("name", ["intop", "intop-x86.1", "_a"])
def test_names_that_tuned_takes(name: str) -> None:
    assert name == checked_name(name)


@pytest.mark.parametrize("name", ["", "-intop", "a b", "ä", "a/b", "${x}", "a\n"])
def test_names_that_tuned_does_not_take(name: str) -> None:
    with pytest.raises(UsageError, match="TuneD profile"):
        checked_name(name)
