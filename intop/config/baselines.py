"""Baselines: other servers' values, a file each."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from intop.config.catalogue import Key
from intop.config.source import FirstFormat, Model, Source
from intop.domain.baseline import RESERVED, Baseline
from intop.domain.kernel_value import odd_numbers
from intop.domain.parameter import is_integer
from intop.domain.space import Constraint, Order
from intop.errors import ConfigurationError

LONGEST_VALUE = 200

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def _value_text(value: object) -> str:
    """A sysctl value as text. Raises ValueError for anything but text and whole numbers."""
    if isinstance(value, dict):  # TOML takes a dot outside of quotes as a table in a table.
        raise ValueError('a key has to stand in quotes, such as "net.core.somaxconn" = 4096')  # noqa: TRY004
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise ValueError("a value is a text or a whole number")
    if len(text := str(value)) > LONGEST_VALUE:
        raise ValueError(f"a value has at most {LONGEST_VALUE} characters")
    for word, number in odd_numbers(text).items():
        raise ValueError(
            f"to the kernel, {word} is {number}: it takes a number that begins with 0 for an octal "
            f"one. Write {number} or {int(word)}"
        )
    return text


class _BaselineModel(Model):
    version: FirstFormat = Field(alias="schema")
    title: str = Field(min_length=1)
    source: str = Field(min_length=1)
    values: dict[Key, Annotated[str, BeforeValidator(_value_text)]] = Field(min_length=1)


def load_baselines(folder: Path, constraints: Iterable[Constraint] = ()) -> dict[str, Baseline]:
    """The baselines of a folder by name, which is that of the file without .toml.

    The numbers of one key meet the catalogue's `constraints`. Raises ConfigurationError with a line
    for each problem of each file, ValueError for a folder without any.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ValueError(f"there are no files *.toml in {folder}")
    found: dict[str, Baseline] = {}
    problems: list[str] = []
    orders = _orders(constraints)
    for path in paths:
        try:
            found[path.stem] = _baseline(path, orders)
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return found


def _orders(constraints: Iterable[Constraint]) -> dict[str, Order]:
    """What must rise within one key, by key."""
    orders: dict[str, Order] = {}
    for constraint in constraints:
        if isinstance(constraint, Order):
            keys = {column.partition("[")[0] for column in constraint.columns}
            orders |= dict.fromkeys(keys, constraint) if len(keys) == 1 else {}
    return orders


def _baseline(path: Path, orders: Mapping[str, Order]) -> Baseline:
    source = Source.read(path)
    if reason := RESERVED.get(path.stem.lower()):
        source.problem((), f"a baseline can't be called {path.stem}: {reason}")
    if not _NAME.fullmatch(path.stem):
        source.problem((), "a baseline's file is named of letters, digits, dots, _ and -")
    model = source.check(lambda: _BaselineModel.model_validate(source.data), ())
    for key, text in model.values.items() if model else ():
        if key in orders and not _rises(text):
            names = ", ".join(re.findall(r"\[(.*?)\]", " ".join(orders[key].columns)))
            told = f"its numbers ({names}) have to rise: {orders[key].why} (got {text!r})"
            source.problem(("values", key), told)
    if model is None or source.problems:
        raise ConfigurationError(source.problems)
    return Baseline(name=path.stem, title=model.title, source=model.source, values=model.values)


def _rises(text: str) -> bool:
    """Whether numbers rise; a text that holds others is refused where it is tried."""
    numbers = [int(word) for word in text.split() if is_integer(word)]
    return numbers == sorted(numbers)
