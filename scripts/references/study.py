"""docs/study.md: every key of a study's file, from the types that it is read into."""

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval, Le, Lt

from intop.config import study
from intop.domain.balancing import Balancing
from intop.domain.canary import OwnMetric
from intop.domain.cluster import (
    Cluster,
    CongestionControl,
    Direction,
    HostAddress,
    LabClients,
    LabSpec,
    Link,
)
from intop.domain.guardrails import Guardrails
from intop.domain.server import ServerName
from intop.domain.workload import Budget, Clients, Workload
from scripts.references.markdown import MADE, table

HEAD = """\
A study is one file in TOML, `intop.toml` by default. `intop init` writes one. It says what to tune,
where, under which load and for how long. `configs/cluster.example.toml` is an example with
comments. Keys without a default are required; all others may be left out.
"""
COLUMNS = ["key", "value", "default", "meaning"]

Part = tuple[str, str, tuple[type, ...], frozenset[str], Mapping[str, str]]


def _part(
    title: str, text: str, *kinds: type, without: str = "", names: Mapping[str, str] | None = None
) -> Part:
    return title, text, kinds, frozenset(without.split()), names or {}


PARTS = (
    _part("[study]", "", study._StudyTable),  # noqa: SLF001
    _part(
        "[cluster.ARCH]",
        "`ARCH` is `x86` or `arm`, or `native` and `other` for this machine's and the emulated "
        "one. "
        "Several `[[cluster.ARCH]]` are replicas, which are measured on at once. With nginx the "
        "restart command may be called `nginx_restart`. The hosts are tables of their own: "
        "`load_generator` (or several `[[...load_generators]]`), `load_balancer` and "
        "`[[...backends]]`.",
        Cluster,
        without="arch emulation more_generators load_generator load_balancer backends",
    ),
    _part("A host", "", HostAddress, without="role"),
    _part(
        "[cluster.ARCH] with a lab",
        "In place of hosts, a cluster can be an embedded lab ([lab](lab.md)). `optional = true` "
        "goes on without it where it can't be emulated.",
        LabSpec,
        Balancing,
        without="arch balancing",
        names={"name": "lab"},
    ),
    _part("link of a lab", "`up` is a table with the keys of one direction.", Link, Direction),
    _part("clients of a lab", "", LabClients),
    _part("congestion_control of a lab", "", CongestionControl),
    _part(
        "[workload.NAME]",
        "`slt` is static files, `dlt` pages made on request. Any other name needs a `kind`.",
        Workload,
        without="name clients only_path judged_by",
    ),
    _part(
        "[[workload.NAME.clients]]",
        "Classes of clients. Without classes, all these keys but `name` and `share` may stand in "
        "`[workload.NAME]`.",
        Clients,
    ),
    _part("[budget]", "For each architecture and workload.", Budget),
    _part(
        "[guardrails]",
        "A winner may be so much worse than the default. `false` switches a guardrail off.",
        Guardrails,
    ),
    _part(
        "[canary.metrics.NAME]",
        "Numbers of your own, which `intop canary` asks for at the end of each block: by a command "
        "on the host, or from Prometheus. Zero is no number here, since ratios count.",
        OwnMetric,
    ),
)


TYPES: Mapping[str, Any] = {
    "server": ServerName,
    "arrivals": Literal["constant", "poisson", "recorded"],
    "recording": str,
    **dict.fromkeys(("files", "waits", "sysctls"), dict),
}
"""Types that a file has in place of those that they are read into."""


def document() -> str:
    """The whole document."""
    source = MADE.format(
        source="the types that a study is read into, or scripts/references/study.py"
    )
    parts = ["# The study's file\n", source, HEAD]
    for title, text, kinds, without, names in PARTS:
        parts.append(f"## {title}\n")
        parts += [f"{text}\n"] if text else []
        parts.append(table(COLUMNS, list(_rows(kinds, without, names))))
    return "\n".join(parts)


def _rows(
    kinds: tuple[type, ...], without: frozenset[str], names: Mapping[str, str]
) -> Iterator[list[str]]:
    seen: set[str] = set()
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        meanings = _meanings(kind)
        for field in fields(kind):
            if field.name in without or field.name in seen:
                continue
            seen.add(field.name)
            name = names.get(field.name, field.name)
            hint = TYPES.get(field.name, hints[field.name])
            yield [f"`{name}`", _type(hint), _default(field), meanings.get(field.name, "")]


def _meanings(kind: type) -> dict[str, str]:
    """Return the text below each field of a class, and of those that it comes from."""
    meanings: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        if not is_dataclass(each):
            continue
        (tree,) = (
            node
            for node in ast.walk(ast.parse(Path(inspect.getfile(each)).read_text()))
            if isinstance(node, ast.ClassDef) and node.name == each.__name__
        )
        name = ""
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
            elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                meanings[name] = " ".join(inspect.cleandoc(str(node.value.value)).split())
                name = ""
            else:
                name = ""
    return meanings


def _type(hint: Any) -> str:
    """Return a type in words, with its bounds."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = " ".join(filter(None, map(_bound, arguments[1:])))
        return f"{_type(arguments[0])} {bounds}".strip()
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type(a) for a in arguments if a is not NoneType))
    if origin is Literal:
        return ", ".join(f"`{json.dumps(value)}`" for value in arguments)
    if origin is tuple:
        return f"list of: {_type(arguments[0])}"
    if is_dataclass(hint):
        return "table"
    words = {bool: "true, false", int: "whole number", float: "number", str: "text", dict: "table"}
    return words.get(hint, "")


def _bound(constraint: Any) -> str:
    match constraint:
        case Interval(ge=ge, gt=gt, le=le, lt=lt):
            low = f"from {ge:,}" if ge is not None else f"above {gt:,}" if gt is not None else ""
            high = f"to {le:,}" if le is not None else f"below {lt:,}" if lt is not None else ""
            return f"{low} {high}".strip()
        case Ge(ge=ge):
            return f"from {ge:,}"
        case Gt(gt=gt):
            return f"above {gt:,}"
        case Le(le=le):
            return f"to {le:,}"
        case Lt(lt=lt):
            return f"below {lt:,}"
    return ""


def _default(field: Field[Any]) -> str:
    default = field.default
    if default is MISSING:
        return "**required**" if field.default_factory is MISSING else ""
    if default is None or default in ("", ()):
        return ""
    if is_dataclass(default):
        name = getattr(default, "name", "")
        return f"`{json.dumps(name)}`" if name else ""
    return f"`{json.dumps(default)}`"
