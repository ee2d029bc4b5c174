"""Telling others, by the store, what this process works on; they are refused the same work."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Self

from intop.domain.activity import SILENCE_S
from intop.domain.job import LEASE_S
from intop.errors import AtWorkError
from intop.masking import masked
from intop.store import Store, Subject
from intop.words import duration

GOODBYE_S = 5.0
"""The longest wait for the last sign of life (s)."""


class AtWork:
    """The subject and the stage that this process works on.

    It may be left at any time: then nobody is refused any more. A thread renews the sign of life,
    and says once when that fails.
    """

    def __init__(
        self,
        store: Store,
        *,
        say: Callable[[str], None] = lambda _: None,
        renew_s: float = LEASE_S / 3,
    ) -> None:
        self._store = store
        self._say = say
        self._renew_s = renew_s
        self._current: tuple[Subject, str] | None = None
        self._ended = Event()
        self._thread = Thread(target=self._renew, name="at work", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(GOODBYE_S)  # it may wait for the store
        self._leave()

    def begin(self, subject: Subject, stage: str) -> None:
        """Begin a stage, and leave the subject before. Raises AtWorkError for another process."""
        if self._current == (subject, stage):
            return
        if self._current is not None and self._current[0] != subject:
            self._leave()
        other = self._store.activities.take(subject, stage)
        if other is not None:
            raise AtWorkError(
                f"{subject.arch} {subject.workload}: campaign {subject.campaign.id} is at work: "
                f"{other.process} is at {other.stage}, heard of {duration(other.silent_s)} ago. "
                "Wait for it, or end that process. Run: intop progress"
            )
        self._current = subject, stage
        if not self._thread.is_alive():
            self._thread.start()

    def _leave(self) -> None:
        if self._current is not None:
            subject, _ = self._current
            self._current = None
            # Silence ends it, too; and this may be the end by an error of the store.
            with suppress(Exception):
                self._store.activities.end(subject)

    def _renew(self) -> None:
        has_warned = False
        while not self._ended.wait(self._renew_s):
            current = self._current
            if current is None:
                continue
            try:
                self._store.activities.renew(*current)
            except Exception as error:  # noqa: BLE001 (a sign of life must not end the work)
                if not has_warned:
                    self._say(_warning(error))
                has_warned = True


def _warning(error: Exception) -> str:
    reason = next(iter(str(error).splitlines()), "") or type(error).__name__
    return (
        f"the store does not take the sign of life of this process: {masked(reason)}. After "
        f"{duration(SILENCE_S)} of silence another process may begin the same work: start none "
        "meanwhile"
    )
