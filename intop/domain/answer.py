"""Answers of hosts that are asked at once: one that is silent must not hide the others."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from intop.domain.host_state import HostState, RolledBack

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[T]):
    """One host's answer, or the error that names the host."""

    name: str
    folder: str = ""
    """Where its guard was looked for, "" for a lab that isn't up."""
    said: T | None = None
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
