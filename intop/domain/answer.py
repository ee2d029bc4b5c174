"""What hosts say that are asked all at once, where one that is silent must not hide the others."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from intop.domain.host_state import HostState, RolledBack

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[T]):
    """One host's answer: what it `said`, or None and the `error` that names the host.

    `folder` is where its guard was looked for, "" for a lab that isn't up.
    """

    name: str
    folder: str = ""
    said: T | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """What was `done`, and the state that the host is `held` in where that kept it from that."""

    done: RolledBack
    held: HostState | None = None

    @property
    def is_as_before(self) -> bool:
        """Whether every key that intop may have written has its value from before."""
        whole = self.done.outcome in ("restored", "nothing")
        return whole and not (self.done.foreign or self.done.unrestored)
