"""Baselines: other servers' values, a file each."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from intop.config.catalogue import Key
from intop.config.source import Model, Source
from intop.domain.baseline import RESERVED, Baseline
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
    return text


class _BaselineModel(Model):
    version: Literal[1] = Field(alias="schema")
    title: str = Field(min_length=1)
    source: str = Field(min_length=1)
    values: dict[Key, Annotated[str, BeforeValidator(_value_text)]] = Field(min_length=1)


def load_baselines(folder: Path) -> dict[str, Baseline]:
    """The baselines of a folder by name, which is that of the file without .toml.

    Raises ConfigurationError with a line for each problem of each file, ValueError for a folder
    without any.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ValueError(f"there are no files *.toml in {folder}")
    found: dict[str, Baseline] = {}
    problems: list[str] = []
    for path in paths:
        try:
            found[path.stem] = _baseline(path)
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return found


def _baseline(path: Path) -> Baseline:
    source = Source.read(path)
    if reason := RESERVED.get(path.stem.lower()):
        source.problem((), f"a baseline can't be called {path.stem}: {reason}")
    if not _NAME.fullmatch(path.stem):
        source.problem((), "a baseline's file is named of letters, digits, dots, _ and -")
    model = source.check(lambda: _BaselineModel.model_validate(source.data), ())
    if model is None or source.problems:
        raise ConfigurationError(source.problems)
    return Baseline(name=path.stem, title=model.title, source=model.source, values=model.values)
