"""What a host offers, and why it does not offer the rest."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.trials import FACTS
from intop.config.catalogue import load_catalogue
from intop.domain.constraints import Constraint, Exclusion, Order
from intop.domain.parameter import Component, Parameter, Risk
from intop.domain.presence import Presence
from intop.domain.probing import (
    HostFacts,
    Probe,
    Probed,
    Reading,
    asked_keys,
    changes,
    other_values,
    space_of,
    tried_keys,
    why_not_set,
)

MIB = 1 << 20
CATALOGUE = Path(__file__).parents[2] / "configs" / "parameters.toml"
CHILD = replace(FACTS, in_namespace=True)
SOMAXCONN, CONGESTION = "net.core.somaxconn", "net.ipv4.tcp_congestion_control"
AVAILABLE, ALLOWED = (f"net.ipv4.tcp_{w}_congestion_control" for w in ("available", "allowed"))
MEM = "net.ipv4.tcp_mem"


REFUSED = Reading("writable", "128", "Invalid argument")
MISSING, UNREADABLE = Reading("missing", ""), Reading("unreadable", "")


def writable(value: str) -> Reading:
    return Reading("writable", value)


def readable(value: str) -> Reading:
    return Reading("readable", value)


def parameter(key: str = SOMAXCONN, **changes: Any) -> Parameter:
    values: dict[str, Any] = {"key": key, "kind": "integer", "scope": "namespace", "risk": "low"}
    values |= dict.fromkeys(("mechanism", "document"), "test") | {"unit": ""}
    if "choices" not in changes:
        values["components"] = (Component(name="", low=16, high=65535),)
    return Parameter(**(values | changes))


def congestion(**changes: Any) -> Parameter:
    return parameter(
        CONGESTION,
        kind="choice",
        choices=("cubic", "reno", "bbr"),
        choices_from=AVAILABLE,
        choices_from_in_namespace=ALLOWED,
        **changes,
    )


def probed(
    *parameters: Parameter,
    facts: HostFacts = FACTS,
    constraints: tuple[Constraint, ...] = (),
    max_risk: Risk = "high",
    **readings: Reading | str,
) -> Probed:
    """Readings by the last part of the key; a text is a writable value."""
    named = {p.key.rpartition(".")[2]: p.key for p in parameters}
    named |= {k.rpartition(".")[2]: k for k in (AVAILABLE, ALLOWED)}
    output = {
        named.get(name, name.replace("__", ".")): writable(r) if isinstance(r, str) else r
        for name, r in readings.items()
    }
    return space_of(parameters, constraints, Probe(facts=facts, readings=output), max_risk)


def only(result: Probed) -> Parameter:
    (one,) = result.space.parameters
    return one


def test_what_the_study_does_not_ask_for_is_left_out_with_the_reason() -> None:
    both = (parameter(), parameter("net.core.rmem_max"))
    readings = {p.key: writable("5000") for p in both}
    probe = Probe(facts=FACTS, readings=readings)
    result = space_of(both, (), probe, "high", ["net.core.r*", "vm.*"])
    assert only(result).key == "net.core.rmem_max"
    assert result.refused == {SOMAXCONN: "it is not among the parameters in [study]"}
    assert {p.key for p in both} <= set(result.space.defaults)


# Out of bounds ------------------------------------------------------------------------------------


def test_a_namespace_never_offers_what_belongs_to_the_machine_though_it_could_be_written() -> None:
    machine = parameter("vm.swappiness", scope="machine")
    result = probed(machine, parameter(), facts=CHILD, swappiness="60", somaxconn="4096")
    assert [p.key for p in result.space.parameters] == [SOMAXCONN]
    assert result.refused == {
        "vm.swappiness": "belongs to the whole machine, and this host is only a namespace of it"
    }


def test_a_machine_offers_what_belongs_to_it() -> None:
    result = probed(parameter("vm.swappiness", scope="machine"), swappiness="60")
    assert only(result).key == "vm.swappiness"
    assert result.refused == {}


def test_no_machine_key_of_the_real_catalogue_gets_into_a_namespaces_space() -> None:
    catalogue = load_catalogue(CATALOGUE)
    readings = {
        p.key: Reading("writable", p.choices[0] if p.choices else _lows(p))
        for p in catalogue.parameters
    }
    probe = Probe(facts=CHILD, readings=readings)
    result = space_of(catalogue.parameters, catalogue.constraints, probe, "high")
    assert {p.scope for p in result.space.parameters} == {"namespace"}
    machine = {p.key for p in catalogue.parameters if p.scope == "machine"}
    assert machine <= set(result.refused)
    assert {"vm.swappiness", "fs.file-max", "kernel.numa_balancing"} <= machine


def _lows(one: Parameter) -> str:
    return " ".join(str(c.low) for c in one.components)


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        (MISSING, "this kernel doesn't have it"),
        (UNREADABLE, "can't be read"),
        (readable("128"), "can't be written: the kernel has it for reading only"),
        (REFUSED, "can't be written: the kernel refuses its own value, Invalid argument"),
        (writable("1 2"), "reads as '1 2', not as 1 numbers"),
        (writable("many"), "reads as 'many', not as 1 numbers"),
        (writable(""), "reads as '', not as 1 numbers"),
        (writable("-"), "reads as '-', not as 1 numbers"),
    ],
)
def test_what_a_host_does_not_offer_has_its_reason(reading: Reading, reason: str) -> None:
    result = probed(parameter(), somaxconn=reading)
    assert result.space.parameters == ()
    assert {SOMAXCONN: reason} == result.refused


def test_a_key_that_was_not_asked_for_counts_as_missing() -> None:
    assert probed(parameter()).refused == {SOMAXCONN: "this kernel doesn't have it"}


@pytest.mark.parametrize(
    ("risk", "max_risk", "offered"),
    [
        ("low", "low", True),
        ("medium", "low", False),
        ("medium", "medium", True),
        ("high", "medium", False),
        ("high", "high", True),
    ],
)
def test_parameters_above_the_accepted_risk_are_left_alone(
    risk: Risk, max_risk: Risk, offered: bool
) -> None:
    result = probed(parameter(risk=risk), max_risk=max_risk, somaxconn="128")
    assert offered == bool(result.space.parameters)
    assert offered or f"its risk is {risk}" in result.refused[SOMAXCONN]


def test_defaults_are_what_was_read_also_of_keys_that_cannot_be_written() -> None:
    result = probed(parameter(), somaxconn="4096", net__core__x=readable("7"))
    assert result.space.defaults == {SOMAXCONN: "4096", "net.core.x": "7"}


def test_a_default_below_zero_or_out_of_range_is_a_number_like_any_other() -> None:
    for value in ("-1", "9223372036854775807"):
        assert value == probed(parameter(), somaxconn=value).space.defaults[SOMAXCONN]


# Choices ------------------------------------------------------------------------------------------

LISTS = {
    "tcp_available_congestion_control": readable("reno bbr cubic"),
    "tcp_allowed_congestion_control": readable("reno bbr"),
}


@pytest.mark.parametrize(
    ("facts", "default", "expected"),
    [
        (FACTS, "cubic", ("cubic", "reno", "bbr")),
        (CHILD, "bbr", ("reno", "bbr")),
        # What is in force can be written again, whatever is allowed.
        (CHILD, "cubic", ("cubic", "reno", "bbr")),
    ],
)
def test_choices_are_what_is_available_and_in_a_namespace_what_is_allowed_too(
    facts: HostFacts, default: str, expected: tuple[str, ...]
) -> None:
    result = probed(congestion(), facts=facts, tcp_congestion_control=default, **LISTS)
    assert only(result).choices == expected


def test_choices_that_the_kernel_has_not_loaded_are_left_out() -> None:
    lists = {**LISTS, "tcp_available_congestion_control": readable("reno cubic")}
    result = probed(congestion(), tcp_congestion_control="cubic", **lists)
    assert only(result).choices == ("cubic", "reno")


def test_a_single_choice_is_none() -> None:
    lists = {**LISTS, "tcp_available_congestion_control": readable("cubic")}
    result = probed(congestion(), tcp_congestion_control="cubic", **lists)
    assert result.refused == {CONGESTION: "the host offers only cubic"}


def test_a_value_that_is_no_choice_is_left_alone() -> None:
    result = probed(congestion(), tcp_congestion_control="dctcp", **LISTS)
    assert result.refused == {CONGESTION: "its value 'dctcp' is none of the known choices"}


def test_the_lists_of_choices_are_asked_for_once_each() -> None:
    keys = asked_keys([congestion(), parameter(), congestion()])
    assert keys == [CONGESTION, AVAILABLE, ALLOWED, SOMAXCONN]


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "page_bytes", "expected"),
    [
        ("bytes", 4096, 512 * MIB),
        ("KiB", 4096, 512 * 1024),
        ("pages", 4096, 131072),
        ("pages", 65536, 8192),
    ],
)
def test_memory_bounds_the_range(unit: str, page_bytes: int, expected: int) -> None:
    ranges = (Component(name="low", low=16, high=64), Component(name="high", low=16, high=1 << 40))
    vector = parameter(MEM, kind="vector", components=ranges, unit=unit, ram_fraction=0.5)
    result = probed(vector, facts=replace(FACTS, page_bytes=page_bytes), tcp_mem="16 32")
    assert [c.high for c in only(result).components] == [64, expected]
    assert [c.low for c in only(result).components] == [16, 16]


def test_a_range_beyond_the_memory_is_refused() -> None:
    ranges = (Component(name="", low=1024, high=4096),)
    big = parameter(MEM, components=ranges, unit="KiB", ram_fraction=0.001)
    result = probed(big, facts=replace(FACTS, memory_bytes=1024 * MIB), tcp_mem="1024")
    reason = "the host's memory allows 1048 KiB, below the whole range"
    assert result.refused == {}
    small = probed(big, facts=replace(FACTS, memory_bytes=1000 * MIB), tcp_mem="1024")
    assert {MEM: reason.replace("1048", "1024")} == small.refused


def test_memory_is_a_hard_bound() -> None:
    big = parameter(components=(Component(name="", low=16, high=1 << 40),), unit="KiB")
    result = probed(replace(big, ram_fraction=0.5), somaxconn="128")
    assert only(result).beyond("100") == ""
    assert only(result).beyond(str(1 << 39))
    assert only(probed(big, somaxconn="128")).beyond(str(1 << 50)) == ""


# The host's own value -----------------------------------------------------------------------------

OWN = parameter(components=(Component(name="", low=16, high=65535, own_floor=True),))


@pytest.mark.parametrize(("own", "low"), [("128", 128), ("16", 16), ("7", 16), ("65534", 65534)])
def test_the_own_value_is_the_least_where_a_smaller_one_can_hurt(own: str, low: int) -> None:
    (component,) = only(probed(OWN, somaxconn=own)).components
    assert (low, 65535) == (component.low, component.high)
    assert component.beyond(int(own) - 1)
    assert not component.beyond(int(own))


@pytest.mark.parametrize("own", ["65535", "9223372036854775807"])
def test_a_range_below_the_own_value_is_refused(own: str) -> None:
    result = probed(OWN, somaxconn=own)
    reason = f"its value {own} is not below the range, and a smaller one can hurt"
    assert {SOMAXCONN: reason} == result.refused


def test_the_largest_own_value_bounds_the_ranges_of_all_replicas() -> None:
    result = only(of_replicas(OWN, says(HAS), says(writable("4096")))).components[0]
    assert (result.low, result.high, result.floor) == (4096, 65535, 4096)
    small = replace(OWN, ram_fraction=0.5, unit="KiB")
    facts = replace(FACTS, memory_bytes=1 * MIB)
    refused = of_replicas(small, says(writable("4096")), says(HAS, facts)).refused
    assert refused == {SOMAXCONN: "not on all replicas: with lb-2 there is no range left"}


@pytest.mark.parametrize(
    ("value", "now", "own", "why"),
    [
        ("200", "128", None, ""),
        ("128", "128", None, ""),
        ("100", "128", None, "beyond a hard bound: 100 is below 128"),
        # What an earlier apply has left is not the host's own.
        ("200", "4096", "128", ""),
        ("100", "4096", "128", "beyond a hard bound: 100 is below 128"),
        (
            "200",
            "70000",
            None,
            "its value 70000 is not below the range, and a smaller one can hurt",
        ),
        ("200", "odd", None, ""),
        ("0200", "128", None, "malformed: '0200' is not 1 whole number(s)"),
    ],
)
def test_a_host_is_not_given_less_than_its_own_value(
    value: str, now: str, own: str | None, why: str
) -> None:
    assert why == why_not_set(OWN, value, says(writable(now)), own)


def test_own_values_out_of_order_leave_both_out() -> None:
    """Either could be chosen without the other, whose own value it then has to go with."""
    one, other = (replace(OWN, key=f"net.core.{name}") for name in "ab")
    order = Order(columns=(one.key, other.key))
    result = probed(one, other, constraints=(order,), a="4096", b="1024")
    assert {one.key, other.key} == result.refused.keys()
    assert probed(one, other, constraints=(order,), a="1024", b="4096").refused == {}


# Partners -----------------------------------------------------------------------------------------

RATIO, BYTES = "vm.dirty_ratio", "vm.dirty_bytes"
EITHER = (Exclusion(keys=(RATIO, BYTES)),)


def either(ratio: str, in_bytes: Reading | str) -> Probed:
    both = (parameter(RATIO), parameter(BYTES))
    return probed(*both, constraints=EITHER, dirty_ratio=ratio, dirty_bytes=in_bytes)


@pytest.mark.parametrize(
    ("ratio", "in_bytes", "offered", "refused"),
    [("20", "0", RATIO, BYTES), ("0", "50000", BYTES, RATIO), ("0", "0", RATIO, BYTES)],
)
def test_of_excluded_partners_the_one_in_force_is_offered(
    ratio: str, in_bytes: str, offered: str, refused: str
) -> None:
    result = either(ratio, in_bytes)
    assert offered == only(result).key
    assert {refused: f"writing it would zero its partner {offered}"} == result.refused


def test_a_partner_in_force_is_not_zeroed_though_it_cannot_be_tuned_itself() -> None:
    result = either("0", readable("50000"))
    assert result.space.parameters == ()
    assert result.refused[RATIO] == f"writing it would zero its partner {BYTES}"


def test_a_missing_partner_excludes_nothing() -> None:
    result = either("20", MISSING)
    assert only(result).key == RATIO


def test_a_parameter_without_room_beside_its_partners_value_is_refused() -> None:
    one, other = "net.core.a", "net.core.b"
    order = Order(columns=(one, other))
    both = (parameter(one), parameter(other))
    result = probed(*both, constraints=(order,), a="16", b=readable("15"))
    assert result.space.parameters == ()
    assert result.refused[one] == f"this host has no room for {one} <= {other}"


# Missing, without effect, locked down -------------------------------------------------------------

NEWER = Presence(since="6.15", source="s")
INERT = Presence(inert_since="6.1", source="s")


def test_a_missing_key_is_explained_by_the_kernels_that_have_it() -> None:
    result = probed(parameter(presence=NEWER))
    reason = "this kernel doesn't have it: it came later: with kernel 6.15"
    assert {SOMAXCONN: reason} == result.refused


def test_a_key_that_a_distribution_brought_to_an_older_kernel_is_offered() -> None:
    assert only(probed(parameter(presence=NEWER), somaxconn="128")).key == SOMAXCONN


def test_a_key_without_effect_is_no_dimension_of_the_search() -> None:
    result = probed(parameter(presence=INERT), somaxconn="128")
    assert result.refused == {SOMAXCONN: "has no effect: since kernel 6.1"}
    older = replace(FACTS, kernel="5.10.0")
    assert only(probed(parameter(presence=INERT), facts=older, somaxconn="128")).key == SOMAXCONN


def test_what_an_older_kernel_has_once_is_not_a_namespaces_own() -> None:
    own = parameter(presence=Presence(namespaced_since="6.8", source="s"))
    (reason,) = probed(own, facts=CHILD).refused.values()
    assert reason.startswith("belongs to the whole machine, and this host is only a namespace of")
    assert reason.endswith("each namespace has its own since kernel 6.8")
    for facts in (FACTS, replace(CHILD, kernel="6.8.0")):
        assert only(probed(own, facts=facts, somaxconn="128")).key == SOMAXCONN


@pytest.mark.parametrize(
    ("changed", "access", "reason"),
    [
        ({"mounts": {"/proc": False, "/proc/sys": True}}, "readable", "/proc/sys is mounted read-"),
        # Some shells take everything for writable that root asks for.
        ({"mounts": {"/proc": False, "/proc/sys": True}}, "writable", "/proc/sys is mounted read-"),
        ({"mounts": {"/proc": True}}, "readable", "/proc is mounted read-only, as in a container"),
        ({"mounts": {"/proc/sys/net": True, "/proc/sys": False}}, "readable", "/proc/sys/net is "),
        ({"is_root": False}, "readable", "we are not root there"),
        ({"in_user_namespace": True}, "readable", "root there is not the machine's, as in a cont"),
        ({"mounts": {"/proc/sys/net": False, "/proc/sys": True}}, "writable", ""),
        ({"mounts": {"/proc/sys/ne": True, "/proc/sys/net/ipv4": True}}, "writable", ""),
        ({"in_user_namespace": True, "is_root": False}, "writable", ""),
    ],
)
def test_a_key_that_is_locked_down_says_by_what(
    changed: dict[str, Any], access: Any, reason: str
) -> None:
    facts = replace(FACTS, **changed)
    result = probed(parameter(), facts=facts, somaxconn=Reading(access, "128"))
    message = result.refused.get(SOMAXCONN, "can't be written: ")
    assert message.startswith(f"can't be written: {reason}")
    assert bool(reason) == bool(result.refused)


def test_only_what_is_writable_and_harmless_is_written_its_own_value() -> None:
    some = [
        parameter(),
        parameter("net.core.a", effect="a table is rebuilt"),
        *map(parameter, ("net.core.b", RATIO, BYTES, "net.core.gone")),
    ]
    readings = {p.key: writable("1") for p in some[:-1]}
    readings["net.core.b"] = readable("1")
    assert tried_keys(some, EITHER, readings) == [SOMAXCONN]


# Replicas -----------------------------------------------------------------------------------------


def of_replicas(one: Parameter, *probes: Probe) -> Probed:
    first, *others = probes
    named = {f"lb-{n}": probe for n, probe in enumerate(others, 2)}
    return space_of([one], (), replace(first, replicas=named), "high")


def says(reading: Reading | None, facts: HostFacts = FACTS, **more: str) -> Probe:
    readings = {k.replace("__", "."): readable(v) for k, v in more.items()}
    if reading is not None:
        readings[CONGESTION if more else SOMAXCONN] = reading
    return Probe(facts=facts, readings=readings)


HAS = writable("128")
ONLY_READ = "can't be written: the kernel has it for reading only"


@pytest.mark.parametrize(
    ("readings", "reason"),
    [
        ((HAS, HAS, HAS), None),
        ((HAS, HAS, None), "not on all replicas: on lb-3, this kernel doesn't have it"),
        ((HAS, readable("128"), None), f"not on all replicas: on lb-2, {ONLY_READ}"),
        ((None, HAS), "this kernel doesn't have it"),
    ],
)
def test_what_one_replica_lacks_is_left_out_for_all_by_name(
    readings: tuple[Reading | None, ...], reason: str | None
) -> None:
    result = of_replicas(parameter(), *map(says, readings))
    assert ({} if reason is None else {SOMAXCONN: reason}) == result.refused
    assert (reason is None) == bool(result.space.parameters)


@pytest.mark.parametrize("order", [(1024, 512, 2048), (512, 1024, 2048), (2048, 1024, 512)])
def test_the_smallest_memory_bounds_the_ranges_of_all(order: tuple[int, ...]) -> None:
    one = parameter(
        components=(Component(name="", low=1024, high=1 << 40),), unit="KiB", ram_fraction=0.5
    )
    probes = [says(HAS, replace(FACTS, memory_bytes=mib * MIB)) for mib in order]
    assert [c.high for c in only(of_replicas(one, *probes)).components] == [256 * 1024]


def test_choices_are_those_of_all_replicas() -> None:
    cubic = writable("cubic")
    all_three, two = (
        says(cubic, **{AVAILABLE.replace(".", "__"): text}) for text in ("cubic reno bbr", "cubic")
    )
    assert only(of_replicas(congestion(), all_three, all_three)).choices == ("cubic", "reno", "bbr")
    # The value in force is all that the other one has.
    refused = of_replicas(congestion(), all_three, two).refused
    assert refused == {CONGESTION: "not on all replicas: on lb-2, the host offers only cubic"}
    here, there = (
        says(cubic, **{AVAILABLE.replace(".", "__"): f"cubic {o}"}) for o in ("reno", "bbr")
    )
    assert of_replicas(congestion(), here, there).refused == {
        CONGESTION: "not on all replicas: with lb-2 there is no choice left"
    }


def test_replicas_differ_where_both_have_a_key_with_different_values() -> None:
    one, other = says(HAS), says(writable("4096"))
    assert other_values(one, other) == [f"{SOMAXCONN}: 128 against 4096"]
    assert other_values(one, other, {SOMAXCONN}) == []
    assert other_values(one, says(None)) == []
    assert other_values(one, says(UNREADABLE)) == []
    assert other_values(one, says(readable("128"))) == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (HAS, []),
        (writable("4096"), ["128 against 4096"]),
        (readable("128"), ["128 against 128, read-only"]),
        (REFUSED, ["128 against 128, read-only"]),
        (writable(""), ["128 against empty"]),
        (UNREADABLE, ["128 against unreadable"]),
        (None, ["128 against missing"]),
    ],
)
def test_a_host_has_changed_where_a_value_or_its_access_has(
    now: Reading | None, expected: list[str]
) -> None:
    assert [f"{SOMAXCONN}: {line}" for line in expected] == changes(says(HAS), says(now))
    assert changes(says(HAS), says(now), {SOMAXCONN}) == []
