"""What a column of text means: numbers, with or without units, or choices."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intop.config.quantity import dimension, in_unit, quantity
from intop.config.source import short
from intop.config.table_file import Column
from intop.domain.encoding import Variable
from intop.errors import ConfigurationError

SMALLEST, LARGEST = 1e-100, 1e100
"""What squares and ratios of have a place among floats."""
LOG_FROM = 100.0
"""A column whose positive numbers span more than this is on a logarithmic scale."""
MOST_CHOICES = 64
"""Each is a feature of its own, and needs rows to be learned from."""

_SWITCH = {"off": 0, "no": 0, "false": 0, "disabled": 0}
_SWITCH |= {"on": 1, "yes": 1, "true": 1, "enabled": 1}
_MISSING = {"", "na", "n/a", "nan", "null", "?"}
_ENDLESS = {f"{sign}{word}" for sign in ("", "+", "-") for word in ("inf", "infinity")}
_MISSING_CHOICE = "(missing)"


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a column's rows mean: `numbers` (rows,), which are indexes where there are `choices`.

    Numbers with a unit are in their dimension's (domain.quantity).
    """

    numbers: NDArray[np.float64]
    choices: tuple[str, ...] = ()

    def written(self, row: int) -> str:
        """What a row has, in words."""
        number = float(self.numbers[row])
        return self.choices[int(number)] if self.choices else f"{number:g}"


def meaning(column: Column) -> Meaning:
    """What a column means, by all of its texts.

    on/off, yes/no and the like are two choices; numbers with units of one dimension are numbers,
    and what has no unit among them (0, -1) has that dimension's; all else are choices. A missing
    cell is a choice of its own there. Raises ConfigurationError where it is among numbers, which
    can't be made up, for numbers that are infinite, or beyond SMALLEST and LARGEST, and for a few
    odd ones among so many numbers that they can't be choices.
    """
    lowered = [text.lower() for text in column.texts]
    if all(text in _SWITCH for text in lowered):
        by_code = np.array([_SWITCH[text] for text in lowered], dtype=np.float64)
        return Meaning(numbers=by_code[column.codes], choices=("off", "on"))
    plain = [text for text in lowered if text not in _MISSING | _ENDLESS]
    found = [quantity(text) for text in plain]
    known = [q for q in found if q is not None]
    unit = dimension(word for _, word in known)
    if not known or len(known) < len(found) or unit is None:
        if len(column.texts) > MOST_CHOICES and 2 * len(known) > len(found):
            raise _odd_one(column)
        return _choices(column)
    by_text = {t: in_unit(*q, unit) for t, q in zip(plain, known, strict=True)}
    for code, text in enumerate(lowered):
        if text in _MISSING:
            raise column.wrong(
                code,
                f"has no number ({short(column.texts[code])}) where others have: fill it in, take "
                "its row out, or leave the column out by --ignore",
            )
        _check_number(column, code, by_text.get(text, np.inf))
    by_code = np.array([by_text[text] for text in lowered], dtype=np.float64)
    return Meaning(numbers=by_code[column.codes] + 0.0)  # -0.0 is 0.0


def _check_number(column: Column, code: int, number: float) -> None:
    """Raises ConfigurationError for what no model can compute with."""
    if number and not SMALLEST <= abs(number) <= LARGEST:
        raise column.wrong(
            code,
            f"must be 0, or {SMALLEST:g} to {LARGEST:g} in size, and is "
            f"{short(column.texts[code])}: correct it, take its row out, or leave the column out "
            "by --ignore",
        )


def variable(name: str, meant: Meaning) -> tuple[Variable, NDArray[np.float64]]:
    """The variable of a column that varies, and its numbers: of choices, only those that occur.

    A number's range is that of the column. On a logarithmic scale, one value that is no positive
    number, such as a 0 that stands for "no limit", is placed a decade below the least positive
    one; a column with several of them stays linear.
    """
    numbers = meant.numbers
    if meant.choices:
        used, again = np.unique(numbers.astype(np.intp), return_inverse=True)
        choices = tuple(meant.choices[index] for index in used)
        return Variable(name=name, key=name, choices=choices), again.astype(np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    positive, others = numbers[numbers > 0], np.unique(numbers[numbers <= 0])
    if len(positive) and high / (least := float(positive.min())) > LOG_FROM and len(others) < 2:
        low = least / 10 if len(others) else least
        return Variable(name=name, key=name, low=low, high=high, scale="log"), numbers
    return Variable(name=name, key=name, low=low, high=high), numbers


def _odd_one(column: Column) -> ConfigurationError:
    """What keeps a column that is numbers for the most part from being one."""
    units: dict[str, int] = {}
    for code, text in enumerate(column.texts):
        if (found := quantity(text)) is not None:
            units.setdefault(found[1], code)
        elif text.lower() not in _MISSING | _ENDLESS:
            return column.wrong(
                code,
                f"{short(text)} is no number, which most others are: give it one, take its row "
                "out, or leave the column out by --ignore",
            )
    return column.wrong(
        max(units.values()),
        f"has units of different kinds ({', '.join(filter(None, units))}): write all in one kind, "
        "or leave the column out by --ignore",
    )


def _choices(column: Column) -> Meaning:
    texts = [text or _MISSING_CHOICE for text in column.texts]
    choices = tuple(sorted(set(texts)))
    index = {text: n for n, text in enumerate(choices)}
    by_code = np.array([index[text] for text in texts], dtype=np.float64)
    return Meaning(numbers=by_code[column.codes], choices=choices)
