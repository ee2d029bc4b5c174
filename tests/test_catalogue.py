"""The catalogue: the one that comes with intop, and what a user's own may not say."""

from pathlib import Path
from typing import Any

import pytest

from intop.config.catalogue import Catalogue, load_catalogue
from intop.domain.constraints import Exclusion, Order, Requirement
from intop.domain.parameter import DENIED, Component
from intop.errors import ConfigurationError
from intop.hosts.sysctl import path_of

SHIPPED = Path(__file__).parents[1] / "configs" / "parameters.toml"

FIELDS: dict[str, Any] = {
    "key": "net.core.somaxconn", "kind": "integer", "low": 16, "high": 65535, "scale": "log",
    "unit": "", "scope": "namespace", "risk": "low", "mechanism": "m", "document": "d",
}  # fmt: skip


def entry(table: str, fields: dict[str, Any]) -> str:
    lines = [f"{key} = {_toml(value)}" for key, value in fields.items() if value is not None]
    return "\n".join([f"[[{table}]]", *lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def parameter(**changes: Any) -> str:
    return entry("parameter", FIELDS | changes)


def choice(key: str, *choices: str) -> str:
    return parameter(key=key, kind="choice", low=None, high=None, scale=None, choices=list(choices))


def constraint(**fields: Any) -> str:
    return entry("constraint", {"why": "w", **fields})


def loaded(tmp_path: Path, *entries: str, head: str = "schema = 1\n") -> Catalogue:
    path = tmp_path / "own.toml"
    path.write_text(head + "".join(entries))
    return load_catalogue(path)


def problems(tmp_path: Path, *entries: str, head: str = "schema = 1\n") -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, *entries, head=head)
    return [problem.removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


# What comes with intop ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped() -> Catalogue:
    return load_catalogue(SHIPPED)


def test_it_has_at_least_100_parameters_of_every_kind_and_both_scopes(shipped: Catalogue) -> None:
    assert len(shipped.parameters) >= 100
    kinds = {p.kind for p in shipped.parameters}
    assert kinds == {"integer", "boolean", "choice", "vector"}
    assert {p.scope for p in shipped.parameters} == {"namespace", "machine"}
    assert {p.risk for p in shipped.parameters} == {"low", "medium", "high"}
    assert {p.key.split(".")[0] for p in shipped.parameters} == {"net", "vm", "fs", "kernel"}


def test_it_has_every_kind_of_constraint(shipped: Catalogue) -> None:
    assert {Order, Requirement, Exclusion} == {type(c) for c in shipped.constraints}


def test_every_key_can_become_a_path(shipped: Catalogue) -> None:
    for p in shipped.parameters:
        assert path_of(p.key).startswith(("net/", "vm/", "fs/", "kernel/"))


def test_every_parameter_says_what_it_does_to_nginx_and_where_it_is_described(
    shipped: Catalogue,
) -> None:
    for p in shipped.parameters:
        assert len(p.mechanism) >= 20, p.key
        assert "/" in p.document, p.key


def test_what_is_known_of_kernels_is_data(shipped: Catalogue) -> None:
    known = {p.key: p.presence for p in shipped.parameters}
    assert known["kernel.sched_latency_ns"].moved_to == "/sys/kernel/debug/sched/latency_ns"
    assert known["net.ipv4.tcp_adv_win_scale"].inert_since == "6.6"
    conntrack = {p.module for key, p in known.items() if key.startswith("net.netfilter.nf_conn")}
    assert conntrack == {"nf_conntrack"}
    for key, presence in known.items():
        if key.startswith("kernel.") and presence.until:
            assert presence.why_missing("6.1.0").endswith(presence.moved_to)


def test_a_key_of_old_is_no_parameter_and_says_what_became_of_it(shipped: Catalogue) -> None:
    assert shipped.former["net.ipv4.tcp_tw_recycle"] == "no kernel has it since 4.12"
    assert not shipped.former.keys() & {p.key for p in shipped.parameters}


def test_keys_whose_writing_does_something_say_so(shipped: Catalogue) -> None:
    effects = {p.key: p.effect for p in shipped.parameters if p.effect}
    assert effects["vm.compaction_proactiveness"] == "memory is compacted at once"


# Bounds -------------------------------------------------------------------------------------------


def components(shipped: Catalogue, key: str) -> list[Component]:
    return [c for p in shipped.parameters if p.key == key for c in p.components]


def test_local_ports_begin_above_those_that_services_listen_on(shipped: Catalogue) -> None:
    first, _ = components(shipped, "net.ipv4.ip_local_port_range")
    assert 32768 <= first.low == first.floor


@pytest.mark.parametrize("ip", ["ipv4", "ipv6"])
def test_neighbours_are_at_least_what_kernel_and_host_have(shipped: Catalogue, ip: str) -> None:
    (component,) = components(shipped, f"net.{ip}.neigh.default.gc_thresh3")
    assert (component.low, component.floor, component.own_floor) == (1024, 1024, True)


def test_reclaim_does_not_take_a_tenth_of_the_memory(shipped: Catalogue) -> None:
    (component,) = components(shipped, "vm.watermark_scale_factor")
    assert 200 >= component.high == component.ceiling


@pytest.mark.parametrize(
    "key",
    [
        *("fs.file-max", "fs.nr_open", "fs.aio-max-nr", "fs.epoll.max_user_watches"),
        *("net.netfilter.nf_conntrack_max", "vm.min_free_kbytes", "net.ipv4.tcp_mem"),
    ],
)
def test_what_all_programs_share_is_not_made_scarcer(shipped: Catalogue, key: str) -> None:
    assert components(shipped, key)[-1].own_floor


@pytest.mark.parametrize(
    "key",
    ["net.ipv4.tcp_timestamps", "net.netfilter.nf_conntrack_checksum", "kernel.nmi_watchdog"],
)
def test_what_weakens_the_host_has_a_note_on_security(shipped: Catalogue, key: str) -> None:
    (note,) = [p.note for p in shipped.parameters if p.key == key]
    assert "security: " in note.lower()


@pytest.mark.parametrize("key", ["net.core.default_qdisc", "net.unix.max_dgram_qlen"])
def test_what_only_a_boot_would_show_is_not_offered(shipped: Catalogue, key: str) -> None:
    assert key not in {p.key for p in shipped.parameters}
    assert shipped.former[key].startswith("not offered: ")


# Denied keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", DENIED)
def test_a_denied_key_in_a_users_catalogue_is_refused_by_name_and_reason(
    tmp_path: Path, pattern: str
) -> None:
    key = pattern.replace("*", "some")
    (result,) = problems(tmp_path, parameter(), parameter(key=key))
    assert result.startswith(f"own.toml:13: parameter.1: {key} is on the deny list: ")
    assert result.endswith(DENIED[pattern]) or "net." in pattern


def test_a_key_that_nobody_allowed_is_refused_by_name(tmp_path: Path) -> None:
    (result,) = problems(tmp_path, parameter(), parameter(key="kernel.new_in_7_0"))
    assert "own.toml:13: parameter.1: kernel.new_in_7_0 is not on the list of keys that" in result


def test_no_field_of_a_file_can_lift_the_deny_list(tmp_path: Path) -> None:
    head = 'schema = 1\nallow = ["kernel.sysrq"]\n'
    result = problems(tmp_path, parameter(key="kernel.sysrq", allow=True), head=head)
    assert any("allow: is not a known table" in problem for problem in result)
    assert any("parameter.0.allow: extra inputs are not permitted" in p for p in result)


@pytest.mark.parametrize(
    "key",
    [
        "kernel/sysrq",
        "net.core.x; reboot",
        "../etc/passwd",
        "net..core",
        "somaxconn",
        "net.core.$(x)",
    ],
)
def test_what_is_no_key_is_refused(tmp_path: Path, key: str) -> None:
    (result,) = problems(tmp_path, parameter(key=key))
    assert result.startswith("own.toml:3: parameter.0.key: is no key: its parts have dots")


# Other mistakes -----------------------------------------------------------------------------------

RANGE = [{"name": "min", "low": 1, "high": 9}]
NO_RANGE = {"low": None, "high": None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"low": None}, "2: parameter.0.low: field required"),
        ({"low": 9, "high": 9}, "2: parameter.0: low must be below high, got 9 and 9"),
        ({"low": 0}, "2: parameter.0: a log scale needs low of at least 1, got 0"),
        ({"scale": None}, "2: parameter.0: scale is missing"),
        ({"scale": "cubic"}, "7: parameter.0.scale: input should be 'linear' or 'log'"),
        ({"kind": "float"}, "4: parameter.0.kind: input should be 'integer', 'boolean'"),
        ({"kind": "vector", "components": RANGE}, "2: parameter.0: low and high belong"),
        ({"kind": "vector"} | NO_RANGE,
         "2: parameter.0: a parameter of kind vector has a range and no choices"),
        ({"kind": "boolean"}, "2: parameter.0: low and high belong to an integer"),
        ({"choices": ["a", "b"]}, "2: parameter.0: a parameter of kind integer has a ran"),
        ({"mechanism": ""}, "11: parameter.0.mechanism: string should have at least 1"),
        ({"colour": "red"}, "13: parameter.0.colour: extra inputs are not permitted"),
        ({"ram_fraction": 0.5}, "2: parameter.0: ram_fraction needs one of the units"),
        ({"hard": "yes"}, "13: parameter.0.hard: input should be '', 'low', 'high' or 'both'"),
        ({"kind": "boolean", "scale": None, "own_floor": True} | NO_RANGE,
         "2: parameter.0: hard and own_floor belong to an integer, or to a vector's"),
        ({"document": None}, "2: parameter.0.document: field required"),
        ({"presence": {"sense": "5.1"}}, "13: parameter.0.presence.sense: extra inputs are not"),
        ({"presence": {"since": "5", "source": "s"}},
         "13: parameter.0.presence: a kernel's version is two numbers such as 5.14, got '5'"),
        ({"presence": {"since": "5.14"}}, "13: parameter.0.presence: presence needs a source"),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_told_with_its_place(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    (result,) = problems(tmp_path, parameter(**changes))
    assert result.startswith(f"own.toml:{expected}")


SOMAXCONN, REUSE = "net.core.somaxconn", "net.ipv4.tcp_tw_reuse"
TWO = (parameter(), parameter(key="net.core.rmem_max"), choice(REUSE, "0", "1"))
NEEDS = {"kind": "requires", "key": REUSE, "needs": REUSE, "values": ["1"], "to_be": ["1"]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "increasing", "key": "net.x.y"}, "net.x.y is not in the catalogue"),
        ({"kind": "less", "low": SOMAXCONN, "high": "net.x.y"},
         "net.x.y is not a number of the catalogue"),
        ({"kind": "less", "low": REUSE, "high": SOMAXCONN},
         f"{REUSE} is not a number of the catalogue"),
        ({"kind": "exclusive", "keys": [SOMAXCONN, "net.x.y"]}, "net.x.y is not in the catalogue"),
        (NEEDS | {"needs": "net.x.y"}, "net.x.y is not in the catalogue"),
        (NEEDS | {"values": ["7"]}, f"'7' is no choice of {REUSE}"),
        ({"kind": "different"}, "input tag 'different' found using 'kind' does not match any"),
    ],
)  # fmt: skip
def test_a_wrong_constraint_is_told_with_its_place(
    tmp_path: Path, fields: dict[str, Any], expected: str
) -> None:
    good = constraint(kind="less", low="net.core.somaxconn", high="net.core.rmem_max")
    (result,) = problems(tmp_path, *TWO, good, constraint(**fields))
    text = (tmp_path / "own.toml").read_text().splitlines()
    line = [number for number, line in enumerate(text, 1) if line == "[[constraint]]"][1]
    assert result.startswith(f"own.toml:{line}: constraint.1: {expected}")


def test_an_unknown_field_of_a_constraint_is_told(tmp_path: Path) -> None:
    wrong = constraint(kind="increasing", key="net.core.somaxconn", gasp=5)
    (result,) = problems(tmp_path, parameter(), wrong)
    assert result.startswith("own.toml:17: constraint.0.gasp: extra inputs are not permitted")


def test_a_parameter_that_stands_there_twice_is_told(tmp_path: Path) -> None:
    assert problems(tmp_path, parameter(), parameter(low=1)) == [
        "own.toml:14: parameter.1.key: net.core.somaxconn stands there twice"
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"key": SOMAXCONN}, "own.toml:14: former.0.key: net.core.somaxconn stands ther"),
        ({"key": "no key"}, "own.toml:14: former.0.key: is no key: its parts"),
        ({"became": None}, "own.toml:13: former.0.became: field required"),
        ({"source": None}, "own.toml:13: former.0.source: field required"),
        ({"until": "4.12"}, "own.toml:17: former.0.until: extra inputs are not permitted"),
    ],
)
def test_a_wrong_key_of_old_is_told_with_its_place(
    tmp_path: Path, fields: dict[str, Any], expected: str
) -> None:
    good = {"key": "net.ipv4.tcp_tw_recycle", "became": "none has it", "source": "s"}
    (result,) = problems(tmp_path, parameter(), entry("former", good | fields))
    assert result.startswith(expected)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("", "own.toml: schema: must be 1, got None"),
        ("schema = 2\n", "own.toml:1: schema: must be 1, got 2"),
        ("schema = 1\nparameters = 5\n", "own.toml:2: parameters: is not a known table"),
        ("schema = 1\n[parameter]\n", "own.toml:2: parameter: must be a list of tables, each beg"),
        ("schema = 1\nconstraint = 5\n", "own.toml:2: constraint: must be a list of tables, each"),
        ("schema = 1\nparameter = [5]\n", "own.toml:2: parameter.0: input should be a valid table"),
    ],
)
def test_a_file_of_another_shape_is_told(tmp_path: Path, head: str, expected: str) -> None:
    (result,) = problems(tmp_path, head=head)
    assert result.startswith(expected)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    wrong = (parameter(key="kernel.sysrq"), parameter(low=0))
    order = constraint(kind="increasing", key="net.x.y")
    result = problems(tmp_path, *wrong, order, head="schema = 7\n")
    places = [problem.split(": ")[1] for problem in result]
    assert places == ["schema", "parameter.0", "parameter.1", "constraint.0"]


def test_constraints_are_read(tmp_path: Path) -> None:
    ends = [{"name": name, "low": 1, "high": 9} for name in ("min", "max")]
    result = loaded(
        tmp_path,
        parameter(key="net.core.a"),
        parameter(key="net.core.v", kind="vector", components=ends, **NO_RANGE),
        choice("net.core.c", "x", "y"),
        parameter(key="net.core.b", kind="boolean", scale=None, **NO_RANGE),
        constraint(kind="increasing", key="net.core.v", gap=3),
        constraint(kind="less", low="net.core.a", high="net.core.v[max]"),
        constraint(**NEEDS | {"key": "net.core.c", "values": ["x"], "needs": "net.core.b"}),
        constraint(kind="exclusive", keys=["net.core.a", "net.core.b"]),
    )
    assert (
        Order(columns=("net.core.v[min]", "net.core.v[max]"), gap=3, why="w"),
        Order(columns=("net.core.a", "net.core.v[max]"), why="w"),
        Requirement(key="net.core.c", values=("x",), needs="net.core.b", to_be=("1",), why="w"),
        Exclusion(keys=("net.core.a", "net.core.b"), why="w"),
    ) == result.constraints
    assert [p.choices for p in result.parameters] == [(), (), ("x", "y"), ("0", "1")]
