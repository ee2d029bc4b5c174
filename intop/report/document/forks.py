"""Work that is spread over the processors by forks of this process, which know all that it knows.

A worker of its own would have to import for longer than a page's figures take to draw.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

T = TypeVar("T")

FEWEST = 4
"""Pieces of work that are worth a fork."""

PIECE = 4
"""Bytes of a piece's number."""

LIMIT_S = 60.0
"""So long a fork may take (s): it has our locks as they were, and one may be held for ever."""


def spread(work: Callable[[int], T], count: int) -> list[T]:
    """`work` of 0, 1, ... below `count`, in this order. It must not depend on what was done before.

    Who is free takes the next piece. What a fork did not do, for any reason, is done here, and
    raises here what it raises.
    """
    begin, end = os.pipe()
    os.set_blocking(end, False)  # a pipe has room for thousands of pieces; the rest is done here
    with suppress(BlockingIOError):
        for number in range(count):
            os.write(end, number.to_bytes(PIECE))
    os.close(end)

    def share() -> dict[int, T]:
        pieces = iter(lambda: os.read(begin, PIECE), b"")
        return {n: work(n) for n in map(int.from_bytes, pieces)}

    try:
        forks = [_Fork.of(share) for _ in range(min(_processors(), count // FEWEST) - 1)]
        found = share()
    finally:
        os.close(begin)
    for fork in forks:
        found |= fork.answer() or {}
    return [found[n] if n in found else work(n) for n in range(count)]


def meanwhile(work: Callable[[], T], here: Callable[[], object]) -> T:
    """`work`, done by a fork while `here` is done in this process. Its result is never None.

    What the fork did not do, for any reason, is done here, and raises here what it raises.
    """
    fork = _Fork.of(work) if _processors() > 1 else None
    here()
    answer = fork.answer() if fork else None
    return work() if answer is None else answer


@dataclass(frozen=True)
class _Fork(Generic[T]):
    """A fork at work, and where its answer comes from."""

    process: BaseProcess
    end: Connection

    @classmethod
    def of(cls, work: Callable[[], T]) -> "_Fork[T]":
        context = get_context("fork")
        end, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_send, args=(theirs, work), daemon=True)
        process.start()
        theirs.close()
        return cls(process, end)

    def answer(self) -> T | None:
        """None where it failed, was killed, or takes too long."""
        found: T | None = None
        with suppress(EOFError):
            if self.end.poll(LIMIT_S):
                found = self.end.recv()
        self.process.kill()
        self.process.join()
        return found


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _send(end: Connection, work: Callable[[], object]) -> None:
    """Without a word where it fails: who forked does it again, and says so."""
    try:
        end.send(work())
    except BaseException:  # noqa: BLE001 (also Ctrl-C, which the terminal sends to both)
        os._exit(1)
