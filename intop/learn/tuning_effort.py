"""The effort of tuning and judging models, and what it is made of.

Estimates of time need it in light commands, so nothing of numpy is imported here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from intop.domain.training import Try

INNER_FOLDS = 5
"""The folds of a choice among tries. With three, the choice among few tries on 40 rows was noise,
and often worse than no search."""
MOST_SEARCHED = 2_000
"""Rows that hyper-parameters are searched on, drawn at random: of 50,000 a search takes hours."""
UNPRUNED_TRIES = 5
"""Tries that go through all folds, before the median of them is worth a comparison."""

INTERVAL_FOLDS, INTERVAL_REPEATS = 5, 4
MANY_ROWS, FEWEST_REPEATS = 2_000, 2
"""Rows from which on fewer repeats do, and these repeats. Of more rows each has company, and fits
are dear: two models tell a spread, too."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The effort of tuning and judging models."""

    folds: int = 5
    """Folds of the rows for the error; the search has its own."""
    trials: int
    """Tries of each search at most."""
    seed: int
    repeats: int = 1
    """The number of divisions of the rows into folds."""
    timeout_s: float | None = None
    """Time of each search at most."""
    level: float = 0.95
    """The level of intervals."""
    interval_repeats: int = INTERVAL_REPEATS
    """The number of divisions into folds for intervals, as for `surrogate`."""
    time_s: float | None = None
    """Seconds of a whole training that all of this is cut to (`allotment`)."""
    enough: float = 0.0
    """The `score` that ends a search, since what is left is noise."""

    def is_spent(self, tries: Sequence[Try]) -> bool:
        """Whether a search ends after these tries."""
        if len(tries) >= self.trials:
            return True
        if any(not t.pruned and t.errors[-1] <= self.enough for t in tries):
            return True
        return self.timeout_s is not None and sum(t.seconds for t in tries) >= self.timeout_s
