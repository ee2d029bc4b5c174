"""Work that is spread over the processors by forks of this process, which know all that it knows.

A worker of its own would have to import for longer than a page's figures take to draw.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

T = TypeVar("T")

FEWEST = 4
"""Pieces of work that are worth a fork."""

LIMIT_S = 60.0
"""So long a fork may take (s): it has our locks as they were, and one may be held for ever."""


def spread(work: Callable[[int], T], count: int) -> list[T]:
    """`work` of 0, 1, ... below `count`, in this order. It must not depend on what was done before.

    What a fork did not do, for any reason, is done here, and raises here what it raises.
    """
    processes = min(len(os.sched_getaffinity(0)), max(1, count // FEWEST))
    context = get_context("fork")
    found: dict[int, T] = {}
    answers = []
    for first in range(1, processes):
        answer, end = context.Pipe(duplex=False)
        share = range(first, count, processes)
        fork = context.Process(target=_send, args=(end, work, share), daemon=True)
        fork.start()
        end.close()
        answers.append((answer, fork))
    found |= {n: work(n) for n in range(0, count, processes)}
    for answer, fork in answers:
        with suppress(EOFError):  # it failed, or was killed
            if answer.poll(LIMIT_S):
                found |= answer.recv()
        fork.kill()
        fork.join()
    return [found[n] if n in found else work(n) for n in range(count)]


def _send(end: Connection, work: Callable[[int], T], share: Iterable[int]) -> None:
    """Without a word where it fails: who forked does it again, and says so."""
    try:
        end.send({n: work(n) for n in share})
    except BaseException:  # noqa: BLE001 (also Ctrl-C, which the terminal sends to both)
        os._exit(1)
