"""The state of hosts as they report it: what intop has done there, and who holds them."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from intop.domain.applied import Applied, Drift

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class KeyValue:
    """A sysctl key and a value."""

    key: str
    value: str


@dataclass(frozen=True, kw_only=True)
class KeyChange:
    """A guarded key that is changed."""

    key: str
    before: str
    """The value before the session."""
    now: str


@dataclass(frozen=True, kw_only=True)
class ForeignChange:
    """A guarded key that somebody else has changed."""

    key: str
    left: str
    """The value that intop left."""
    now: str
    command: str
    """Typed as root on the host, it restores the value from before the session."""


@dataclass(frozen=True, kw_only=True)
class Unrestored:
    """A key that does not have its value from before."""

    key: str
    """The key; for a file of nginx its path, and for nginx itself "nginx"."""
    value: str
    """The value from before."""
    command: str
    """Typed as root on the host, it would restore the value."""
    why: str = ""
    """The fault of nginx or its file."""


@dataclass(frozen=True, kw_only=True)
class HostState:
    """The holder of a host, and the changes there. None is what is not known or does not apply."""

    holder: str = ""
    """`user@host (process N)`, empty where nobody holds it."""
    since: str = ""
    """UTC, ISO 8601."""
    lease_s: float | None = None
    silent_s: float | None = None
    """Since the last sign of life."""
    is_watched: bool | None = None
    changed: tuple[KeyChange, ...] = ()
    foreign: tuple[ForeignChange, ...] = ()
    reports: tuple[str, ...] = ()
    """Lines that the host left when it restored itself, and that no session has shown yet."""
    applied: Applied | None = None
    """The apply that stays there."""
    drift: tuple[Drift, ...] = ()
    """Deviations from what was applied."""

    def __str__(self) -> str:
        """Return a line for each part; empty for a host without holder and reports."""
        held = f"held by {self.holder} since {self.since}, lease {self.lease_s or 0:g} s"
        return "\n".join([held, *self.reports] if self.holder else self.reports)


RollbackOutcome = Literal["restored", "partly", "held", "nothing"]
UndoneFile = Literal["removed", "edited", "stuck", "missing"]


@dataclass(frozen=True, kw_only=True)
class RolledBack:
    """The result of a rollback."""

    restored: tuple[KeyValue, ...] = ()
    foreign: tuple[ForeignChange, ...] = ()
    unrestored: tuple[Unrestored, ...] = ()
    outcome: RollbackOutcome
    """`held`: a living session has the host, and nothing was touched."""
    file: str = ""
    """Our persistent file, "" where there was none."""
    file_is: UndoneFile | None = None
    """The fate of that file."""


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[T]):
    """One host's answer, or the error that names the host."""

    name: str
    folder: str = ""
    """The folder in which its guard was looked for, "" for a lab that isn't up."""
    result: T | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """The result of a rollback."""

    done: RolledBack
    held: HostState | None = None
    """The state of the host where a session kept it from that."""

    @property
    def is_as_before(self) -> bool:
        """Whether every key that intop may have written has its value from before."""
        whole = self.done.outcome in ("restored", "nothing")
        return whole and not (self.done.foreign or self.done.unrestored)
