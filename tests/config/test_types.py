"""Numbers and switches of TOML files: another type in their place is a mistake, never converted."""

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import ValidationError

from builders.config_files import DURATION, SUDO, edited, problems, with_budget, with_classes
from intop.config import catalogue, study
from intop.config.baselines import load_baselines
from intop.config.catalogue import load_catalogue
from intop.config.cluster import host_address
from intop.config.counters import load_counters
from intop.config.directives import load_directives
from intop.config.source import converted
from intop.domain.balancing import Balancing
from intop.domain.cluster import Cluster, HostAddress, LabClients, LabSpec, Link
from intop.domain.guardrails import Guardrails
from intop.domain.nginx.directive import Directive
from intop.domain.parameter import Component, Parameter
from intop.domain.workload import Budget, Clients, Workload
from intop.errors import ConfigurationError
from intop.resources import shipped

TABLES = (
    *(study._StudyTable, Budget, Guardrails, Workload, Clients, Cluster, HostAddress),
    *(LabSpec, LabClients, Link, Balancing, Parameter, Component),
    *(catalogue._Increasing, Directive),
)
"""Every kind of table of our files that has numbers or switches."""


def plain_types(annotation: Any) -> set[type]:
    """The numbers, switches and texts that a field takes; the types inside of lists are not."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return plain_types(inner[0])
    if origin in (Union, types.UnionType):
        return {kind for part in inner for kind in plain_types(part)}
    if origin is Literal:
        return {type(value) for value in inner}
    return {annotation} & {int, float, bool, str}


WRONG: dict[type, tuple[object, ...]] = {
    int: (True, "1", "yes", 1.0, 1.5),
    float: (True, "1", "1.5", "yes"),
    bool: (1, 0, 1.0, "yes", "true", "1"),
}
"""What Python would convert to each type, and TOML tells apart."""

FIELDS = [
    (table, name, plain_types(annotation))
    for table in TABLES
    for name, annotation in get_type_hints(table, include_extras=True).items()
    # That 1 is no switch of sudo is told by its own message.
    if plain_types(annotation) & WRONG.keys() and name != "sudo"
]


def test_all_numbers_and_switches_are_among_the_fields() -> None:
    names = {name for _, name, _ in FIELDS}
    assert {"rate_rps", "connections", "workers", "serves_files", "level", "low"} <= names
    assert len(FIELDS) > 80


@pytest.mark.parametrize(
    ("table", "name", "kinds"), FIELDS, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_no_other_type_is_converted(table: type, name: str, kinds: set[type]) -> None:
    wrong = [v for kind in kinds & WRONG.keys() for v in WRONG[kind] if type(v) not in kinds]
    if float in kinds:
        wrong = [value for value in wrong if type(value) is not int]
    for value in wrong:
        with pytest.raises(ValidationError) as caught:
            converted(table, {name: value})
        places = {str(error["loc"][0]) for error in caught.value.errors() if error["loc"]}
        assert name in places, (value, str(caught.value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (edited("rate_rps = 100", "rate_rps = true"),
         "6: workload.slt.rate_rps: input should be a valid number (got True)"),
        (edited("connections = 8", "connections = true"),
         "7: workload.slt.connections: input should be a valid integer (got True)"),
        (edited("connections = 8", 'connections = "2000"'),
         "7: workload.slt.connections: input should be a valid integer (got '2000')"),
        (edited("[workload.slt]", 'workers = "yes"\n[workload.slt]'),
         "5: study.workers: input should be a valid boolean (got 'yes')"),
        (edited(SUDO, "sudo = 1"),
         "26: cluster.arm.load_balancer.sudo: must be true, false, \"ask\" or \"doas\" (got 1)"),
        (edited(DURATION, f"{DURATION}\nsource = 3"),
         "10: workload.slt.source: input should be a valid string (got 3)"),
        (with_budget('screen_trials = "8"'),
         "6: budget.screen_trials: input should be a valid integer (got '8')"),
        (with_budget("level = true"), "6: budget.level: input should be a valid number (got True)"),
        (with_classes("share = 0.8", 'share = "0.8"'),
         "12: workload.slt.clients.0.share: input should be a valid number (got '0.8')"),
        (edited(DURATION, f'{DURATION}\npaths = {{ "/a" = true }}'),
         "10: workload.slt.paths: /a: its weight must be 1 to 1000, not True"),
    ],
)  # fmt: skip
def test_a_wrong_type_has_its_line(tmp_path: Path, text: str, expected: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert problem.startswith(f"study.toml:{expected}")


@pytest.mark.parametrize("value", ["true", "1.0", '"1"'])
@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("parameters.toml", load_catalogue),
        ("nginx.toml", load_directives),
        ("counters.toml", load_counters),
    ],
)
def test_the_number_of_a_format_is_a_whole_number(
    tmp_path: Path, name: str, load: Any, value: str
) -> None:
    text = (shipped("configs") / name).read_text()
    path = tmp_path / name
    path.write_text(text.replace("schema = 1\n", f"schema = {value}\n", 1))
    assert load(shipped("configs") / name)
    with pytest.raises(ConfigurationError, match=r"schema: must be 1, got"):
        load(path)


@pytest.mark.parametrize("value", ["true", "1.0", '"1"'])
def test_the_number_of_a_baselines_format_is_a_whole_number(tmp_path: Path, value: str) -> None:
    text = f'schema = {value}\ntitle = "a"\nsource = "b"\n[values]\n"net.core.somaxconn" = 1\n'
    (tmp_path / "ours.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"schema: must be 1"):
        load_baselines(tmp_path)


def test_a_whole_number_may_stand_for_a_fraction(tmp_path: Path) -> None:
    assert list(problems_of(tmp_path, edited("rate_rps = 100", "rate_rps = 100.0"))) == []


def problems_of(folder: Path, text: str) -> list[str]:
    path = folder / "study.toml"
    path.write_text(text)
    try:
        study.load_study(path)
    except ConfigurationError as error:
        return list(error.problems)
    return []


def test_the_port_of_a_host_option_is_a_number() -> None:
    assert host_address("me@host:2222").port == 2222
