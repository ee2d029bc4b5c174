"""A foreign table: a file of configurations, and of measurements of them."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intop.config.columns import (
    LARGEST,
    MOST_CHOICES,
    SMALLEST,
    Meaning,
    meaning,
    odd_one,
    variable,
)
from intop.config.quantity import quantity, rewriting
from intop.config.source import short
from intop.config.table_file import Column, TableFile
from intop.domain.encoding import Matrix, Variable
from intop.domain.table import Inventory, Table
from intop.errors import ConfigurationError

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The parts of a file's columns, each by its name or its number from 1.

    All columns without a part are inputs.
    """

    target: str
    group: tuple[str, ...] = ()
    """Rows that are equal in all of these must be trials of one configuration."""
    ignored: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Targets of failed trials."""


def read_table(path: Path, roles: Roles) -> Table:
    """Return the configurations in a file, with the targets of their trials.

    Rows of equal inputs are trials of one configuration, whatever their group. Raises
    ConfigurationError, with file, line and column, for what models can't learn from, which includes
    a target that isn't positive (they learn its logarithm) and one that never varies.
    """
    file = TableFile(path)
    parts = _parts(file, roles)
    columns = file.columns(sorted({parts.target, *parts.group, *parts.inputs}))
    target = columns[parts.target]
    if len(target.codes) == 1:
        raise ConfigurationError([f"{path}: has one row: models need several configurations"])
    goals = _goals(target, roles.failed)
    left_out: dict[str, str] = {}
    taught = np.flatnonzero(np.isfinite(goals))
    meanings = _meanings([columns[index] for index in parts.inputs], taught, left_out)
    same = _first_equal(meanings.values(), len(goals))
    _check_groups([columns[index] for index in parts.group], meanings, same)
    trials: dict[int, list[float]] = {}
    for row in taught:
        trials.setdefault(int(same[row]), []).append(float(goals[row]))
    variables, values = _variables(meanings, np.array(list(trials)), left_out)
    if not variables:
        reasons = "; ".join(f"{short(name)}: {why}" for name, why in [*left_out.items()][:5])
        raise ConfigurationError(
            [f"{path}: no input varies in a way that models can use ({reasons or 'it has none'})"]
        )
    counts = [len(targets) for targets in trials.values()]
    return Table(
        variables=variables,
        values=values,
        measured=tuple(map(tuple, trials.values())),
        inventory=Inventory(
            path=str(path),
            target=target.name,
            rows=len(goals),
            failed=len(goals) - sum(counts),
            trials=sum(counts),
            configurations=len(counts),
            replicated=sum(count > 1 for count in counts),
            copies=sum(len(targets) - len(set(targets)) for targets in trials.values()),
            lost=len(set(same.tolist()) - trials.keys()),
            left_out=left_out,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """The columns of each part, by index."""

    target: int
    group: tuple[int, ...]
    inputs: tuple[int, ...]


def _parts(file: TableFile, roles: Roles) -> _Parts:
    """Raises ConfigurationError for columns that aren't there, and for two parts of one."""
    target = file.index(roles.target, "--target")
    group = tuple(dict.fromkeys(file.index(word, "--group") for word in roles.group))
    if target in group:
        raise ConfigurationError([f"--target and --group both name {short(file.names[target])}"])
    taken = {target, *group}
    for word in roles.ignored:
        indexes = file.indexes(word, "--ignore")
        if indexes == [target]:
            raise ConfigurationError([f"--target and --ignore both name {short(word)}"])
        taken.update(indexes)  # of several columns with the target's name, the others
    inputs = tuple(n for n in range(len(file.names)) if n not in taken)
    return _Parts(target=target, group=group, inputs=inputs)


def _goals(target: Column, failed: Sequence[str]) -> Vector:
    """Return the target of each row (rows,), NaN where it failed. Raises ConfigurationError."""
    by_code = np.array(
        [
            np.nan if any(_equal(text, word) for word in failed) else _goal(target, code)
            for code, text in enumerate(target.texts)
        ]
    )
    goals = by_code[target.codes]
    taught = goals[np.isfinite(goals)]
    where = f"{target.path}: the target {short(target.name)}"
    if not len(taught):
        raise ConfigurationError([f"{where} says that all {len(goals)} rows have failed"])
    if np.ptp(taught) == 0:
        rest = " that did not fail" if len(taught) < len(goals) else ""
        raise ConfigurationError(
            [f"{where} is {taught[0]:g} in all rows{rest}: there is nothing to predict"]
        )
    return goals


def _goal(target: Column, code: int) -> float:
    text = target.texts[code]
    number, unit = quantity(text) or (np.inf, "")
    failed = f"say --failed {shlex.quote(text)} if failed trials have that, else"
    if unit or np.isinf(number):
        what = short(text) if text else "empty"
        if advice := rewriting(text):
            what += f", which {advice}"
        raise target.wrong(
            code,
            f"the target must be a plain number, and is {what}: {failed} correct it, or take its "
            "row out",
        )
    if number <= 0:
        raise target.wrong(
            code,
            f"the target must be positive, since models learn its logarithm, and is {text}: "
            f"{failed} shift or turn the whole column",
        )
    if not SMALLEST <= number <= LARGEST:
        raise target.wrong(
            code,
            f"the target must be from {SMALLEST:g} to {LARGEST:g}, and is {short(text)}: use "
            "another unit",
        )
    return number


def _equal(text: str, word: str) -> bool:
    """Return whether a cell has what a user wrote, as text or number: 1e6 is 1000000.0."""
    word = word.strip()
    number = quantity(text)
    return text.casefold() == word.casefold() or (number is not None and number == quantity(word))


def _meanings(
    columns: Sequence[Column], taught: Rows, left_out: dict[str, str]
) -> dict[str, Meaning]:
    """Return the meaning of columns that may be variables, by name; `left_out` has the others.

    A column that counts the rows is left out where something else varies among the `taught` rows.
    Raises ConfigurationError for numbers with another text among them, which are no identifier.
    """
    meanings: dict[str, Meaning] = {}
    for column in columns:
        if len(column.texts) == 1:
            left_out[column.name] = "the same in all rows"
            continue
        meant = meaning(column)
        count, rows = len(meant.choices), len(column.codes)
        if count > MOST_CHOICES or (count > 2 and 10 * count > 9 * rows):
            if (odd := odd_one(column, words=True)) is not None:
                raise odd
            left_out[column.name] = f"{count} different texts in {rows} rows, as an identifier has"
        else:
            meanings[column.name] = meant
    counters = [name for name, meant in meanings.items() if _counts(meant)]
    inputs = (meant.numbers[taught] for name, meant in meanings.items() if name not in counters)
    if any(np.ptp(numbers) for numbers in inputs):
        for name in counters:
            del meanings[name]
            left_out[name] = "counts the rows"
    return meanings


def _counts(meant: Meaning) -> bool:
    """Return whether it is the rows' number, as some programs write it into the first column."""
    rows = len(meant.numbers)
    steps = meant.numbers[0] + np.arange(rows)
    return not meant.choices and rows > 2 and bool(np.array_equal(meant.numbers, steps))


def _first_equal(meanings: Iterable[Meaning], rows: int) -> Rows:
    """Return for each row (rows,) the first row with the same inputs."""
    numbers = np.column_stack([np.empty((rows, 0)), *(m.numbers for m in meanings)])
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(row.tobytes(), n) for n, row in enumerate(numbers)])


def _check_groups(groups: Sequence[Column], meanings: Mapping[str, Meaning], same: Rows) -> None:
    """Raises ConfigurationError for two rows of one group whose inputs differ."""
    if not groups:
        return
    first: dict[tuple[int, ...], int] = {}
    for row, codes in enumerate(zip(*(g.codes.tolist() for g in groups), strict=True)):
        before = first.setdefault(codes, row)
        if same[row] != same[before]:
            raise _differing(groups, meanings, row, before)


def _differing(
    groups: Sequence[Column], meanings: Mapping[str, Meaning], row: int, before: int
) -> ConfigurationError:
    where = ", ".join(f"{short(g.name)} {short(g.texts[g.codes[row]])}" for g in groups)
    name = next(name for name, m in meanings.items() if m.numbers[row] != m.numbers[before])
    here, there = (meanings[name].written(n) for n in (row, before))
    first = groups[0]
    what = (
        f"{first.where(row)}: is of the same group as {first.place(before)} ({where}), "
        f"and {short(name)} is {here} here and {there} there: leave such columns out by --ignore, "
        "or name a further --group"
    )
    return ConfigurationError([what])


def _variables(
    meanings: Mapping[str, Meaning], kept: Rows, left_out: dict[str, str]
) -> tuple[tuple[Variable, ...], Matrix]:
    """Return the variables that vary over the kept rows, and their values (kept, variables)."""
    variables: list[Variable] = []
    columns: list[Vector] = []
    for name, meant in meanings.items():
        rest = Meaning(numbers=meant.numbers[kept], choices=meant.choices)
        if np.ptp(rest.numbers) == 0:
            left_out[name] = "the same in all rows that did not fail"
            continue
        varying, numbers = variable(name, rest)
        variables.append(varying)
        columns.append(numbers)
    return tuple(variables), np.column_stack([np.empty((len(kept), 0)), *columns])
