"""The file for sysctl.d: what it sets, what it tells, and that no name can set more."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.results import DEPLOYMENT
from intop.domain.explanation import Kept
from intop.domain.stats import Interval
from intop.domain.sysctl_file import WIDTH, comment, is_ours, sysctl_file
from intop.errors import UsageError

AT = "2026-11-22T02:00:00+00:00"


def settings_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def words_of(text: str) -> str:
    return " ".join(text.replace("#", " ").split())


def test_it_sets_the_values_and_tells_where_they_are_from() -> None:
    text = sysctl_file(DEPLOYMENT, written_at=AT)
    assert settings_of(text) == [
        "net.ipv4.tcp_rmem = 4096 8192 65536",
        "net.core.somaxconn = 64",
    ]
    assert is_ours(text)
    assert not is_ours("# Written by interns\n")
    message = words_of(text)
    for words in (
        f"at {AT}.",
        "x86 slt, winner of study lab, campaign 1 of 2026-11-21",
        "in 8 interleaved pairs of trials: P99 is 3.10 times lower (95 % interval 2.20 to 4.40)",
        "95 % intervals, above 1 it helps: alone 2.90 (2.00 to 4.20); in the winner 3.00 (2.10 to",
        "Risk: medium. size of receive buffers. Default: 4096 131072 6291456 net.ipv4.tcp_rmem",
        "is not measured (intop explain does that). Risk: low.",
        "remove this file, and set",
    ):
        assert words in message
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_file_that_intop_deploys_names_the_host_and_the_way_back() -> None:
    message = words_of(sysctl_file(DEPLOYMENT, written_at=AT, host="lb1"))
    assert f"at {AT} for lb1." in message
    assert "intop rollback" in message


def test_a_smallest_set_is_told_beside_the_winner() -> None:
    kept = Kept(
        share=0.9,
        low=0.8,
        high=1.0,
        full=Interval(3.5, 3, 4),
        smaller=Interval(3.25, 3, 4),
        rounds=16,
    )
    message = words_of(sysctl_file(replace(DEPLOYMENT, kept=kept), written_at=AT))
    assert "In the same 16 rounds the whole winner made P99 3.50 times lower" in message
    assert "this smaller set 3.25 times" in message


def test_a_key_that_zeroes_another_says_so() -> None:
    one = replace(DEPLOYMENT.changes[0], key="vm.dirty_bytes", value="64000000", default="0")
    message = words_of(sysctl_file(replace(DEPLOYMENT, changes=(one,)), written_at=AT))
    assert "sets vm.dirty_ratio to zero with it; setting that one takes this one back." in message


@settings(max_examples=30)
@given(st.text(max_size=300))
def test_no_name_leaves_its_comment(name: str) -> None:
    hostile = f"a\nkernel.x = 1\r\x85\u2028\ud800kernel.y = 2{name}"
    text = sysctl_file(replace(DEPLOYMENT, study=hostile, workload=hostile), written_at=AT)
    assert len(settings_of(text)) == len(DEPLOYMENT.changes)
    text.encode()
    assert all(line.startswith("#") for line in comment(hostile).splitlines())
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("net.core.somaxconn", "1\x0b2"),
        ("net.core.somaxconn", ""),
        ("net.core.somaxconn", "${f:exec:id}"),
        ("net.core.somaxconn", "{{ 1 }}"),
        ("net.core.somaxconn", ">64"),
        ("net.core.somaxconn", "64 # 128"),
        ("net.core.somaxconn = 1\nkernel.x", "1"),
    ],
)
def test_what_would_mean_something_else_in_a_file_is_refused(key: str, value: str) -> None:
    changes = (replace(DEPLOYMENT.changes[0], key=key, value=value),)
    with pytest.raises(UsageError, match="without a doubt"):
        sysctl_file(replace(DEPLOYMENT, changes=changes), written_at=AT)


@pytest.mark.parametrize("key", ["-net.core.somaxconn", "net.*.somaxconn", "net/../../sys/x"])
def test_what_sysctl_would_read_as_other_keys_is_no_change(key: str) -> None:
    with pytest.raises(ValueError, match="not on the list of keys that may be tuned"):
        replace(DEPLOYMENT.changes[0], key=key)
