"""The meaning of a column of text: numbers, with or without units, or choices."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intop.config.quantity import dimension, foreign_unit, in_unit, quantity, rewriting
from intop.config.source import short
from intop.config.table_file import Column
from intop.domain.encoding import Variable
from intop.errors import ConfigurationError

SMALLEST, LARGEST = 1e-100, 1e100
"""Sizes whose squares and ratios a float can hold."""
LOG_FROM = 100.0
"""A column whose positive numbers span more than this is on a logarithmic scale."""
MOST_CHOICES = 64
"""Each is a feature of its own, and needs rows to be learned from."""

MOST_NUMBERS = 10
"""Different ones that a column of choices has. With more, other texts among them are mistakes."""

_OFF, _ON = "off", "on"
_OTHER_OFF = ("falsch", "nein", "faux", "non", "falso", "onwaar", "nee", "fałsz", "ложь", "нет")
_OTHER_ON = (
    *("wahr", "ja", "vrai", "oui", "verdadero", "verdadeiro", "vero", "waar", "prawda"),
    *("истина", "да", "sí"),
)
"""The words of spreadsheets and people for no and yes in other languages."""
_SWITCHES = (
    dict.fromkeys(("off", "no", "false", "disabled", *_OTHER_OFF), _OFF)
    | dict.fromkeys(("on", "yes", "true", "enabled", *_OTHER_ON), _ON),
    {"n": _OFF, "no": _OFF, "y": _ON, "yes": _ON},
    {"f": _OFF, "false": _OFF, "t": _ON, "true": _ON},
)
"""A letter stands for a word only beside its own: f and n may be anything."""
_BITS = {(0.0, ""): _OFF, (1.0, ""): _ON}
_MISSING = {"", "na", "n/a", "n.a.", "nan", "null", "nil", "none", "?", "-", "--", "\\n"}
_MISSING |= {"<na>", "#na", "#n/a", "#n/a n/a", "nat", "-nan", "missing"}
_MISSING |= {"1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"}
_MISSING |= {"(null)", "[null]", "<null>", "(none)", "<none>", "(blank)", "(empty)", "undefined"}
_MISSING |= {"n.v.", "k.a.", "n.d.", "n/d", "(leer)", "(vide)"}
"""The words of Python, R, databases and spreadsheets for a missing number."""
_FAULT = re.compile(r"#[^\W\d_][^\W_/ .]*([/ .][^\W_]+)*[!?]?")
"""A spreadsheet's error, in any language: #DIV/0!, #WERT!, #NV."""
_SUMMARIES = {"total", "sum", "mean", "average", "avg", "median", "std", "stddev", "count"}
_SUMMARIES |= {"grand total", "summe", "gesamt", "mittelwert", "somme", "moyenne"}
"""First words of a row below a table that is no row of it."""
_ENDLESS = {f"{sign}{word}" for sign in ("", "+", "-") for word in ("inf", "infinity")}
_MISSING_CHOICE = "(missing)"


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """The meaning of a column's rows."""

    numbers: NDArray[np.float64]
    """(rows,): quantities in their dimension's unit, or indexes of the choices."""
    choices: tuple[str, ...] = ()

    def written(self, row: int) -> str:
        """Return the meaning of a row in words."""
        number = float(self.numbers[row])
        return self.choices[int(number)] if self.choices else f"{number:g}"


def meaning(column: Column) -> Meaning:
    """Return the meaning of a column, by all of its texts.

    on/off, yes/no and the like are two choices, also beside 1 and 0; numbers with units of one
    dimension are numbers, and what has no unit among them (0, -1) has that dimension's; all else
    are choices. A missing cell is a choice of its own there. Raises ConfigurationError where it is
    among numbers, which can't be made up, for numbers that are infinite, or beyond SMALLEST and
    LARGEST, for what is no number where most others are, for a unit that is not
    known, and for two choices that may be one.
    """
    lowered = [text.lower() for text in column.texts]
    if states := _states([text for text in lowered if not _is_missing(text)]):
        if len(states) < len(set(lowered)):
            return _choices(
                column, [states.get(t, text) for t, text in zip(lowered, column.texts, strict=True)]
            )
        on = np.array([text == _ON for text in map(states.get, lowered)], dtype=np.float64)
        return Meaning(numbers=on[column.codes], choices=(_OFF, _ON))
    plain = {text for text in lowered if not _is_missing(text)}
    known = {text: q for text in plain if (q := _number(text)) is not None}
    unit = dimension(word for _, word in known.values())
    if not plain or known.keys() < plain or unit is None:
        if (odd := odd_one(column)) is not None:
            raise odd
        _check_distinct(column)
        return _choices(column, column.texts)
    by_text = {text: in_unit(*q, unit) for text, q in known.items()}
    for code, text in enumerate(lowered):
        if _is_missing(text):
            raise column.wrong(
                code,
                f"has no number ({short(column.texts[code])}) where others have: fill it in, take "
                "its row out, or leave the column out by --ignore",
            )
        _check_number(column, code, by_text[text])
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
    """Return the variable of a column that varies, with choices that occur, and its numbers.

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
    positive, rest = numbers[numbers > 0], np.unique(numbers[numbers <= 0])
    if len(positive) and high / (least := float(positive.min())) > LOG_FROM and len(rest) < 2:
        low = least / 10 if len(rest) else least
        return Variable(name=name, key=name, low=low, high=high, scale="log"), numbers
    return Variable(name=name, key=name, low=low, high=high), numbers


def _states(texts: Sequence[str]) -> dict[str, str]:
    """Return off or on for each text if all say so, and one does in words; empty otherwise."""
    bits = {text: _BITS[q] for text in texts if (q := quantity(text)) in _BITS}
    for words in _SWITCHES:
        if len(bits) < len(set(texts)) and all(text in words or text in bits for text in texts):
            return {text: words.get(text, bits.get(text, "")) for text in texts}
    return {}


def odd_one(column: Column, *, words: bool = False) -> ConfigurationError | None:
    """Return the error in a column that is numbers for the most part; None for choices.

    A few different numbers and words, such as 64, 128 and auto, are choices, unless `words` are odd
    as well.
    """
    texts = {n: text for n, text in enumerate(column.texts) if not _is_missing(text.lower())}
    if unit := foreign_unit(texts.values()):
        code = next(code for code, text in texts.items() if unit in text)
        return column.wrong(
            code,
            f"{short(texts[code])} has a unit that is not known ({unit}): write all in one unit, "
            "as plain numbers, or leave the column out by --ignore",
        )
    advice = {code: rewriting(text) for code, text in texts.items()}
    known = {code: q for code, text in texts.items() if (q := _number(text.lower())) is not None}
    numbers = {code for code in texts if code in known or advice[code]}
    if not numbers or 2 * len(numbers) < len(texts):
        return None
    words |= len(numbers) > MOST_NUMBERS
    for code, text in texts.items():
        if advice[code]:
            what = f"{short(text)} {advice[code]}, or leave the column out by --ignore"
            return column.wrong(code, what)
        if code not in numbers and text.lower().rstrip(":") in _SUMMARIES:
            what = f"{short(text)} among numbers: take the row out, if it sums up the others, or "
            return column.wrong(code, what + "leave the column out by --ignore")
        if code not in numbers and (words or not _is_word(text)):
            return column.wrong(
                code,
                f"{short(text)} is no number, which most others are: give it one, take its row "
                "out, or leave the column out by --ignore",
            )
    units: dict[str, int] = {}
    for code, (_, unit) in known.items():
        units.setdefault(unit, code)
    if dimension(units) is not None:
        return None
    return column.wrong(
        max(units.values()),
        f"has units of different kinds ({', '.join(filter(None, units))}): write all in one kind, "
        "or leave the column out by --ignore",
    )


def _number(text: str) -> tuple[float, str] | None:
    """Return the quantity of a text in small letters, also an infinite one."""
    return (np.inf, "") if text in _ENDLESS else quantity(text)


def _is_missing(text: str) -> bool:
    """Return whether a text in small letters says that there is none."""
    return text in _MISSING or _FAULT.fullmatch(text) is not None


def _is_word(text: str) -> bool:
    """Return whether a text among numbers is a word: auto and ipv4 are, 12O, <5 and $5 are not."""
    has_digits = any(character.isnumeric() for character in text)
    return bool(re.match(r"[^\W\d_]{2}" if has_digits else r".*[^\W\d_]", text, re.DOTALL))


def _choices(column: Column, texts: Sequence[str]) -> Meaning:
    """Return the choices of a column, by a text for each of its own."""
    texts = [text or _MISSING_CHOICE for text in texts]
    choices = tuple(sorted(set(texts)))
    index = {text: n for n, text in enumerate(choices)}
    by_code = np.array([index[text] for text in texts], dtype=np.float64)
    return Meaning(numbers=by_code[column.codes], choices=choices)


def _check_distinct(column: Column) -> None:
    """Raises ConfigurationError for two choices that differ in their writing only.

    Identifiers, of which there are many, may do so.
    """
    if len(column.texts) > MOST_CHOICES:
        return
    lowered = [text.lower() for text in column.texts]
    # Of letters and bits it is certain only beside a word that they say on or off.
    has_words = not _SWITCHES[0].keys().isdisjoint(lowered)
    states = (
        {word: state for words in _SWITCHES for word, state in words.items()} if has_words else {}
    )
    first: dict[object, int] = {}
    for code, text in enumerate(lowered):
        number = quantity(text)
        visible = "".join(c for c in text if unicodedata.category(c) != "Cf")
        plain = unicodedata.normalize("NFKC", " ".join(visible.split())).casefold()
        state = states.get(text) or (_BITS.get(number) if has_words and number else None)
        if (earlier := first.setdefault(state or number or plain, code)) != code:
            row = int(np.argmax(column.codes == earlier))
            both = f"{short(column.texts[code])} and {short(column.texts[earlier])}"
            raise column.wrong(
                code,
                f"{both} ({column.place(row)}) are one "
                "choice in two writings, or two in need of other names: write them alike, or "
                "leave the column out by --ignore",
            )
