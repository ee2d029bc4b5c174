"""Tables of trials that `intop export` wrote: what they were trained by, and the same samples."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from intop.config.source import LARGEST_FILE, check_kind
from intop.config.table_file import Column, TableFile
from intop.domain.encoding import Variable
from intop.domain.spreadsheet import cell, text_of
from intop.domain.table import PARQUET, Inventory, Recipe, Table, schema_of
from intop.domain.trial import USABLE
from intop.errors import ConfigurationError

_RECIPES = TypeAdapter(tuple[Recipe, ...])
_PLACE = ("study", "campaign", "arch", "workload", "stage", "index", "attempt", "status")
_NAME = "configuration"
_TAUGHT, _LENT = ("collect", "refine"), ("screen",)
_ROLE, _DRAWN = "role", "design"


def read_recipes(path: Path) -> tuple[Recipe, ...]:
    """How models are trained on a table; none where it has no schema beside it.

    Raises ConfigurationError for one that is not as `intop export` wrote it.
    """
    schema = schema_of(path)
    if not schema.exists():
        return ()
    try:
        check_kind(schema)
        with schema.open(encoding="utf-8") as file:
            document = json.loads(file.read(LARGEST_FILE))
        return _RECIPES.validate_python(document["intop"]["recipes"])
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        why = str(first).partition("\n")[0]
        told = (
            f"{schema}: is no schema of trials ({why}): export them again, or say --target to read "
            f"{path.name} as any other table"
        )
        raise ConfigurationError([told]) from error


def read_exports(path: Path, recipes: Sequence[Recipe]) -> list[Table]:
    """The configurations that each recipe is for, as `intop train` gets them from the store.

    Of each place in a plan the last attempt counts, if it is usable. Trials of one configuration
    are put together by its name. Raises ConfigurationError, with file, line and column, for a
    table that lacks some of it.
    """
    file = TableFile(path)
    names = dict.fromkeys((*_PLACE, _NAME))
    for recipe in recipes:
        names |= dict.fromkeys((recipe.column, *(v.name for v in recipe.variables)))
        names |= {_ROLE: None} if recipe.is_lent else {}
    is_csv = path.suffix != PARQUET
    indexes = {name: file.index(cell(name) if is_csv else name, "its schema") for name in names}
    columns = file.columns(list(indexes.values()))
    by_name = {
        name: _as_it_was(columns[index]) if is_csv else columns[index]
        for name, index in indexes.items()
    }
    return [_table(by_name, recipe) for recipe in recipes]


def _as_it_was(column: Column) -> Column:
    """A column with the texts that its cells were made of."""
    return replace(column, texts=tuple(map(text_of, column.texts)))


def _table(columns: dict[str, Column], recipe: Recipe) -> Table:
    target, goals = columns[recipe.column], _numbers(columns[recipe.column])
    rows = _last_attempts(columns, recipe, _TAUGHT)
    usable = _usable(columns, recipe, rows)
    by_name = _by_name(columns, usable)
    if not by_name:
        raise ConfigurationError(
            [f"{target.path}: has no usable trials of collect and refine for {recipe.title}"]
        )
    lent: list[list[int]] = []
    if recipe.is_lent:
        drawn = [
            n for n in _last_attempts(columns, recipe, _LENT) if columns[_ROLE].text(n) == _DRAWN
        ]
        lent = list(_by_name(columns, _usable(columns, recipe, drawn)).values())
        if not lent:
            told = (
                f"{target.path}: has no usable trials of screen, from which the models of "
                f"{recipe.title} learn, too: export them (--stage screen)"
            )
            raise ConfigurationError([told])
    together = [*by_name.values(), *lent]
    values = [
        _encoded(columns[v.name], v, [found[0] for found in together]) for v in recipe.variables
    ]
    measured = tuple(tuple(float(goals[n]) for n in found) for found in together)
    return Table(
        variables=recipe.variables,
        values=np.column_stack(values),
        measured=measured,
        lent=len(lent),
        inventory=Inventory(
            path=str(target.path),
            target=recipe.target,
            rows=len(rows),
            failed=len(rows) - len(usable),
            trials=len(usable),
            configurations=len(by_name),
            replicated=sum(len(found) > 1 for found in by_name.values()),
            copies=sum(len(found) - len(set(found)) for found in measured[: len(by_name)]),
            lost=len({columns[_NAME].text(n) for n in rows} - by_name.keys()),
            left_out={},
        ),
    )


def _usable(columns: dict[str, Column], recipe: Recipe, rows: Sequence[int]) -> list[int]:
    """Those of the rows that models learn from. Raises ConfigurationError for a wrong target."""
    target, told = columns[recipe.column], columns["status"]
    goals = _numbers(target)
    usable = [n for n in rows if told.text(n) in USABLE and target.text(n)]
    if wrong := [n for n in usable if not (np.isfinite(goals[n]) and goals[n] > 0)]:
        raise target.wrong(int(target.codes[wrong[0]]), "must be a positive number")
    return usable


def _by_name(columns: dict[str, Column], rows: Sequence[int]) -> dict[str, list[int]]:
    """The rows of each configuration, by its name."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[columns[_NAME].text(row)].append(row)
    return found


def _last_attempts(columns: dict[str, Column], recipe: Recipe, stages: Sequence[str]) -> list[int]:
    """The rows of a recipe's trials of some stages, one for each place of their plans, in order."""
    attempts, index = _numbers(columns["attempt"]), _numbers(columns["index"])
    campaign = _numbers(columns["campaign"])
    for name, numbers in (("attempt", attempts), ("index", index), ("campaign", campaign)):
        if not np.isfinite(numbers).all():
            code = int(columns[name].codes[int(np.argmin(np.isfinite(numbers)))])
            raise columns[name].wrong(code, "must be a number")
    last: dict[tuple[int, float], int] = {}
    for row in range(len(index)):
        stage = columns["stage"].text(row)
        here = (columns[name].text(row) for name in ("study", "arch", "workload"))
        if stage in stages and (*here, campaign[row]) == (
            recipe.study,
            recipe.arch,
            recipe.workload,
            recipe.campaign,
        ):
            place = (stages.index(stage), float(index[row]))
            if place not in last or attempts[row] >= attempts[last[place]]:
                last[place] = row
    return [last[place] for place in sorted(last)]


def _encoded(column: Column, variable: Variable, rows: Sequence[int]) -> NDArray[np.float64]:
    """A variable's numbers (rows,). A default that is none of the choices counts as the first one,
    as in a space.
    """
    if variable.choices:
        known = {choice: n for n, choice in enumerate(variable.choices)}
        return np.array([known.get(column.text(row), 0) for row in rows], dtype=np.float64)
    numbers = _numbers(column).take(rows)
    if not np.isfinite(numbers).all():
        row = rows[int(np.argmin(np.isfinite(numbers)))]
        raise column.wrong(int(column.codes[row]), "must be a number")
    return numbers


def _numbers(column: Column) -> NDArray[np.float64]:
    """The numbers of a column (rows,), NaN for what is none."""

    def number(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            return np.nan

    by_code = np.array([number(text) for text in column.texts], dtype=np.float64)
    return np.asarray(by_code[column.codes], dtype=np.float64)
