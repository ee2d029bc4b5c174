"""Why a kernel may not have a key."""

from typing import Any

import pytest

from intop.domain.presence import UNKNOWN, Presence

NOW = "6.1.0-28-cloud-amd64"


def presence(**fields: Any) -> Presence:
    return Presence(source="a document", **fields)


@pytest.mark.parametrize(
    ("known", "kernel", "expected"),
    [
        (presence(since="6.15"), NOW, "it came later: with kernel 6.15"),
        (presence(since="6.15"), "6.9.1", "it came later: with kernel 6.15"),
        (presence(since="6.1"), NOW, ""),
        (presence(since="5.18"), NOW, ""),
        (presence(since="6.2"), "5.19", "it came later: with kernel 6.2"),
        (presence(until="5.12"), NOW, "none after 5.12 does"),
        (presence(until="5.12"), "5.12.19", ""),
        (presence(until="5.12"), "5.4.0", ""),
        (
            presence(until="5.12", moved_to="/sys/x"),
            NOW,
            "none after 5.12 does, and what there may be instead is no sysctl: /sys/x",
        ),
        (
            presence(module="nf_conntrack"),
            NOW,
            "load its module with modprobe nf_conntrack, if it shall be tuned",
        ),
        (presence(module="m", since="6.5"), NOW, "it came later: with kernel 6.5"),
        (presence(option="CONFIG_X"), NOW, "it needs one built with CONFIG_X"),
        (UNKNOWN, NOW, ""),
        (presence(since="6.15"), "custom", ""),
        (presence(until="5.12"), "", ""),
    ],
)
def test_the_reason_goes_by_the_kernels_version(
    known: Presence, kernel: str, expected: str
) -> None:
    assert known.why_missing(kernel) == expected


@pytest.mark.parametrize(
    ("kernel", "inert"), [("6.5.13", False), ("6.6.0-rc1", True), ("6.18", True), ("custom", False)]
)
def test_what_newer_kernels_do_not_heed(kernel: str, inert: bool) -> None:
    assert inert == presence(inert_since="6.6").is_inert(kernel)
    assert not UNKNOWN.is_inert(kernel)


@pytest.mark.parametrize(
    ("kernel", "machine_wide"), [("5.16.20", True), ("5.17", False), ("custom", False)]
)
def test_what_older_kernels_have_once_for_all_namespaces(kernel: str, machine_wide: bool) -> None:
    assert machine_wide == presence(namespaced_since="5.17").was_machine_wide(kernel)
    assert not UNKNOWN.was_machine_wide(kernel)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"since": "5", "source": "s"}, "two numbers such as 5.14, got '5'"),
        ({"until": "5.12.3", "source": "s"}, "two numbers such as 5.14, got '5.12.3'"),
        ({"since": "5.14"}, "needs a source"),
        ({"source": "s"}, "something that this says"),
    ],
)
def test_what_is_known_needs_versions_and_a_source(fields: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Presence(**fields)
