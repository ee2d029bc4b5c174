"""How long a study takes, before it is measured: stated constants, and what is made of them.

Each time is a likely one and one that is hardly exceeded. What a campaign has measured itself is
preferred to all of these: `campaign_status.pace_s`, and the times of its training.
"""

from dataclasses import dataclass
from typing import Literal

from intop.domain.workload import Budget

Kind = Literal["lab", "guest", "own"]
"""Where a load balancer is: in a lab's namespace, in a lab's emulated guest, on a host of yours."""

AROUND_S: dict[Kind, float] = {"lab": 0.4, "guest": 1.3, "own": 3.0}
"""What a trial does around its load: keys set and read back, the server restarted, connections
gone, counters read. On the lab with two replicas on two cores 0.4 to 0.5 s were measured, and 0.15
s with one replica on an idle machine; an emulated guest takes 1.3 s. On hosts it is mostly
`systemctl restart nginx`, which is not measured: 3 s are assumed."""

STAGE_S: dict[Kind, float] = {"lab": 3.0, "guest": 15.0, "own": 5.0}
"""What a stage takes beside its trials: connecting, probing, the guard, and its own reckoning."""

HELD_STAGE_S = 1.0
"""The same of a stage for which `tune` holds the hosts already: 0 to 2 s on labs and guests."""

RETRIED, RETRIED_AT_MOST = 1.05, 1.5
"""Attempts for each trial. A quiet machine needs hardly any second ones; one on which linters and
tests ran beside a campaign needed 1.25."""

TIME_WAIT_S = 60.0
"""So long the kernel keeps closed connections."""

PROMPT_TRIES, PRUNED = 5, 0.6
"""Tries that go through all inner folds, and the share of those that later ones go through."""
INNER_FOLDS, FITS_FOR_INTERVALS = 5, 21
FIT_S, FIT_ROW_S = 0.7, 0.006
"""Of one fit of each family together, in seconds of a processor, and by row. On the lab 0.78 s with
29 rows of 14 parameters; 3.7 s with 500 rows of 30 features."""
FAMILIES = 7
MOST_ROWS = 2000

EVALUATION_S = 2e-5
"""A candidate of a population in one of five searches; a search seldom uses all generations."""
SEARCHES = 5


@dataclass(frozen=True, kw_only=True)
class Span:
    """Seconds: the likely ones, and those that are hardly exceeded."""

    likely_s: float
    most_s: float

    def of(self, likely: float, most: float) -> "Span":
        """So many times each."""
        return Span(likely_s=self.likely_s * likely, most_s=self.most_s * most)

    def plus(self, seconds: float) -> "Span":
        """Both, and some more."""
        return Span(likely_s=self.likely_s + seconds, most_s=self.most_s + seconds)


def trial(kind: Kind, run_s: float, rate_rps: float, budget: Budget) -> Span:
    """A trial with a load of `run_s` (calibration and warm-up included), second attempts included.

    On hosts of yours nginx may open a connection to a backend for each request. Where more of them
    are then in TIME_WAIT than `max_time_wait` allows, each trial waits for that at most.
    """
    once = run_s + AROUND_S[kind]
    drain = 0.0
    if kind == "own" and rate_rps * run_s > budget.max_time_wait:
        drain = min(TIME_WAIT_S, budget.settle_limit_s)
    return Span(likely_s=RETRIED * once, most_s=RETRIED_AT_MOST * (once + drain))


def training(rows: int, budget: Budget, processes: int) -> Span:
    """All families tuned in all folds and on all rows, with `processes` side by side."""
    searches = budget.folds * budget.repeats + 1
    prompt = min(budget.tuning_trials, PROMPT_TRIES)
    tries = prompt + PRUNED * (budget.tuning_trials - prompt)
    learned = min(rows, MOST_ROWS) * (budget.folds - 1) / budget.folds
    fit_s = FIT_S + FIT_ROW_S * learned
    limit_s = FAMILIES * budget.tuning_timeout_s
    likely = min(tries * INNER_FOLDS * fit_s, limit_s) + FITS_FOR_INTERVALS * fit_s
    most = min(3 * tries * INNER_FOLDS * fit_s, limit_s) + 3 * FITS_FOR_INTERVALS * fit_s
    return Span(likely_s=likely, most_s=most).of(searches / processes, searches / processes)


def search(budget: Budget) -> Span:
    """The genetic algorithm on each tree model and on all together."""
    every = EVALUATION_S * SEARCHES * budget.population * budget.generations
    return Span(likely_s=every, most_s=5 * every)
