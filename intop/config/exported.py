"""Tables of trials that `intop export` wrote: what they were trained by, and the same samples."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from pydantic import TypeAdapter, ValidationError

from intop.config.exported_cells import check_equal, check_words, counts, encoded, instead, numbers
from intop.config.source import text_of
from intop.config.table_file import Column, TableFile
from intop.domain import spreadsheet
from intop.domain.table import PARQUET, Inventory, Recipe, Table, schema_of
from intop.domain.trial import USABLE, Status, TrialRole
from intop.errors import ConfigurationError

_RECIPES = TypeAdapter(tuple[Recipe, ...])
_VALUES = TypeAdapter(list[str | int])
_PLACE = ("study", "campaign", "arch", "workload", "stage", "index", "attempt", "status")
_NAME = "configuration"
_TAUGHT, _LENT = ("collect", "refine"), ("screen",)
_ROLE, _DRAWN = "role", "design"


def read_recipes(path: Path) -> tuple[Recipe, ...]:
    """How models are trained on a table; none where it has no schema beside it.

    Raises ConfigurationError for one that is not as `intop export` wrote it.
    """
    if not schema_of(path).exists():
        return ()
    try:
        recipes = _document(path)["intop"]["recipes"]
        return _RECIPES.validate_json(json.dumps(recipes), strict=True)
    except _BROKEN as error:
        raise _no_schema(path, error) from error


_BROKEN = (OSError, ValueError, TypeError, LookupError, RecursionError)


def _document(path: Path) -> Any:
    """The schema beside a table. Raises one of _BROKEN."""
    return json.loads(text_of(schema_of(path)))


def _no_schema(path: Path, error: Exception) -> ConfigurationError:
    first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
    if isinstance(error, (TypeError, LookupError)):
        first = "it lacks a part of what intop export writes"
    why = str(first).partition("\n")[0]
    told = (
        f"{schema_of(path)}: is no schema of trials ({why}): export them again, or say --target to "
        f"read {path.name} as any other table"
    )
    return ConfigurationError([told])


def _listed_values(path: Path) -> dict[str, set[str]]:
    """All values of those columns whose schema lists them; none in an older export."""
    try:
        fields = _document(path)["fields"]
        enums = {f["name"]: f["constraints"]["enum"] for f in fields if "constraints" in f}
        return {
            name: set(map(str, _VALUES.validate_python(values))) for name, values in enums.items()
        }
    except _BROKEN as error:
        raise _no_schema(path, error) from error


def read_exports(path: Path, recipes: Sequence[Recipe]) -> list[Table]:
    """The configurations that each recipe is for, as `intop train` gets them from the store.

    Of each place in a plan the last attempt counts, if it is usable. Trials of one configuration
    are put together by its name. Raises ConfigurationError, with file, line and column, for a
    table that lacks some of it, and for a cell that no export has.
    """
    file = TableFile(path)
    listed = {} if not recipes else _listed_values(path)
    names = dict.fromkeys((*_PLACE, _NAME))
    for recipe in recipes:
        names |= dict.fromkeys((recipe.column, *(v.name for v in recipe.variables)))
        names |= {_ROLE: None} if recipe.is_lent else {}
    is_csv = path.suffix.lower() != PARQUET
    indexes = {name: file.named(spreadsheet.cell(name) if is_csv else name) for name in names}
    columns = file.columns(list(indexes.values()))
    by_name = {
        name: _as_it_was(columns[index]) if is_csv else columns[index]
        for name, index in indexes.items()
    }
    _check_places(by_name, listed)
    return [_table(by_name, recipe) for recipe in recipes]


def _as_it_was(column: Column) -> Column:
    """A column with the texts that its cells were made of."""
    return replace(column, texts=tuple(map(spreadsheet.text_of, column.texts)))


def _check_places(columns: Mapping[str, Column], listed: Mapping[str, set[str]]) -> None:
    """Raises ConfigurationError for a row that would be left out since a word of it is another."""
    words: dict[str, Sequence[str]] = {name: sorted(listed[name]) for name in listed}
    words |= {"status": get_args(Status), _ROLE: get_args(TrialRole)}
    for name, column in columns.items():
        if name in words:
            check_words(column, words[name])


def _table(columns: dict[str, Column], recipe: Recipe) -> Table:
    target, goals = columns[recipe.column], numbers(columns[recipe.column])
    rows = _last_attempts(columns, recipe, _TAUGHT)
    usable = _usable(columns, recipe, rows)
    by_name = _by_name(columns, usable)
    if not by_name:
        raise ConfigurationError(
            [f"{target.path}: has no usable trials of collect and refine for {recipe.title}"]
        )
    lent: list[list[int]] = []
    checked = rows
    if recipe.is_lent:
        screened = _last_attempts(columns, recipe, _LENT)
        drawn = [n for n in screened if columns[_ROLE].text(n) == _DRAWN]
        lent = list(_by_name(columns, _usable(columns, recipe, drawn)).values())
        if not lent:
            told = (
                f"{target.path}: has no usable trials of screen, from which the models of "
                f"{recipe.title} learn, too: export them (--stage screen)"
            )
            raise ConfigurationError([told])
        checked = [*rows, *drawn]
    together = [*by_name.values(), *lent]
    by_row = {
        v.name: encoded(columns[v.name], v, recipe.outside.get(v.name, ()), checked)
        for v in recipe.variables
    }
    for trials in together:
        check_equal(columns, by_row, trials)
    values = [[by_row[v.name][trials[0]] for trials in together] for v in recipe.variables]
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
    goals = numbers(target)
    usable = [n for n in rows if told.text(n) in USABLE]
    if wrong := [n for n in usable if not (np.isfinite(goals[n]) and goals[n] > 0)]:
        what = f"must be a positive number{instead(target.text(wrong[0]))}"
        raise target.wrong_in(wrong[0], what)
    return usable


def _by_name(columns: dict[str, Column], rows: Sequence[int]) -> dict[str, list[int]]:
    """The rows of each configuration, by its name."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[columns[_NAME].text(row)].append(row)
    return found


def _last_attempts(columns: dict[str, Column], recipe: Recipe, stages: Sequence[str]) -> list[int]:
    """The rows of a recipe's trials of some stages, one for each place of their plans, in order."""
    attempts, index, campaign = (counts(columns[n]) for n in ("attempt", "index", "campaign"))
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
            if (before := last.get(place)) is not None and attempts[before] == attempts[row]:
                where = columns["attempt"].place(before)
                raise columns["attempt"].wrong_in(
                    row, f"is the same attempt as {where}: take one out"
                )
            if before is None or attempts[row] > attempts[before]:
                last[place] = row
    return [last[place] for place in sorted(last)]
