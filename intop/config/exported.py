"""Tables of trials that `intop export` wrote: their recipes, and the same samples."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from intop.config.quantity import quantity, rewriting
from intop.config.source import short, text_of
from intop.config.table_file import Column, TableFile
from intop.domain import spreadsheet
from intop.domain.encoding import Variable
from intop.domain.table import PARQUET, Inventory, Recipe, Table, schema_of
from intop.domain.trial import USABLE, Status, TrialRole
from intop.errors import ConfigurationError

LARGEST_COUNT = 2**53
"""The limit up to which a float has all whole numbers."""
CORRECT = "correct it, or export the trials again"

_RECIPES = TypeAdapter(tuple[Recipe, ...])
_VALUES = TypeAdapter(list[str | int])
_PLACE = ("study", "campaign", "arch", "workload", "stage", "index", "attempt", "status")
_NAME = "configuration"
_TAUGHT, _LENT = ("collect", "refine"), ("screen",)
_ROLE, _DRAWN = "role", "design"


def read_recipes(path: Path) -> tuple[Recipe, ...]:
    """Return how models are trained on a table; none where it has no schema beside it.

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
    """Return the schema beside a table. Raises one of _BROKEN."""
    return json.loads(text_of(schema_of(path)))


def _no_schema(path: Path, error: Exception) -> ConfigurationError:
    first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
    if isinstance(error, (TypeError, LookupError)):
        first = "it lacks a part of what intop export writes"
    why = str(first).partition("\n")[0]
    what = (
        f"{schema_of(path)}: is no schema of trials ({why}): export them again, or say --target to "
        f"read {path.name} as any other table"
    )
    return ConfigurationError([what])


def _listed_values(path: Path) -> dict[str, set[str]]:
    """Return all values of the columns whose schema lists them."""
    try:
        fields = _document(path)["fields"]
        enums = {f["name"]: f["constraints"]["enum"] for f in fields if "constraints" in f}
        return {
            name: set(map(str, _VALUES.validate_python(values))) for name, values in enums.items()
        }
    except _BROKEN as error:
        raise _no_schema(path, error) from error


def read_exports(path: Path, recipes: Sequence[Recipe]) -> list[Table]:
    """Return the configurations that each recipe is for, as `intop train` gets them from the store.

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
    """Return a column with the texts that its cells were made of."""
    return replace(column, texts=tuple(map(spreadsheet.text_of, column.texts)))


def _check_places(columns: Mapping[str, Column], listed: Mapping[str, set[str]]) -> None:
    """Raises ConfigurationError for a row that would be left out since a word of it is another."""
    words: dict[str, Sequence[str]] = {name: sorted(listed[name]) for name in listed}
    words |= {"status": get_args(Status), _ROLE: get_args(TrialRole)}
    for name, column in columns.items():
        if name in words:
            _check_words(column, words[name])


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
    checked = rows
    if recipe.is_lent:
        screened = _last_attempts(columns, recipe, _LENT)
        drawn = [n for n in screened if columns[_ROLE].text(n) == _DRAWN]
        lent = list(_by_name(columns, _usable(columns, recipe, drawn)).values())
        if not lent:
            what = (
                f"{target.path}: has no usable trials of screen, from which the models of "
                f"{recipe.title} learn, too: export them (--stage screen)"
            )
            raise ConfigurationError([what])
        checked = [*rows, *drawn]
    together = [*by_name.values(), *lent]
    by_row = {
        v.name: _encoded(columns[v.name], v, recipe.outside.get(v.name, ()), checked)
        for v in recipe.variables
    }
    for trials in together:
        _check_equal(columns, by_row, trials)
    values = [[by_row[v.name][trials[0]] for trials in together] for v in recipe.variables]
    measured = tuple(tuple(float(goals[n]) for n in trials) for trials in together)
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
            replicated=sum(len(rows) > 1 for rows in by_name.values()),
            copies=sum(len(goals) - len(set(goals)) for goals in measured[: len(by_name)]),
            lost=len({columns[_NAME].text(n) for n in rows} - by_name.keys()),
            left_out={},
        ),
    )


def _usable(columns: dict[str, Column], recipe: Recipe, rows: Sequence[int]) -> list[int]:
    """Return the rows that models learn from. Raises ConfigurationError for a wrong target."""
    target, status = columns[recipe.column], columns["status"]
    goals = _numbers(target)
    usable = [n for n in rows if status.text(n) in USABLE]
    if wrong := [n for n in usable if not (np.isfinite(goals[n]) and goals[n] > 0)]:
        what = f"must be a positive number{_instead(target.text(wrong[0]))}"
        raise target.wrong_in(wrong[0], what)
    return usable


def _by_name(columns: dict[str, Column], rows: Sequence[int]) -> dict[str, list[int]]:
    """Return the rows of each configuration, by its name."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_name[columns[_NAME].text(row)].append(row)
    return by_name


def _last_attempts(columns: dict[str, Column], recipe: Recipe, stages: Sequence[str]) -> list[int]:
    """Return the last attempt at each place in the plans of some stages of a recipe, in order."""
    attempts, index, campaign = (_counts(columns[n]) for n in ("attempt", "index", "campaign"))
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


def _numbers(column: Column) -> NDArray[np.float64]:
    """Return the numbers of a column (rows,), NaN for any other cell."""
    quantities = map(quantity, column.texts)
    by_code = [np.nan if q is None or q[1] else q[0] for q in quantities]
    return np.asarray(np.array(by_code, dtype=np.float64)[column.codes], dtype=np.float64)


def _counts(column: Column) -> NDArray[np.float64]:
    """Return the counts of a column (rows,). Raises ConfigurationError for any other cell."""
    values = _numbers(column)
    for row in np.flatnonzero(~(np.isfinite(values) & (values >= 0))).tolist():
        raise column.wrong_in(row, f"must be a number from 0 on{_instead(column.text(row))}")
    for row in np.flatnonzero((values % 1 != 0) | (values > LARGEST_COUNT)).tolist():
        raise column.wrong_in(row, f"must be a whole number{_instead(column.text(row))}")
    return values


def _check_words(column: Column, words: Collection[str]) -> None:
    """Raises ConfigurationError for a cell that has none of these."""
    for code, text in enumerate(column.texts):
        if text not in words and _same_number(text, words) is None:
            raise column.wrong(code, f"must be {_any_of(words)}{_instead(text)}")


def _encoded(
    column: Column, variable: Variable, outside: Collection[str], rows: Iterable[int]
) -> dict[int, float]:
    """Return a variable's number in each of these rows.

    `outside` are values that its trials have and its range or list of choices doesn't, such as a
    default. Such a choice counts as the first one, as in a space. Raises ConfigurationError for a
    cell that has another value.
    """
    by_row: dict[int, float] = {}
    by_code: dict[int, float] = {}
    for row in rows:
        code = int(column.codes[row])
        if code not in by_code:
            number = _choice if variable.choices else _number
            by_code[code] = number(column, variable, outside, row)
        by_row[row] = by_code[code]
    return by_row


def _check_equal(
    columns: Mapping[str, Column], values: Mapping[str, Mapping[int, float]], rows: Sequence[int]
) -> None:
    """Raises ConfigurationError for rows of one configuration whose values differ."""
    first = rows[0]
    for name, by_row in values.items():
        for row in rows[1:]:
            if by_row[row] != by_row[first]:
                column = columns[name]
                both = f"{short(column.text(row))} here and {short(column.text(first))} there"
                raise column.wrong_in(
                    row,
                    f"is of the same configuration as {column.place(first)}: {both}: {CORRECT}",
                )


def _choice(column: Column, variable: Variable, outside: Collection[str], row: int) -> float:
    text = column.text(row)
    if text in variable.choices:
        return float(variable.choices.index(text))
    if text in outside:
        return 0.0
    if (choice := _same_number(text, variable.choices)) is not None:
        return float(variable.choices.index(choice))
    raise column.wrong_in(row, f"must be {_any_of(variable.choices)}{_instead(text)}")


def _number(column: Column, variable: Variable, outside: Collection[str], row: int) -> float:
    text = column.text(row)
    number, unit = quantity(text) or (0.0, "none")
    if unit:
        raise column.wrong_in(row, f"must be a number{_instead(text)}")
    if number % 1 != 0:
        raise column.wrong_in(row, f"must be a whole number{_instead(text)}")
    if variable.has(number) or number in map(float, outside):
        return number
    bounds = f"{variable.low:.15g} to {variable.high:.15g}"
    raise column.wrong_in(row, f"must be from {bounds}{_instead(text)}")


def _same_number(text: str, words: Iterable[str]) -> str | None:
    """Return the word that is the same number: a notebook may write 1 as 1.0."""
    number = quantity(text)
    return None if number is None else next((w for w in words if quantity(w) == number), None)


def _any_of(words: Collection[str]) -> str:
    *first_words, last = words
    return f"{', '.join(first_words)} or {last}" if first_words else last


def _instead(text: str) -> str:
    """Return the wrong content of a cell, and what to do."""
    advice = rewriting(text)
    return f", and is {short(text) if text else 'empty'}{advice and f', which {advice}'}: {CORRECT}"
