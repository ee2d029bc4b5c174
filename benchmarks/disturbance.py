"""What a neighbour does to a ranking: known configurations, measured with a hog and without.

The configurations are a ladder whose order is known: with each, the lab's dynamic pages are
answered later by so many ms, which adds as much to P99. (Sysctls have but a few levels of P99 on
the lab's link, and an order within a level is nobody's.) Four campaigns measure all of them in
rounds, in random order, by the same code and limits as any stage:

quiet        nothing else runs
hog          a process keeps one processor busy for half of the time that all trials take once
unguarded    the same with max_foreign_cores = inf, so that it disturbs no trial: what it would do
quiet again  how well two quiet campaigns agree, which is the most that can be asked for

Each ranking (geometric means of the usable P99s) is held against that of the quiet campaign, and
against the true one, by Spearman's rank correlation. The exit code is 1 where the hog's with the
quiet one is less than --least, or not all configurations could be ranked, or trials beside the hog
were not taken for disturbed.
Prints tables in Markdown; progress is on stderr.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import repeat
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any, Literal, Self

from scipy.stats import spearmanr

from benchmarks.campaign import altered, begun, measured, short_buffer
from benchmarks.verdicts import between, waiting
from intop.config.study import Study
from intop.domain.baseline import HOST
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.stats import geometric_mean
from intop.domain.trial import Block, PlannedTrial, Trial
from intop.lab import cluster as lab
from intop.run.cluster_testbed import ClusterTestbed
from intop.stages.blocks import blocks, p99_by_round
from intop.store import Store, opened

HOG = "import time\nwhile time.monotonic() < {end!r}: pass"
LONGEST_HOG_S = 900.0
"""A hog ends by itself after this, whatever becomes of us."""
ON_AND_OFF_S = 10.0
MUST_SEE = 0.9
"""The share of the trials wholly beside the hog that must be taken for disturbed."""

Spells = Iterator[tuple[float, float]]
"""For how many seconds a hog is on, and then off, again and again."""

WAITS_MS = (0, 2, 4, 7, 11, 15, 20, 26, 33, 42, 52, 64)
"""Where P99 is 10 ms without waiting, each step makes it 1.2 times higher."""
LADDER: Mapping[str, int] = {f"+{wait} ms" if wait else HOST: wait for wait in WAITS_MS}
"""The waits by the configuration's name."""
UNRELATED = "net.ipv4.tcp_keepalive_intvl"
"""Has no part in latency. Each configuration but the default writes a value of its own there, so
that it is written, read back and given back as any other."""


class Laddered(ClusterTestbed):
    """A testbed where each configuration has its wait."""

    def trial(self, planned: PlannedTrial, *rest: Any) -> Trial:
        return ClusterTestbed.trial(waiting(self, LADDER[planned.arm]), planned, *rest)


def configurations() -> dict[str, Configuration]:
    """The ladder, as what is written on the load balancer."""
    return {
        name: Configuration({UNRELATED: str(80 + wait)}) if wait else DEFAULT
        for name, wait in LADDER.items()
    }


class Neighbour:
    """Somebody who keeps processors busy at times; `busy` says when (Unix time)."""

    def __init__(self, spells: Spells, hogs: int = 1) -> None:
        self.busy: list[tuple[float, float]] = []
        self._spells = spells
        self._hogs = hogs
        self._ended = Event()
        self._thread = Thread(target=self._live)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _live(self) -> None:
        for on_s, off_s in self._spells:
            began = time.time()
            loop = HOG.format(end=time.monotonic() + LONGEST_HOG_S)
            command = [sys.executable, "-S", "-c", loop]
            processes = [subprocess.Popen(command) for _ in range(self._hogs)]
            self._ended.wait(on_s)
            for process in processes:
                process.kill()
                process.wait()
            self.busy.append((began, time.time()))
            if self._ended.wait(off_s):
                return


@dataclass(frozen=True, kw_only=True)
class Found:
    """A campaign: all attempts at its trials, P99 (ms) by configuration and round, how long it
    took (s) and when its neighbour was busy (Unix time)."""

    attempts: Sequence[Trial]
    p99s: Mapping[str, Mapping[Block, float]]
    seconds: float
    busy: Sequence[tuple[float, float]]

    def p99_ms(self, name: str) -> float:
        """The P99 that a configuration is ranked by."""
        return geometric_mean(list(self.p99s[name].values()))

    def ranked_by(self) -> dict[str, float]:
        """The P99s (ms) of all configurations that have one."""
        return {name: self.p99_ms(name) for name in self.p99s}

    @property
    def busy_share(self) -> float:
        """The share of the campaign's time for which the neighbour was busy."""
        return sum(off - on for on, off in self.busy) / self.seconds

    def flagged(self) -> dict[str, tuple[int, int]]:
        """How many attempts were disturbed, and of how many, by how they lay to the hog."""
        made = Counter(place_of(t, self.busy) for t in self.attempts)
        seen = Counter(place_of(t, self.busy) for t in self.attempts if t.status == "disturbed")
        return {place: (seen[place], made[place]) for place in ("beside", "partly", "without")}


def place_of(
    trial: Trial, busy: Sequence[tuple[float, float]]
) -> Literal["beside", "partly", "without"]:
    """Whether a trial was wholly beside the hog, partly, or without it.

    A trial's start is known to the second below: where that leaves a doubt, it is `partly`.
    """
    earliest = datetime.fromisoformat(trial.started_at).timestamp()
    latest = earliest + 1 + trial.seconds
    if any(on <= earliest and latest <= off for on, off in busy):
        return "beside"
    return "partly" if any(on < latest and earliest < off for on, off in busy) else "without"


def main() -> None:
    arguments = parsed()
    study = study_of(arguments)
    ((spec,),) = study.clusters.values()
    open_to_all = replace(study, budget=replace(study.budget, max_foreign_cores=math.inf))
    try:
        lab.up(spec)
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(str(Path(folder) / "disturbance.db")) as store,
        ):
            quiet = campaign(store, study, arguments.rounds, Neighbour(iter(())))
            # Not what it took: somebody else may have had its trials measured again.
            trial_s = median(t.seconds for t in quiet.attempts)
            needed_s = trial_s * arguments.rounds * len(LADDER)

            def crowded(study: Study) -> Found:
                hogs = Neighbour(spells_of(arguments.hog, needed_s), arguments.hogs)
                return campaign(store, study, arguments.rounds, hogs)

            found = {
                "quiet": quiet,
                "hog": crowded(study),
                "unguarded": crowded(open_to_all),
                "quiet again": campaign(store, study, arguments.rounds, Neighbour(iter(()))),
            }
    finally:
        lab.down(spec.name)
    print("\n".join([*ladder(found), "", *summary(found)]))
    if missed := problems(found, arguments.least):
        sys.exit(f"not as it should be: {'; '.join(missed)}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=between(1), default=3, help="of each campaign (3)")
    parser.add_argument("--seconds", type=between(1), default=2, help="of a trial (2)")
    parser.add_argument(
        "--hog",
        choices=["first", "alternating"],
        default="first",
        help="in the first half (first), or 10 s on and 10 s off (alternating)",
    )
    parser.add_argument("--hogs", type=between(1), default=1, help="processes at once (1)")
    parser.add_argument("--least", type=float, default=0.9, help="Spearman's correlation (0.9)")
    return parser.parse_args()


def study_of(arguments: argparse.Namespace) -> Study:
    """The scenario short-buffer with dynamic pages, on a lab of our own."""
    study = short_buffer()
    arch = native_arch()
    spec = LabSpec(name=f"d{os.getpid() % 10_000}", arch=arch, link=study.clusters[arch][0].link)
    workload = replace(study.workloads["dlt"], duration_s=arguments.seconds)
    return replace(study, clusters={arch: (spec,)}, workloads={"dlt": workload})


def spells_of(hog: str, seconds: float) -> Spells:
    """When the hog is on in a campaign that takes so long without it."""
    if hog == "first":
        return iter([(seconds / 2, 0.0)])
    return repeat((ON_AND_OFF_S, ON_AND_OFF_S))


def campaign(store: Store, study: Study, rounds: int, neighbour: Neighbour) -> Found:
    """All configurations in rounds, beside a neighbour."""
    task = begun(store, study, testbeds=altered(lambda ready: Laddered(**vars(ready))))
    arms = configurations()
    began = time.monotonic()
    with neighbour:
        trials = measured(task, "contest", blocks(task, "contest", arms, rounds))
        seconds = time.monotonic() - began
    return Found(
        attempts=store.trials(task.subject, "contest"),
        p99s=p99_by_round(trials),
        seconds=seconds,
        busy=neighbour.busy,
    )


def ladder(found: Mapping[str, Found]) -> list[str]:
    """P99 of each configuration in each campaign, and how many trials it rests on."""
    lines = [f"| configuration | {' | '.join(found)} |", f"|---|{'---:|' * len(found)}"]
    for name in LADDER:
        cells = [
            f"{one.p99_ms(name):.1f} ms ({len(one.p99s[name])})" if name in one.p99s else ""
            for one in found.values()
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def summary(found: Mapping[str, Found]) -> list[str]:
    """Each campaign: how it went, which of its trials were disturbed, how right its ranking is."""
    quiet = found["quiet"]
    heads = ["campaign", "seconds", "hog on", "trials", "disturbed beside it", "partly", "without"]
    heads += ["ranked", "Spearman with quiet", "with the truth"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for name, one in found.items():
        cells = [
            name,
            f"{one.seconds:.0f}",
            f"{one.busy_share:.0%}",
            f"{len(one.attempts)}",
            *(f"{seen} of {made}" for seen, made in one.flagged().values()),
            f"{len(one.p99s)} of {len(LADDER)}",
            "" if one is quiet else f"{correlation(quiet.ranked_by(), one.ranked_by()):.3f}",
            f"{correlation(LADDER, one.ranked_by()):.3f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def correlation(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Spearman's rank correlation over the configurations that both have."""
    names = [name for name in one if name in other]
    return float(spearmanr([one[n] for n in names], [other[n] for n in names]).statistic)


def problems(found: Mapping[str, Found], least: float) -> list[str]:
    """What is not as it should be."""
    quiet, hog = found["quiet"], found["hog"]
    seen, made = hog.flagged()["beside"]
    said = []
    if not (alike := correlation(quiet.ranked_by(), hog.ranked_by())) >= least:
        said.append(f"Spearman's correlation is {alike:.3f}, less than {least:g}")
    if missing := [name for name in LADDER if not (name in quiet.p99s and name in hog.p99s)]:
        said.append(f"not ranked: {', '.join(missing)}")
    if made == 0 or seen < MUST_SEE * made:
        said.append(f"{seen} of {made} trials beside the hog were taken for disturbed")
    return said


if __name__ == "__main__":
    main()
