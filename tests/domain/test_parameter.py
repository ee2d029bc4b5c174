from typing import Any

import pytest

from intop.domain.parameter import DENIED, Component, Parameter, denied, normalised

SIZE = Component(name="", low=1, high=9)


def parameter(**changes: Any) -> Parameter:
    values: dict[str, Any] = {
        "key": "net.core.somaxconn",
        "kind": "integer",
        "unit": "",
        "scope": "namespace",
        "risk": "low",
        "mechanism": "test",
        "document": "test",
        "components": (SIZE,),
    }
    return Parameter(**(values | changes))


# The deny list ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        "kernel.randomize_va_space",
        "kernel.kptr_restrict",
        "kernel.sysrq",
        "kernel.core_pattern",
        "kernel.yama.ptrace_scope",
        "kernel.panic_on_oops",
        "fs.suid_dumpable",
        "fs.protected_hardlinks",
        "vm.mmap_min_addr",
        "net.ipv4.ip_forward",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.conf.all.rp_filter",
        "net.ipv4.conf.default.rp_filter",
        "net.ipv4.conf.eth0.accept_redirects",
        "net.ipv4.conf.all.send_redirects",
        "net.ipv4.conf.all.secure_redirects",
        "net.ipv4.conf.all.forwarding",
        "net.ipv4.conf.all.mc_forwarding",
        "net.ipv6.conf.all.forwarding",
        "net.ipv6.conf.all.accept_ra",
        "net.ipv6.conf.all.accept_ra_rt_info_max_plen",
        "net.ipv6.conf.all.disable_ipv6",
        "net.ipv4.conf.all.accept_source_route",
        "net.ipv4.conf.all.arp_ignore",
        "net.ipv4.conf.all.route_localnet",
        "net.core.bpf_jit_harden",
    ],
)
def test_security_and_routing_keys_are_no_parameters(key: str) -> None:
    reason = denied(key)
    assert reason
    with pytest.raises(ValueError, match=f"is on the deny list: {reason}"):
        parameter(key=key)


@pytest.mark.parametrize("pattern", DENIED)
def test_every_denied_pattern_has_a_reason_and_refuses_what_it_stands_for(pattern: str) -> None:
    assert DENIED[pattern].strip()
    with pytest.raises(ValueError, match="is on the deny list"):
        parameter(key=pattern.replace("*", "some"))


@pytest.mark.parametrize(
    "key", ["net.core.somaxconn", "net.ipv4.tcp_rmem", "vm.swappiness", "kernel.pid_max"]
)
def test_other_keys_are_not_denied(key: str) -> None:
    assert denied(key) is None


# What fits together -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"components": ()}, "a parameter of kind integer has a range and no choices"),
        ({"choices": ("a", "b")}, "a parameter of kind integer has a range and no choices"),
        ({"kind": "vector", "components": ()}, "kind vector has a range"),
        ({"components": (SIZE, SIZE)}, "an integer has exactly one range, got 2"),
        (
            {"scale": "log", "components": (Component(name="", low=0, high=9),)},
            "a log scale needs low of at least 1, got 0",
        ),
        ({"kind": "choice", "components": (), "choices": ("a",)}, "kind choice has two or more"),
        ({"kind": "choice", "choices": ("a", "b")}, "kind choice has two or more choices, no rang"),
        ({"kind": "boolean", "components": ()}, "kind boolean has two or more choices"),
        (
            {"kind": "choice", "components": (), "choices": ("a", "b", "a")},
            "the same choice stands there twice: a, b, a",
        ),
        (
            {"ram_fraction": 0.5, "unit": "s"},
            "ram_fraction needs one of the units bytes, KiB, pages, got 's'",
        ),
    ],
)
def test_constructor_names_the_rule_and_the_value(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameter(**changes)


@pytest.mark.parametrize(("low", "high"), [(5, 5), (6, 5)])
def test_a_component_needs_low_below_high(low: int, high: int) -> None:
    with pytest.raises(ValueError, match=f"low must be below high, got {low} and {high}"):
        Component(name="", low=low, high=high)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("integer", True), ("vector", True), ("boolean", False), ("choice", False)],
)
def test_numbers_are_integers_and_vectors(kind: str, expected: bool) -> None:
    if expected:
        assert parameter(kind=kind).is_numeric
    else:
        assert not parameter(kind=kind, components=(), choices=("0", "1")).is_numeric


@pytest.mark.parametrize("value", ["4096\t131072\t6291456", " 4096 131072   6291456\n"])
def test_normalised_values_have_single_blanks(value: str) -> None:
    assert "4096 131072 6291456" == normalised(value)
