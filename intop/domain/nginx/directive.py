"""Directives of nginx as parameters: how each is written, where it may stand, what it needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from intop.domain.nginx.permitted import PREFIX
from intop.domain.parameter import Parameter

Level = Literal["main", "events", "http", "listen", "upstream"]
"""Where a value is set: in the whole of a block, at each address that `http` listens on, or in each
upstream of `http`."""
LEVELS: tuple[Level, ...] = ("main", "events", "http", "listen", "upstream")
CONTEXTS = (
    *("main", "events", "http", "server", "location", "if", "limit_except", "upstream"),
    "listen",
)
"""Where nginx takes a directive. `if` is one in a location."""
Effective = Literal["reload", "restart"]
Inner = Literal["change", "keep"]
Needed = Literal["", "tls", "http2"]

Version = tuple[int, int, int]


DOCUMENTS = "https://nginx.org/en/docs/"


def page_of(document: str) -> str:
    """The address of what the catalogue names, such as `ngx_core_module#worker_processes`."""
    page, _, anchor = document.partition("#")
    folder = "" if page == "ngx_core_module" else "http/"
    return f"{DOCUMENTS}{folder}{page}.html#{anchor}"


def version_of(text: str) -> Version:
    """`1.22.1` as numbers that compare. Raises ValueError for what is none."""
    found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})", text)
    if found is None:
        raise ValueError(f"nginx's version is three numbers such as 1.22.1, got {text!r}")
    return int(found[1]), int(found[2]), int(found[3])


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a directive, or one value of it, works with only; "" and None for nothing.

    `since` is a version of nginx, `kernel` one of Linux; `build` an argument of nginx's
    `configure`; `inside` what the configuration has to serve; `on` a directive that has to be on.
    """

    since: Version | None = None
    kernel: str = ""
    build: str = ""
    inside: Needed = ""
    on: str = ""


NOTHING = Needs()


@dataclass(frozen=True, kw_only=True)
class Companion:
    """A statement that a value can't do without, in nginx before `until`."""

    value: str
    name: str
    arguments: tuple[str, ...]
    until: Version


@dataclass(frozen=True, kw_only=True)
class Directive:
    """One number or choice of a directive, as a parameter of the same space as the kernel's.

    The value is the directive's whole argument at place `argument` (from 1), the option `option`
    (`backlog` of `backlog=511`), a `flag` that stands there or doesn't, or the size of a shared
    memory `zone` of this name (a user's own keeps its name). `fixed` are arguments before it that
    tell this use of the directive from others (`thread_pool default threads=32`). `beside` is
    another option without which nginx refuses this one. One that is not `inserted` is only changed
    where it stands.

    `absent` is the value that the directive has where it doesn't stand, and has no word for;
    `as_is` the one that leaves it as the files have it. `default` is nginx's, as a value or as
    `page` or `nofile` of the host; `before` has older ones by the version that ended them. One that
    `follows` others has a default that nginx computes from them.

    `inner` says what becomes of the directive where it stands further in than its level: sizes and
    times change there, too; what people switch for a reason is kept. `per_cpu` bounds a number by
    the host's processors; with `own_floor` the user's own value is the least that is tried.
    `interacts` has sysctls, or other directives, and how. Raises ValueError when these don't fit
    together.
    """

    parameter: Parameter
    contexts: tuple[str, ...]
    default: str
    effective: Effective
    argument: int = 0
    option: str = ""
    flag: str = ""
    fixed: tuple[str, ...] = ()
    beside: str = ""
    zone: str = ""
    inserted: bool = True
    absent: str | None = None
    as_is: str | None = None
    before: tuple[tuple[Version, str], ...] = ()
    follows: tuple[str, ...] = ()
    inner: Inner = "change"
    needs: Needs = NOTHING
    choice_needs: Mapping[str, Needs] = field(default_factory=dict)
    companion: Companion | None = None
    per_cpu: int = 0
    own_floor: bool = False
    interacts: Mapping[str, str] = field(default_factory=dict)

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
        for value in (self.default, *(value for _, value in self.before)):
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
        """Such as `nginx:http.proxy_buffers.size`."""
        return self.parameter.key

    @property
    def level(self) -> Level:
        """Where its value is set."""
        found: Level = self.key.removeprefix(PREFIX).split(".")[0]  # type: ignore[assignment]
        return found

    @property
    def name(self) -> str:
        """The directive, such as `proxy_buffers`; of an option at an address it is `listen`."""
        return "listen" if self.level == "listen" else self.key.split(".")[1]

    def default_in(self, version: Version) -> str:
        """What nginx does by itself in a version."""
        return next((v for end, v in sorted(self.before) if version < end), self.default)


HOST_DEFAULTS = ("page", "nofile")
"""Defaults that nginx takes from the host."""


@dataclass(frozen=True, kw_only=True)
class NginxFacts:
    """What an nginx is: `nginx -V`, and what it takes from its host.

    `build` are the arguments of its `configure`; `kernel` is `uname -r`; `nofile` the limit of open
    files that its workers start with.
    """

    version: Version
    build: tuple[str, ...]
    kernel: str
    cpus: int
    page_kib: int
    nofile: int

    @classmethod
    def of(
        cls, shown: str, *, kernel: str, cpus: int, page_bytes: int, nofile: int
    ) -> "NginxFacts":
        """From what `nginx -V` prints. Raises ValueError when that is something else."""
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
