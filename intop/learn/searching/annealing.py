"""Simulated annealing, SciPy's."""

from threading import Condition, Thread

import numpy as np

from intop.domain.encoding import Matrix
from intop.learn.samples import Vector
from intop.learn.searching.run import EndedError, Run

CHAINS = 10
"""A step depends on the one before it, so a chain can't be batched: so many go side by side."""
HOT = 0.1
"""The first temperature, in log latency. SciPy's own is for objectives in the thousands: with it,
the chains found less than random search does."""
ENDLESS = 10**9


def annealing(run: Run) -> None:
    """Chains of SciPy's generalised annealing, from the best of the first population.

    They go step by step together, and each step is one call for all of them. Without its local
    search, since trees have no gradients.
    """
    scores = run.scores(run.first)
    starts = run.first[np.argsort(scores, kind="stable")[: min(CHAINS, len(scores))]]
    together = _Together(run, len(starts))
    threads = [
        Thread(target=_chain, args=(together, number, start), daemon=True)
        for number, start in enumerate(starts)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        together.end(EndedError())
    if together.reason is not None:
        raise together.reason


def _chain(together: "_Together", number: int, start: Vector) -> None:
    from scipy.optimize import dual_annealing

    def score(genes: Vector) -> float:
        return together.score(number, genes)

    try:
        dual_annealing(
            score,
            bounds=[(0.0, 1.0)] * len(start),
            x0=start,
            maxiter=ENDLESS,
            maxfun=ENDLESS,
            no_local_search=True,
            initial_temp=HOT,
            rng=np.random.default_rng([together.run.seed, number]),
        )
    except Exception as error:  # noqa: BLE001  another chain's thread, or the caller's, raises it
        together.end(error)


class _Together:
    """Waits until every chain has asked, and answers them all by one prediction."""

    def __init__(self, run: Run, chains: int) -> None:
        self.run = run
        self.reason: Exception | None = None
        self._chains = chains
        self._asked: dict[int, Vector] = {}
        self._answers: dict[int, float] = {}
        self._changed = Condition()

    def score(self, number: int, genes: Vector) -> float:
        """The score of genes (columns,). Raises EndedError when the search is over."""
        with self._changed:
            self._asked[number] = genes.copy()
            if len(self._asked) == self._chains:
                self._answer()
            self._changed.wait_for(lambda: number in self._answers or self.reason is not None)
            if self.reason is not None:
                raise EndedError
            return self._answers.pop(number)

    def end(self, reason: Exception) -> None:
        """End all chains: none gets an answer any more. The first reason counts."""
        with self._changed:
            self.reason = self.reason or reason
            self._changed.notify_all()

    def _answer(self) -> None:
        # In the order of the chains, whichever came first: that is what makes it repeatable.
        genes: Matrix = np.array([self._asked[n] for n in sorted(self._asked)])
        try:
            scores = self.run.scores_unless_stalled(genes)
        except Exception as error:  # noqa: BLE001  the caller's thread raises it
            self.end(error)
            return
        self._answers = dict(zip(sorted(self._asked), scores.tolist(), strict=True))
        self._asked.clear()
        self._changed.notify_all()
