from typing import Any

import pytest

from intop.domain.parameter import ALLOWED, DENIED, Component, Parameter, barred, denied, normalised

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
    "key",
    [
        *("kernel.hung_task_panic", "kernel.softlockup_panic", "kernel.hardlockup_panic"),
        *("kernel.unknown_nmi_panic", "kernel.max_rcu_stall_to_panic", "kernel.panic"),
        *("kernel.oops_limit", "kernel.warn_limit", "kernel.usermodehelper.bset"),
        *("kernel.io_uring_disabled", "kernel.io_uring_group", "vm.unprivileged_userfaultfd"),
        *("user.max_user_namespaces", "user.max_net_namespaces", "dev.tty.ldisc_autoload"),
        *("dev.tty.legacy_tiocsti", "kernel.pid_max", "kernel.threads-max", "vm.nr_hugepages"),
        *("vm.nr_hugepages_mempolicy", "vm.nr_overcommit_hugepages", "net.ipv6.conf.all.mtu"),
        *("net.ipv6.conf.eth0.mtu", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.conf.eth0.disable_policy", "net.ipv6.conf.all.disable_policy"),
        *("net.ipv4.conf.all.disable_xfrm", "net.bridge.bridge-nf-call-iptables"),
        *("net.netfilter.nf_conntrack_helper", "net.ipv4.tcp_challenge_ack_limit"),
        *("net.ipv4.tcp_fastopen_key", "net.ipv6.conf.default.stable_secret"),
        *("net.ipv4.tcp_l3mdev_accept", "net.ipv4.tcp_allowed_congestion_control"),
        *("net.netfilter.nf_conntrack_tcp_loose", "kernel.sched_rt_runtime_us"),
    ],
)
def test_what_endangers_the_host_is_barred_with_a_reason(key: str) -> None:
    assert (why := barred(key))
    if key != "kernel.max_rcu_stall_to_panic":  # which no pattern names, and none allows
        assert why == f"on the deny list: {denied(key)}"


@pytest.mark.parametrize("key", ["net.core.somaxconn", "net.ipv4.tcp_rmem", "vm.swappiness"])
def test_other_keys_are_not_barred(key: str) -> None:
    assert denied(key) is None
    assert barred(key) == ""


@pytest.mark.parametrize(
    "key",
    ["kernel.new_in_7_0", "vm.drop_caches", "fs.mqueue.msg_max", "abi.vsyscall32", "sunrpc.x"],
)
def test_what_nobody_thought_of_is_barred_too(key: str) -> None:
    assert denied(key) is None
    assert barred(key) == "not on the list of keys that may be tuned"


def test_no_pattern_allows_a_whole_branch_of_the_machine() -> None:
    assert not {"*", "net.*", "net.ipv4.*", "vm.*", "kernel.*", "fs.*"} & set(ALLOWED)


# Hard bounds --------------------------------------------------------------------------------------


def test_a_value_beyond_a_hard_bound_is_named() -> None:
    components = (Component(name="a", low=5, high=9, floor=5), Component(name="b", low=5, high=9))
    one = parameter(kind="vector", components=components)
    assert one.beyond("5 1") == ""
    assert one.beyond("4 99") == "4 is below 5"
    assert (
        parameter(components=(Component(name="", low=1, high=9, ceiling=9),)).beyond("10")
        == "10 is above 9"
    )
    # What is no number is for others to say.
    assert "" == one.beyond("") == one.beyond("x y")


@pytest.mark.parametrize(
    "value",
    [
        "010",
        "-0",
        "00",
        "+7",
        "0x7",
        "7 ",
        "1_0",
        "7\r",
        "\x1f7",
        "7\u2003",
        "\u0667",
        "9" * 21,
        "",
    ],
)
def test_only_what_the_kernel_reads_as_the_same_number_is_fit(value: str) -> None:
    """It takes a leading 0 for octal: 040000 is 16384 to it, which may be beyond a hard bound."""
    one = parameter(components=(Component(name="", low=1, high=9),))
    expected = "" if value == "7 " else f"malformed: {value!r} is not 1 whole number(s)"
    assert one.unfit(value) == expected


def test_a_range_lies_within_its_hard_bounds() -> None:
    with pytest.raises(ValueError, match="the range leaves its hard bounds, 5 to None"):
        Component(name="", low=4, high=9, floor=5)


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
    assert normalised(value) == "4096 131072 6291456"
