"""Directives of nginx as parameters: how each is written, where it may stand, what it needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Interval, MinLen

from intop.domain.matching import matching
from intop.domain.nginx.permitted import PREFIX
from intop.domain.parameter import Choice, Parameter

Level = Literal["main", "events", "http", "listen", "upstream"]
"""The place where a value is set: in the whole of a block, at each address that `http` listens on,
or in each upstream of `http`."""
LEVELS: tuple[Level, ...] = ("main", "events", "http", "listen", "upstream")
CONTEXTS = (
    *("main", "events", "http", "server", "location", "if", "limit_except", "upstream"),
    "listen",
)
"""The places where nginx takes a directive. `if` is one in a location."""
Effective = Literal["reload", "restart"]
Inner = Literal["change", "keep"]
Needed = Literal["", "tls", "http2"]

Version = tuple[int, int, int]
Option = Annotated[str, matching("[a-z0-9_]*", "a word of a-z, 0-9 and _")]


DOCUMENTS = "https://nginx.org/en/docs/"


def page_of(document: str) -> str:
    """Return the address of a document such as `ngx_core_module#worker_processes`."""
    page, _, anchor = document.partition("#")
    folder = "" if page == "ngx_core_module" else "http/"
    return f"{DOCUMENTS}{folder}{page}.html#{anchor}"


def version_of(text: str) -> Version:
    """Return `1.22.1` as numbers that compare. Raises ValueError for what is none."""
    match = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})", text)
    if match is None:
        raise ValueError(f"nginx's version is three numbers such as 1.22.1, got {text!r}")
    return int(match[1]), int(match[2]), int(match[3])


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The needs of a directive, or of one value of it."""

    since: Version | None = None
    """The version of nginx."""
    kernel: Annotated[str, matching(r"([0-9]+\.[0-9]+)?", "a version such as 5.14")] = ""
    """A version of Linux."""
    build: Annotated[str, matching("(--[a-z0-9_-]+)?", "an argument of configure")] = ""
    """An argument of nginx's `configure`."""
    inside: Needed = ""
    """A protocol that the configuration has to serve."""
    on: str = ""
    """A directive that has to be on."""


NOTHING = Needs()


@dataclass(frozen=True, kw_only=True)
class Before:
    """The default of nginx before a version."""

    version: Version
    default: str


@dataclass(frozen=True, kw_only=True)
class Companion:
    """A statement that a value can't do without, in nginx before `until`."""

    value: str
    name: Annotated[str, matching("[a-z0-9_]+", "the name of a directive")]
    arguments: Annotated[tuple[str, ...], MinLen(1)]
    until: Version


@dataclass(frozen=True, kw_only=True)
class Directive:
    """One number or choice of a directive, as a parameter of the same space as the kernel's.

    Raises ValueError when the fields don't fit together.
    """

    parameter: Parameter
    contexts: Annotated[tuple[str, ...], MinLen(1)]
    """Contexts in which nginx takes it, out of CONTEXTS."""
    default: str
    """nginx's own value, or `page` or `nofile` of the host."""
    effective: Effective
    argument: Annotated[int, Interval(ge=0, le=9)] = 0
    """The place, from 1, of the argument that is its value."""
    option: Option = ""
    """The option that has its value, such as `backlog` of `backlog=511`."""
    flag: Option = ""
    """The word that stands there or doesn't."""
    fixed: tuple[Choice, ...] = ()
    """Arguments before it that belong to this use of the directive (`thread_pool default`)."""
    beside: Option = ""
    """Another option without which nginx refuses this one."""
    zone: Option = ""
    """The name of a shared memory zone whose size it is. A user's own keeps its name."""
    inserted: bool = True
    """It is written where it does not stand yet."""
    absent: str | None = None
    """The value that it has where it doesn't stand, and that has no word."""
    as_is: str | None = None
    """The value that leaves it as the files have it."""
    before: tuple[Before, ...] = ()
    """Older defaults."""
    follows: tuple[str, ...] = ()
    """The directives from which nginx computes its default."""
    inner: Inner = "change"
    """Its fate further in: sizes and times change, a user's switches are kept."""
    needs: Needs = NOTHING
    choice_needs: Mapping[str, Needs] = field(default_factory=dict)
    companion: Companion | None = None
    per_cpu: Annotated[int, Ge(0)] = 0
    """The most that is tried, as a multiple of the host's processors."""
    own_floor: bool = False
    """The user's own value is the least that is tried."""
    interacts: Mapping[str, str] = field(default_factory=dict)
    """Sysctls and other directives that act with it, and how."""

    def __post_init__(self) -> None:
        if not re.fullmatch(rf"{PREFIX}({'|'.join(LEVELS)})(\.[a-z0-9_]+){{1,2}}", self.key):
            raise ValueError(f"a key is such as {PREFIX}http.sendfile, got {self.key!r}")
        if sum(map(bool, (self.argument, self.option, self.flag, self.zone))) != 1:
            raise ValueError("a directive has one of argument, option, flag and zone")
        self._check_contexts()
        self._check_values()

    def _check_contexts(self) -> None:
        if self.level not in self.contexts:
            raise ValueError(f"nginx takes it in {', '.join(self.contexts)}, not in {self.level}")
        if strange := [c for c in self.contexts if c not in CONTEXTS]:
            raise ValueError(f"{strange[0]!r} is no context")
        if self.level == "listen" and not (self.option or self.flag):
            raise ValueError("what is set at an address is an option or a flag")

    def _check_values(self) -> None:
        if self.parameter.kind == "vector":
            raise ValueError("each number of a directive is a parameter of its own")
        if strange := [v for v in self.choice_needs if v not in self.parameter.choices]:
            raise ValueError(f"{strange[0]!r} is no choice of it")
        if self.flag and self.parameter.kind != "boolean":
            raise ValueError("a flag is on or off")
        for value in (self.default, *(older.default for older in self.before)):
            if not self._is_value(value):
                raise ValueError(f"its default {value!r} is no value of it")
        if self.per_cpu and not self.parameter.is_numeric:
            raise ValueError("per_cpu belongs to a number")

    def _is_value(self, value: str) -> bool:
        if self.parameter.is_numeric:
            return value in HOST_DEFAULTS or re.fullmatch("-?[0-9]+", value) is not None
        return value in self.parameter.choices

    @property
    def key(self) -> str:
        """The key, such as `nginx:http.proxy_buffers.size`."""
        return self.parameter.key

    @property
    def level(self) -> Level:
        """The level at which its value is set."""
        level: Level = self.key.removeprefix(PREFIX).split(".")[0]  # type: ignore[assignment]
        return level

    @property
    def name(self) -> str:
        """The directive, such as `proxy_buffers`; of an option at an address it is `listen`."""
        return "listen" if self.level == "listen" else self.key.split(".")[1]

    def default_in(self, version: Version) -> str:
        """Return nginx's own value in a version."""
        older = sorted(self.before, key=lambda older: older.version)
        return next((o.default for o in older if version < o.version), self.default)


HOST_DEFAULTS = ("page", "nofile")
"""Defaults that nginx takes from the host."""


@dataclass(frozen=True, kw_only=True)
class NginxFacts:
    """Facts of an nginx: `nginx -V`, and what it takes from its host."""

    version: Version
    build: tuple[str, ...]
    """The arguments of its `configure`."""
    kernel: str
    """`uname -r`."""
    cpus: int
    page_kib: int
    nofile: int
    """The limit of open files that its workers start with."""

    @classmethod
    def of(
        cls, shown: str, *, kernel: str, cpus: int, page_bytes: int, nofile: int
    ) -> "NginxFacts":
        """Return the facts that `nginx -V` prints. Raises ValueError for any other text."""
        version = re.search(r"^nginx version: [a-z]+/([0-9.]+)", shown, re.MULTILINE)
        build = re.search(r"^configure arguments:(.*)$", shown, re.MULTILINE)
        if version is None or build is None:
            raise ValueError(f"nginx -V printed {shown[:80]!r}")
        # Only plain words matter here; what has blanks is in quotes, and no --with of its own.
        return cls(
            version=version_of(".".join(version[1].split(".")[:3])),
            build=tuple(word for word in build[1].split() if word.startswith("--")),
            kernel=kernel,
            cpus=cpus,
            page_kib=page_bytes // 1024,
            nofile=nofile,
        )
