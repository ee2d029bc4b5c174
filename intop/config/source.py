"""A TOML file and what is wrong in it, with lines."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)

from intop.errors import ConfigurationError

T = TypeVar("T")
Place = tuple[str | int, ...]
Fraction = Annotated[float, Field(gt=0, lt=1)]


class Model(BaseModel):
    """A table. Types and ranges are checked here, the rest by the domain's constructors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source:
    """A TOML file and the problems found in it so far."""

    def __init__(self, path: Path, text: str, data: Mapping[str, Any]) -> None:
        self.path = path
        self.data = data
        self.problems: list[str] = []
        self._lines = text.splitlines()

    @classmethod
    def read(cls, path: Path) -> "Source":
        """Raises ConfigurationError when there is no such file, or it is not TOML."""
        try:
            text = path.read_text(encoding="utf-8")
            return cls(path, text, tomllib.loads(text))
        except OSError as error:
            raise ConfigurationError([f"{path}: can't be read: {error.strerror}"]) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError([f"{path}: is not TOML: {error}"]) from error

    def problem(self, place: Place, what: str) -> None:
        """Note a problem at a place such as ("cluster", "arm", "url")."""
        line = self._line_of(place)
        where = f"{self.path}:{line}" if line else str(self.path)
        words = ".".join(str(part) for part in place)
        self.problems.append(f"{where}: {words}: {what}" if words else f"{where}: {what}")

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
            for detail in error.errors(include_url=False):
                inner = tuple(p for p in detail["loc"] if p not in _UNION_TAGS)
                got = "" if detail["type"] == "missing" else f" (got {_short(detail['input'])})"
                self.problem((*place, *inner), f"{_plain(detail['msg'])}{got}")
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


_UNION_TAGS = ("increasing", "less", "requires", "exclusive")


def _plain(message: str) -> str:
    """Pydantic's message without its prefix, starting small."""
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
