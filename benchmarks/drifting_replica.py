"""Whether a replica that grows slower is found on the lab, by a stage of the product.

    python -m benchmarks.drifting_replica
    python -m benchmarks.drifting_replica --same     no replica changes, so whoever is named is not

Two labs of the scenario dynamic-wan are replicas of each other: real nginx, real load, a link with
delay and losses. Each campaign first tests that they agree, in three rounds, and then measures the
default alone, up to 18 times on each of them. One replica (the first in campaigns with an odd
number, the second in others) answers its dynamic pages later from its 11th of these trials on, by
20 % of the mean P50 of its first 10. The product's executor watches, as in every stage.

Terms. 20 campaigns with a change (numbers 41 to 60, which are also their seeds) and 20 without one
(141 to 160), trials of 2 s after 1 s of warm-up, 40 requests/s. Found means: the slower replica is
set aside after at most 8 trials since the change, and nobody before. False means: a replica is set
aside at any time. Replicas that don't agree at first count as not found, and as false. Met means:
20 of 20 found, and at most 1 of 20 false. The two runs may be side by side.

Two tries came before, which benchmarks/results/replica_drift.md tells of: with the scenario's 100
requests/s (numbers from 1 and 101), which overloaded the machine, and with a rule that two odd
sentinels in a row deceived (from 21 and 121).

Prints a row of Markdown for each campaign: the replica that was set aside and after how many trials
of the slower one, and the standard deviations of the logarithm of P50 before the change. Ends with
1 where the term is not met. Needs root.
"""

import argparse
import math
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.campaign import altered, begun, labs_up, measured, scenario
from benchmarks.verdicts import waiting
from intop.config.study import Study
from intop.domain.agreement import Agreement
from intop.domain.cluster import LabSpec
from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial, Trial
from intop.run.cluster_testbed import ClusterTestbed
from intop.store import Store, opened

CAMPAIGNS, ROUNDS, CHANGE, WITHIN = 20, 18, 10, 8
FIRST, FIRST_SAME = 41, 141
RATE_RPS = 40.0
SLOWER = 1.2
MAY_BE_FALSE = 1
STAGE = "collect"


class OverError(Exception):
    """Only one replica is left, and what would be measured on it tells nothing."""


@dataclass(frozen=True, kw_only=True)
class Drifting(ClusterTestbed):
    """A testbed that keeps what it measured (P50 in ms), and grows slower if it `drifts`."""

    made: list[float]
    drifts: bool

    def trial(self, planned: PlannedTrial, stage: str, *rest: Any) -> Trial:
        if stage != STAGE:
            return ClusterTestbed.trial(self, planned, stage, *rest)
        found = self.task.store.get(self.task.subject, Agreement)
        if found is not None and len(found.in_use) < 2:
            raise OverError
        changed: ClusterTestbed = self
        if self.drifts and len(self.made) >= CHANGE:
            changed = waiting(self, round((SLOWER - 1) * fmean(self.made[:CHANGE])))
        trial = ClusterTestbed.trial(changed, planned, stage, *rest)
        if trial.usable:
            self.made.append(trial.percentile_ms(50))
        return trial


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Of a campaign: who was set aside (the place of a replica), and what each had measured."""

    agreed: bool
    set_aside: int | None
    made: tuple[list[float], list[float]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--same", action="store_true", help="no replica changes")
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help=f"({CAMPAIGNS})")
    arguments = parser.parse_args()
    # The labs are taken down all the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    study = study_of()
    first = FIRST_SAME if arguments.same else FIRST
    good = 0
    print("| campaign | set aside | after trials | sd of log P50 | P50, ms |")
    print("|---:|---|---:|---|---:|", flush=True)
    with (
        labs_up(study),
        tempfile.TemporaryDirectory() as folder,
        opened(str(Path(folder) / "drift.db")) as store,
    ):
        for number in range(first, first + arguments.campaigns):
            slow = None if arguments.same else (number + 1) % 2
            outcome = campaign(store, replace(study, seed=number), slow)
            good += is_as_it_should_be(outcome, slow)
            print(row(number, outcome, slow), flush=True)
    what = "without an alarm" if arguments.same else "found"
    print(f"\n{good} of {arguments.campaigns} {what}")
    return 0 if good >= arguments.campaigns - (MAY_BE_FALSE if arguments.same else 0) else 1


def study_of() -> Study:
    """The scenario on two labs of our own."""
    base = scenario("dynamic-wan")
    ((arch, (spec,)),) = base.clusters.items()
    assert isinstance(spec, LabSpec)
    labs = tuple(replace(spec, name=f"dr{os.getpid() % 10_000}{letter}") for letter in "ab")
    workload = replace(base.workloads["dlt"], duration_s=2, rate_rps=RATE_RPS)
    budget = replace(base.budget, agree_rounds=3)
    return replace(
        base, name="drift", clusters={arch: labs}, workloads={"dlt": workload}, budget=budget
    )


def campaign(store: Store, study: Study, slow: int | None) -> Outcome:
    """A campaign in which the replica at the place `slow` changes."""
    made: tuple[list[float], list[float]] = ([], [])
    ((_, other),) = study.clusters.values()
    assert isinstance(other, LabSpec)

    def drifting(ready: ClusterTestbed) -> Drifting:
        place = int(ready.name.startswith(other.name))
        return Drifting(**vars(ready), made=made[place], drifts=place == slow)

    task = begun(store, study, testbeds=altered(drifting))
    plan = [
        PlannedTrial(index=n, role="sentinel" if n >= 2 else "baseline", configuration=DEFAULT)
        for n in range(2 * ROUNDS)
    ]
    with suppress(OverError):
        measured(task, STAGE, plan)
    found = task.store.get(task.subject, Agreement)
    assert found is not None
    aside = [place for place, one in enumerate(found.replicas) if one.is_set_aside]
    return Outcome(
        agreed=all(one.agrees for one in found.replicas[1:]),
        set_aside=aside[0] if aside else None,
        made=made,
    )


def is_as_it_should_be(outcome: Outcome, slow: int | None) -> bool:
    if not outcome.agreed or outcome.set_aside != slow:
        return False
    return slow is None or 0 < len(outcome.made[slow]) - CHANGE <= WITHIN


def row(number: int, outcome: Outcome, slow: int | None) -> str:
    aside = "nobody" if outcome.set_aside is None else f"replica {outcome.set_aside + 1}"
    if not outcome.agreed:
        aside = "did not agree"
    counted = outcome.made[slow or 0]
    spreads = " and ".join(spread(made[:CHANGE]) for made in outcome.made)
    level = f"{fmean(outcome.made[0]):.1f}" if outcome.made[0] else "-"
    return f"| {number} | {aside} | {len(counted)} | {spreads} | {level} |"


def spread(made: Sequence[float]) -> str:
    return f"{stdev(map(math.log, made)):.3f}" if len(made) > 1 else "-"


if __name__ == "__main__":
    sys.exit(main())
