"""What intop has done to a host, as the host itself tells it."""

from dataclasses import dataclass
from typing import Literal

from intop.domain.applied import Applied, Drift


@dataclass(frozen=True, kw_only=True)
class KeyValue:
    """A sysctl key and a value of it."""

    key: str
    value: str


@dataclass(frozen=True, kw_only=True)
class KeyChange:
    """A guarded key whose value `now` is not the one `before` the session."""

    key: str
    before: str
    now: str


@dataclass(frozen=True, kw_only=True)
class ForeignChange:
    """A guarded key that somebody else has changed since intop `left` it at a value.

    `command`, typed as root on the host, puts the value from before the session back.
    """

    key: str
    left: str
    now: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Unrestored:
    """A key that does not have its `value` from before; `command` would give it that, as root.

    Of a file of nginx `key` is the path, and of nginx itself "nginx"; then `why` says what is wrong
    in place of a value.
    """

    key: str
    value: str
    command: str
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class HostState:
    """Who holds a host, and what is changed there.

    `holder` is `user@host (process N)`, `since` a UTC time in ISO 8601; both are empty where nobody
    holds it. `lease_s` is the lease and `silent_s` the time since the last sign of life, in
    seconds. None is what is not known or does not apply. `reports` are lines that the host left
    when it restored itself, and that no session has shown yet. `applied` is what stays there, and
    `drift` what is no longer as it was applied.
    """

    holder: str = ""
    since: str = ""
    lease_s: float | None = None
    silent_s: float | None = None
    is_watched: bool | None = None
    changed: tuple[KeyChange, ...] = ()
    foreign: tuple[ForeignChange, ...] = ()
    reports: tuple[str, ...] = ()
    applied: Applied | None = None
    drift: tuple[Drift, ...] = ()

    def __str__(self) -> str:
        """In words, a line each; empty for a host that nobody holds and that has nothing to say."""
        held = f"held by {self.holder} since {self.since}, lease {self.lease_s or 0:g} s"
        return "\n".join([held, *self.reports] if self.holder else self.reports)


RollbackOutcome = Literal["restored", "partly", "held", "nothing"]
UndoneFile = Literal["removed", "edited", "stuck", "missing"]


@dataclass(frozen=True, kw_only=True)
class RolledBack:
    """What a rollback did. `held`: a living session has the host, and nothing was touched.

    `file_is` says what became of our persistent `file`, where there was one.
    """

    restored: tuple[KeyValue, ...] = ()
    foreign: tuple[ForeignChange, ...] = ()
    unrestored: tuple[Unrestored, ...] = ()
    outcome: RollbackOutcome
    file: str = ""
    file_is: UndoneFile | None = None
