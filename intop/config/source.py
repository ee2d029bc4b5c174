"""A TOML file and what is wrong in it, with lines."""

import math
import re
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.types import Strict
from pydantic_core import ErrorDetails

from intop.errors import ConfigurationError
from intop.masking import masked, masked_value

T = TypeVar("T")
Place = tuple[str | int, ...]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Listed = Annotated[tuple[T, ...], Strict(strict=False)]
"""A tuple from a list of TOML. The types of its items stay strict."""

LARGEST_FILE, LONGEST_LINE = 4_000_000, 50_000
"""In characters. The catalogue has some 100,000."""
DEEPEST = 20
"""Tables in tables; ours have five."""
UTF_16 = (BOM_UTF16_LE, BOM_UTF16_BE)
"""What a file of UTF-16 begins with."""
MOST_PROBLEMS = 50
"""Nobody reads more of one file."""


def _local_path(text: str) -> str:
    """Raises ValueError for a home folder that nobody has, and for several lines."""
    if "\n" in text:
        raise ValueError("a path has one line")
    try:
        Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"there is no user of that home folder: {text}") from error
    return text


LocalPath = Annotated[str, AfterValidator(_local_path)]


def _whole(value: object) -> object:
    """Raises ValueError for all but a whole number. For Python, true and 1.0 are 1, too."""
    if type(value) is not int:
        raise ValueError("must be 1")
    return value


FirstFormat = Annotated[Literal[1], BeforeValidator(_whole)]
"""The number of a file's format; there is no other yet."""


class Model(BaseModel):
    """A table. Types and ranges are checked here, the rest by the domain's constructors.

    No type is converted, but for a whole number in place of a fraction: `true` is no number here,
    and "2000" neither.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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
        line = self._line_of(place)
        where = f"{self.path}:{line}" if line else str(self.path)
        words = ".".join(str(part) for part in place)
        self.problems.append(f"{where}: {words}: {what}" if words else f"{where}: {what}")

    def check_format(self) -> None:
        """Note a problem unless the file says that it has the first format."""
        value = self.data.get("schema")
        if type(value) is not int or value != 1:
            self.problem(("schema",), f"must be 1, got {short(value)}")

    def tables(self, name: str) -> Sequence[Any]:
        """The entries of an array of tables."""
        entries = self.data.get(name, [])
        if isinstance(entries, list):
            return entries
        self.problem((name,), f"must be a list of tables, each begun by [[{name}]]")
        return []

    def check(self, make: Callable[[], T], place: Place) -> T | None:
        """What `make` makes, or None when it finds problems, which are noted."""
        try:
            return make()
        except ConfigurationError as error:
            self.problems += error.problems
        except ValidationError as error:
            details = error.errors(include_url=False)
            for detail in details:
                if _follows(detail, details):
                    continue
                inner = tuple(p for p in detail["loc"] if p not in _UNION_TAGS)
                name = next((part for part in reversed(inner) if isinstance(part, str)), "")
                shown = masked_value(detail["input"], name)
                got = "" if detail["type"] == "missing" else f" (got {short(shown)})"
                self.problem((*place, *inner), f"{plain(detail['msg'])}{got}")
        except ValueError as error:
            self.problem(place, str(error))
        return None

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


def _control(text: str) -> str:
    """Which control character is in it, "" when there is none. Line ends and tabs are none."""
    found = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", text)
    return f"with the control character U+{ord(found[0]):04X}" if found else ""


def _follows(detail: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Whether a list or table is too short only since something in it is wrong."""
    place = detail["loc"]
    inside = (d["loc"] for d in details if len(d["loc"]) > len(place))
    return detail["type"] == "too_short" and any(loc[: len(place)] == place for loc in inside)


_UNION_TAGS = ("increasing", "less", "requires", "exclusive", "capacity", "[key]")
"""Parts of a place that are no names in a file: tags of unions, and what is wrong with a key."""


def plain(message: str) -> str:
    """Pydantic's message without its prefix, starting small, in words of TOML."""
    message = message.removeprefix("Value error, ").replace(" after validation, not 0", "")
    message = re.sub(r" or instance of \w+", "", message)
    for word, name in (("tuple", "list"), ("dictionary", "table")):
        message = re.sub(rf"\b{word}\b", name, message, flags=re.IGNORECASE)
    return message[:1].lower() + message[1:]


def short(value: object) -> str:
    """A value as Python writes it, and not more of it than fits into a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
