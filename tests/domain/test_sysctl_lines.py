"""Lines of sysctl.d as each program reads them, and those that none reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.damage import anything
from intop.domain.sysctl_lines import Loader, read_lines, unread

LOADERS: list[Loader] = ["systemd", "procps", "tuned"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sysctl -w net.core.somaxconn=1", "a command in place of KEY = VALUE"),
        ("/sbin/sysctl -w net.core.somaxconn = 1", "a command in place of KEY = VALUE"),
        ("NET.CORE.SOMAXCONN = 1", "keys are written in lower case"),
        ("Vm.swappiness = 1", "keys are written in lower case"),
        ("net.core.somaxconn: 1", "no = in it"),
        ("net.core.somaxconn 1", "no = in it"),
        ("-w net.core.somaxconn=1", "a key with a blank in it"),
        ("net.core.somaxconn # most = 1", "a key with a blank in it"),
        ("net.core.somaxconn\u00a0= 1", "a key with a blank in it"),
        ("\ufeffnet.core.somaxconn = 1", "a byte order mark (BOM) before the key"),
        ("/proc/sys/net/core/somaxconn = 1", "a key begins below /proc/sys"),
        ("= 1", "no key before the ="),
        ("net.core.somaxconn = 1", ""),
        ("net/core/somaxconn=1", ""),
        ("-net.core.somaxconn", ""),
        ("-net.core.somaxconn = 1", ""),
        ("net.ipv4.conf.Eth0.x = 1", ""),
        ("kernel.core_pattern=|/usr/bin/x = 1 # y", ""),
        ("# sysctl -w a=b", ""),
        (" ; x", ""),
        ("", ""),
    ],
)
def test_a_line_that_no_program_takes_has_its_reason(line: str, reason: str) -> None:
    assert reason == unread(line)


@given(st.lists(anything), st.sampled_from(LOADERS))
def test_any_lines_are_read(texts: list[str], loader: Loader) -> None:
    numbers = [line.number for line in read_lines(texts, loader)]
    assert sorted(numbers) == numbers
    assert all(isinstance(unread(text), str) for text in texts)
