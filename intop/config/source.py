"""A TOML file and what is wrong in it, with lines."""

import json
import math
import re
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Predicate
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from intop.errors import ConfigurationError
from intop.masking import masked, masked_value

T = TypeVar("T")
Place = tuple[str | int, ...]
Table = Mapping[str, Any]
NOT_MOVED: Mapping[Place, Place] = {}

LARGEST_FILE, LONGEST_LINE = 4_000_000, 50_000
"""Characters. The catalogue has some 100,000."""
DEEPEST = 20
"""Tables in tables; ours have five."""
UTF_16 = (BOM_UTF16_LE, BOM_UTF16_BE)
"""The beginnings of a file of UTF-16."""
MOST_PROBLEMS = 50
"""Nobody reads more of one file."""


def is_local_path(text: str) -> bool:
    """Return True for a path. Raises ValueError for a home folder of nobody, and several lines."""
    if "\n" in text:
        raise ValueError("a path has one line")
    try:
        Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"there is no user of that home folder: {text}") from error
    return True


LocalPath = Annotated[str, Predicate(is_local_path)]


class _Adapters(dict[Any, TypeAdapter[Any]]):
    """Adapters by type, kept since making one takes longer than converting a file with it."""

    def __missing__(self, kind: Any) -> TypeAdapter[Any]:
        return self.setdefault(kind, TypeAdapter(kind))


_ADAPTERS = _Adapters()


def converted(kind: type[T], value: object) -> T:
    """Return a value of TOML as a dataclass or another type, whose types and bounds it has.

    No type is converted, but for a whole number in place of a fraction: `true` is no number here,
    and "2000" neither. Raises ValidationError, also for names that a dataclass doesn't have.
    """
    # From JSON, since pydantic then takes tables for dataclasses and lists for tuples, and is
    # strict all the same.
    result: T = _ADAPTERS[kind].validate_json(json.dumps(value), strict=True, extra="forbid")
    return result


class Source:
    """A TOML file and the problems found in it so far."""

    def __init__(self, path: Path, text: str, data: Mapping[str, Any]) -> None:
        self.path = path
        self.data = data
        self.problems: list[str] = []
        self._lines = text.split("\n")
        self._left_out = False

    @classmethod
    def read(cls, path: Path) -> "Source":
        """Raises ConfigurationError when there is no such file, it is not TOML, or has what no file
        of ours needs: control characters, endless numbers, a hundred tables in each other.
        """
        try:
            text = _text(path)
            source = cls(path, text, tomllib.loads(text))
        except OSError as error:
            raise ConfigurationError([f"{path}: can't be read: {error.strerror}"]) from error
        except RecursionError as error:
            raise ConfigurationError([f"{path}: is nested too deeply"]) from error
        except ValueError as error:  # also for a number that has too many digits
            raise ConfigurationError([f"{path}: is not TOML: {error}"]) from error
        for place, what in _oddities(source.data):
            source.problem(place, what)
        if source.problems:
            raise ConfigurationError(source.problems)
        return source

    def problem(self, place: Place, what: str) -> None:
        """Note a problem at a place such as ("cluster", "arm", "url"), without any secrets."""
        what = masked(what)
        if len(self.problems) >= MOST_PROBLEMS:
            if not self._left_out:
                self.problems.append(f"{self.path}: and more, which are not told")
                self._left_out = True
            return
        number = self._line_of(place)
        where = f"{self.path}:{number}" if number else str(self.path)
        words = ".".join(str(part) for part in place)
        line = f"{where}: {words}: {what}" if words else f"{where}: {what}"
        if line not in self.problems:
            self.problems.append(line)

    def check_format(self, *tables: str) -> None:
        """Note a problem for another format than the first, and for tables other than these."""
        value = self.data.get("schema")
        if type(value) is not int or value != 1:
            self.problem(("schema",), f"must be 1, got {short(value)}")
        for unknown in sorted(self.data.keys() - {"schema", *tables}):
            self.problem((unknown,), "is not a known table")

    def tables(self, name: str) -> Sequence[Any]:
        """The entries of an array of tables."""
        entries = self.data.get(name, [])
        if isinstance(entries, list):
            return entries
        self.problem((name,), f"must be a list of tables, each begun by [[{name}]]")
        return []

    def convert(
        self, kind: type[T], value: object, place: Place, moved: Mapping[Place, Place] = NOT_MOVED
    ) -> T | None:
        """Return `converted`, or None after noting the problems of a value at a place.

        `moved` has the places in the file of what stands elsewhere in the dataclass.
        """
        return self.check(lambda: converted(kind, value), place, moved)

    def refuse(self, table: Table, names: Iterable[str], place: Place) -> None:
        """Note a problem for each of these fields, which a dataclass has and a file must not."""
        for name in names:
            if name in table:
                got = short(masked_value(table[name], name))
                self.problem((*place, name), f"{NOT_KNOWN} (got {got})")

    def check(
        self, make: Callable[[], T], place: Place, moved: Mapping[Place, Place] = NOT_MOVED
    ) -> T | None:
        """Return the result of `make`, or None after noting the problems that it raises."""
        try:
            return make()
        except ConfigurationError as error:
            self.problems += error.problems
        except ValidationError as error:
            details = error.errors(include_url=False)
            for detail in details:
                if not _follows(detail, details):
                    self._note(detail, place, moved)
        except ValueError as error:
            self.problem(place, str(error))
        return None

    def _note(self, detail: ErrorDetails, place: Place, moved: Mapping[Place, Place]) -> None:
        inner = tuple(part for part in detail["loc"] if part not in _TAGS)
        for part, own in moved.items():
            if inner[: len(part)] == part:
                inner = (*own, *inner[len(part) :])
                break
        name = next((part for part in reversed(inner) if isinstance(part, str)), "")
        shown = masked_value(detail["input"], name)
        # What is wrong with a whole table is not a matter of one value.
        has_value = detail["type"] != "missing" and not isinstance(shown, dict)
        got = f" (got {short(shown)})" if has_value else ""
        self.problem((*place, *inner), f"{plain(detail['msg'])}{got}")

    def _line_of(self, place: Place) -> int | None:
        """The line of a place: its table's header, and below it the key if that is found."""
        best: int | None = None
        start, end = 0, len(self._lines)
        names = [p for p in place if isinstance(p, str)]
        indexes = [p for p in place if isinstance(p, int)]
        for depth in range(len(names), 0, -1):
            header = re.escape(".".join(names[:depth]))
            pattern = re.compile(rf"\s*\[\[?\s*{header}\s*\]")
            hits = [n for n, line in enumerate(self._lines) if pattern.match(line)]
            if hits:
                nth = indexes[0] if indexes and indexes[0] < len(hits) else 0
                start, best = hits[nth] + 1, hits[nth] + 1
                names = names[depth:]
                break
        for number in range(start, end):
            line = self._lines[number]
            if best is not None and line.lstrip().startswith("["):
                break
            if names and re.match(rf'\s*"?{re.escape(names[0])}"?\s*[=.]', line):
                return number + 1
        return best


def check_kind(path: Path) -> None:
    """Raises OSError for what can be opened and never ends: a pipe, a device."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(0, "Is not a file")


def text_of(path: Path) -> str:
    """The text of a file, without the byte-order mark that editors of Windows put before it.

    Raises OSError for what is no file, ValueError for one that is too large or not UTF-8.
    """
    check_kind(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(LARGEST_FILE + 1)
    except UnicodeDecodeError as error:
        if error.object.startswith(UTF_16):
            raise ValueError("it is UTF-16: save it as UTF-8") from error
        raise ValueError(f"line {_bad_line(path)} is not UTF-8: save it as UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"line {line} has a NUL character: save it as UTF-8, if it is UTF-16")
    if len(text) > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE} characters")
    return text


def _bad_line(path: Path) -> int:
    """The first line that is not UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0


def _text(path: Path) -> str:
    """Raises OSError and ValueError as `text_of`, and ValueError for a line that is too long."""
    text = text_of(path)
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > LONGEST_LINE:
            raise ValueError(f"line {number} has more than {LONGEST_LINE} characters")
    return text


def _oddities(data: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Places of what can be written in TOML and makes no sense in any of our files."""
    todo: list[tuple[Place, Any]] = [((), data)]
    while todo:
        place, value = todo.pop()
        if len(place) > DEEPEST:
            yield place[:3], "is nested too deeply"
        elif isinstance(value, dict):
            yield from ((place, f"has a name {p}") for key in value if (p := _control(key)))
            todo += [((*place, key), value[key]) for key in reversed(value)]
        elif isinstance(value, list):
            todo += [((*place, n), item) for n, item in reversed([*enumerate(value)])]
        elif isinstance(value, str) and (problem := _control(value)):
            yield place, f"has a text {problem}"
        elif isinstance(value, float) and not math.isfinite(value):
            yield place, f"must be a number, not {value}"
        elif isinstance(value, int) and value.bit_length() > 63:
            yield place, "is larger than 64 bits"
        elif isinstance(value, (date, datetime, time)):
            yield place, "is a date or a time: write it in quotes"


def _control(text: str) -> str:
    """Return which control character is in it, or "". Line ends and tabs are none."""
    match = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", text)
    return f"with the control character U+{ord(match[0]):04X}" if match else ""


def _follows(detail: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Return whether a list or table is too short only since a part of it is wrong."""
    place = detail["loc"]
    inside = (d["loc"] for d in details if len(d["loc"]) > len(place))
    return detail["type"] == "too_short" and any(loc[: len(place)] == place for loc in inside)


_TAGS = ("increasing", "less", "requires", "exclusive", "capacity", "[key]")
"""Parts of pydantic's places that are no names in a file: tags of unions, and of a wrong name."""
NOT_KNOWN = "extra inputs are not permitted"
_WORDS = {
    r" after validation, not 0": "",
    r"a dictionary or an instance of \w+|an object": "a valid table",
    r"\b(tuple|array)\b": "list",
    r"\bdictionary\b": "table",
    r"unexpected keyword argument": NOT_KNOWN,
}
"""Words of pydantic (patterns), and what they are in TOML."""


def plain(message: str) -> str:
    """Return pydantic's message without its prefix, starting small, in words of TOML."""
    message = message.removeprefix("Value error, ")
    for pattern, words in _WORDS.items():
        message = re.sub(pattern, words, message, flags=re.IGNORECASE)
    return message[:1].lower() + message[1:]


def short(value: object) -> str:
    """A value as Python writes it, and not more of it than fits into a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
