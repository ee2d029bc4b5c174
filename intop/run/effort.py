"""Estimates of a study's time before it is measured, from stated constants.

The times that a campaign has measured itself are preferred: `campaign_status.pace_s`, and those of
its training.
"""

from dataclasses import dataclass
from typing import Literal

from intop.domain.workload import Budget

Kind = Literal["lab", "guest", "own"]
"""The place of a load balancer: a lab's namespace, a lab's emulated guest, or a host of yours."""

AROUND_S: dict[Kind, float] = {"lab": 0.4, "guest": 1.3, "own": 3.0}
"""Setting keys, reading them back, restarting the server and reading counters, around a load. On
the lab with two replicas on two cores 0.4 to 0.5 s were measured, and 0.15 s with one replica on an
idle machine; an emulated guest takes 1.3 s. On hosts it is mostly `systemctl restart nginx`: 3 s
are assumed."""

STAGE_S: dict[Kind, float] = {"lab": 3.0, "guest": 15.0, "own": 5.0}
"""Connecting, probing, the guard and the reckoning of a stage, beside its trials."""

HELD_STAGE_S = 1.0
"""The same where `tune` holds the hosts already: 0 to 2 s on labs and guests."""

RETRIED, RETRIED_AT_MOST = 1.05, 1.5
"""Attempts for each trial. A quiet machine needs hardly any second ones; one on which linters and
tests ran beside a campaign needed 1.25."""

TIME_WAIT_S = 60.0
"""Seconds for which the kernel keeps closed connections."""

EVALUATION_S = 2e-5
"""Seconds of a candidate in one of five searches; a search seldom uses all generations."""
SEARCHES = 5


@dataclass(frozen=True, kw_only=True)
class Span:
    """Likely seconds, and seconds that are hardly exceeded."""

    likely_s: float
    most_s: float

    def of(self, likely: float, most: float) -> "Span":
        """Return both times these factors."""
        return Span(likely_s=self.likely_s * likely, most_s=self.most_s * most)

    def plus(self, seconds: float) -> "Span":
        """Return both with this much more."""
        return Span(likely_s=self.likely_s + seconds, most_s=self.most_s + seconds)


def trial(kind: Kind, run_s: float, rate_rps: float, budget: Budget) -> Span:
    """Return the time of a trial and its retries, with a load of `run_s` (warm-up included).

    On hosts of yours nginx may open a connection to a backend for each request. Where more of them
    stay in TIME_WAIT than `max_time_wait` allows, each trial waits for that.
    """
    once = run_s + AROUND_S[kind]
    drain = 0.0
    if kind == "own" and rate_rps * run_s > budget.max_time_wait:
        drain = min(TIME_WAIT_S, budget.settle_limit_s)
    return Span(likely_s=RETRIED * once, most_s=RETRIED_AT_MOST * (once + drain))


def training(rows: int, budget: Budget, processes: int, trials_s: float | None = None) -> Span:
    """Return the time to tune all families in all folds, with `processes` side by side.

    `trials_s` are the seconds of the trials, of which it takes a share; None where unknown.
    """
    from intop.learn.allotment import PROCESSORS, allotted, reckoned_s
    from intop.learn.families import FAMILIES
    from intop.learn.tuning_effort import MOST_SEARCHED, Effort

    time_s = budget.tuning_share * trials_s if budget.tuning_share and trials_s else None
    whole = Effort(
        folds=budget.folds,
        trials=budget.tuning_trials,
        seed=0,
        repeats=budget.repeats,
        timeout_s=budget.tuning_timeout_s,
        time_s=time_s,
    )
    learned = min(rows, MOST_SEARCHED)
    efforts = allotted(tuple(FAMILIES), learned, budget.keep, whole)
    likely_s = reckoned_s(efforts, learned, budget.keep) * PROCESSORS / processes
    return Span(likely_s=likely_s, most_s=2 * likely_s)


def search(budget: Budget) -> Span:
    """Return the time of the genetic algorithm on each tree model and on all together."""
    every = EVALUATION_S * SEARCHES * budget.population * budget.generations
    return Span(likely_s=every, most_s=5 * every)
