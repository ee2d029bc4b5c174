"""Baselines: other servers' values, a file each."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen
from pydantic import BeforeValidator

from intop.config.catalogue import Key
from intop.config.source import Source
from intop.domain.baseline import RESERVED, Baseline
from intop.domain.constraints import Constraint, Order
from intop.domain.kernel_value import odd_numbers, reading
from intop.domain.parameter import PARTNERS, Parameter, is_integer, normalised
from intop.errors import ConfigurationError

LONGEST_VALUE = 200

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def _value_text(value: object) -> str:
    """Return a sysctl value as text. Raises ValueError for all but text and whole numbers."""
    if isinstance(value, dict):  # TOML takes a dot outside of quotes as a table in a table.
        raise ValueError('a key has to stand in quotes, such as "net.core.somaxconn" = 4096')  # noqa: TRY004
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise ValueError("a value is a text or a whole number")
    if len(text := str(value)) > LONGEST_VALUE:
        raise ValueError(f"a value has at most {LONGEST_VALUE} characters")
    if text != text.strip() or "\n" in text:
        raise ValueError("a value is one line, with no blank at its beginning and end")
    for word, number in odd_numbers(text).items():
        raise ValueError(
            f"to the kernel, {word} is {number}: it takes a number that begins with 0 for an octal "
            f"one. Write {number} or {int(word)}"
        )
    return text


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A baseline without its name, which is that of its file."""

    title: Annotated[str, MinLen(1)]
    source: Annotated[str, MinLen(1)]
    values: Annotated[dict[Key, Annotated[str, BeforeValidator(_value_text)]], MinLen(1)]


def load_baselines(
    folder: Path, parameters: Iterable[Parameter] = (), constraints: Iterable[Constraint] = ()
) -> dict[str, Baseline]:
    """Return the baselines of a folder by name, which is that of the file without .toml.

    The values of the catalogue's `parameters` are as the kernel shows them, and the numbers of one
    key meet its `constraints`. Raises ConfigurationError with a line for each problem of each file,
    ValueError for a folder without any.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ValueError(f"there are no files *.toml in {folder}")
    baselines: dict[str, Baseline] = {}
    problems: list[str] = []
    orders = _orders(constraints)
    by_key = {parameter.key: parameter for parameter in parameters}
    for path in paths:
        try:
            baselines[path.stem] = _baseline(path, by_key, orders)
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return baselines


def _orders(constraints: Iterable[Constraint]) -> dict[str, Order]:
    """Return the orders of the numbers of one key, by key."""
    orders: dict[str, Order] = {}
    for constraint in constraints:
        if isinstance(constraint, Order):
            keys = {column.partition("[")[0] for column in constraint.columns}
            orders |= dict.fromkeys(keys, constraint) if len(keys) == 1 else {}
    return orders


def _baseline(
    path: Path, parameters: Mapping[str, Parameter], orders: Mapping[str, Order]
) -> Baseline:
    source = Source.read(path)
    if reason := RESERVED.get(path.stem.lower()):
        source.problem((), f"a baseline can't be called {path.stem}: {reason}")
    if not _NAME.fullmatch(path.stem):
        source.problem((), "a baseline's file is named of letters, digits, dots, _ and -")
    source.check_format(*source.data)
    table = source.convert(_Table, {k: v for k, v in source.data.items() if k != "schema"}, ())
    values = table.values if table else {}
    set_before: set[str] = set()
    for key, text in values.items():
        if text != "0" and (partner := PARTNERS.get(key)) in set_before:
            what = f"the kernel sets {partner} to 0 with it: leave one of the two out"
            source.problem(("values", key), what)
        set_before |= {key} if text != "0" else set()
        if key in parameters and (why := _unlike(parameters[key], text)):
            source.problem(("values", key), f"{why} (got {text!r})")
        elif key in orders and not _rises(text):
            names = ", ".join(re.findall(r"\[(.*?)\]", " ".join(orders[key].columns)))
            what = f"its numbers ({names}) have to rise: {orders[key].why} (got {text!r})"
            source.problem(("values", key), what)
    if table is None or source.problems:
        raise ConfigurationError(source.problems)
    return Baseline(name=path.stem, title=table.title, source=table.source, values=table.values)


def _unlike(parameter: Parameter, text: str) -> str:
    """Return why a value is none that the kernel shows of a key, "" where it may be."""
    if not parameter.is_numeric:
        like = next((c for c in parameter.choices if c.lower() == text.lower()), text)
        return "" if like == text else f"the kernel tells capital letters apart: write {like}"
    count = len(parameter.components)
    parts = ", ".join(part.name for part in parameter.components)
    numbers = f"{count} whole numbers ({parts})" if count > 1 else "a whole number"
    value = reading(parameter.key, text, [" ".join(["0"] * count)])
    if value.outcome in ("refused", "unknown"):
        return f"the kernel takes {numbers}"
    if value.value != normalised(text):
        return f"to the kernel, that is {value.value}: write that"
    return ""


def _rises(text: str) -> bool:
    """Return whether numbers rise; a text with others is refused where it is tried."""
    numbers = [int(word) for word in text.split() if is_integer(word)]
    return numbers == sorted(numbers)
