"""Where benchmarks/tuners.py measures: the lab, or an emulator of it."""

import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.campaign import bbr_backends, context_of
from benchmarks.contenders import Arm, Picked, Shared
from benchmarks.recorded import Offer, Shot, offer, recorded_study
from benchmarks.tables import as_samples, read, write
from intop.config.catalogue import Catalogue, load_catalogue
from intop.domain.baseline import HOST
from intop.domain.cluster import native_arch
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.encoding import Matrix, encode
from intop.domain.probing import Probe
from intop.domain.rounds import Arms, judged_by_round
from intop.domain.trial import PlannedTrial, SeriesRound, Trial
from intop.lab import cluster as lab
from intop.resources import shipped
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.rounds import series_plan
from intop.run.stage import Batch, SoFar, Stage
from intop.store import opened

DATA = Path(__file__).parent / "data"
TABLE = DATA / "slt-collect.csv.gz"
BUFFERS: Mapping[int | None, Path] = {
    None: TABLE,
    40: DATA / "slt-buffer-40.csv.gz",
    30: DATA / "slt-buffer-30.csv.gz",
}
"""Tables of the lab's own link, and of those with so short a buffer (KB)."""
LEAF = 15
"""Trials at least in a leaf of the emulator."""

Leaves = NDArray[np.intp]
Round = Callable[[Offer, Shared], list[tuple[Arm, Configuration]]]
ByRound = Mapping[SeriesRound, float]
"""P99 (ms) by series and round."""


class Bed(Protocol):
    """Where it is measured."""

    def race(self, following: Round) -> Shared:
        """Measure round after round, until there is none."""

    def pick(self, finalists: Sequence[Configuration], rounds: int) -> Picked:
        """So many trials of each configuration, in rounds."""

    def verify(self, winners: Sequence[Configuration], rounds: int) -> Mapping[str, ByRound]:
        """P99 of the default (as HOST) and of each configuration, by its digest."""

    @property
    def offer(self) -> Offer:
        """Known once a round was measured."""


class Emulator:
    """A table of trials in place of the lab: a trial is one of a configuration that was alike.

    A forest with large leaves learned the table. A trial of any configuration is drawn from those
    that share its leaf in one of the trees, so that what has two modes on the lab has them here.
    The truth is what trials have on average.
    """

    def __init__(self, table: Path) -> None:
        from sklearn.ensemble import RandomForestRegressor

        rows = read(table)
        samples = as_samples(rows)
        # A table of before there were tails has P99 alone.
        tails = as_samples(rows, "tail_ms" if "tail_ms" in rows[0] else "p99_ms")
        self.offer = tables_offer(rows)
        self._variables = samples.variables
        self._trials = np.log(np.concatenate(samples.measured))
        self._tails = np.log(np.concatenate(tails.measured))
        values = np.repeat(samples.values, [len(m) for m in samples.measured], axis=0)
        self._forest = RandomForestRegressor(
            n_estimators=100, min_samples_leaf=LEAF, max_features=0.6, n_jobs=1, random_state=1
        ).fit(encode(self._variables, values), np.column_stack([self._trials, self._tails]))
        self._leaves = self._of(values)

    def truth(self, configurations: Sequence[Configuration]) -> Matrix:
        """Mean log P99 (n,) of their trials."""
        means = []
        for known, asked in zip(self._leaves.T, self._leaves_of(configurations).T, strict=True):
            sums = np.bincount(known, weights=self._trials)
            means.append(sums[asked] / np.bincount(known)[asked])
        return np.asarray(np.mean(means, axis=0))

    def trial(self, configuration: Configuration, rng: np.random.Generator) -> Shot:
        """One more trial of it."""
        tree = int(rng.integers(self._leaves.shape[1]))
        leaf = self._leaves_of([configuration])[0, tree]
        row = int(rng.choice(np.flatnonzero(self._leaves[:, tree] == leaf)))
        return Shot(configuration, math.exp(self._trials[row]), math.exp(self._tails[row]))

    def race(self, following: Round) -> Shared:
        so_far: dict[Arm, list[Shot]] = defaultdict(list)
        while places := following(self.offer, so_far):
            for arm, configuration in places:
                # The same whoever else takes part.
                rng = np.random.default_rng([zlib.crc32(arm.name.encode()), len(so_far[arm])])
                so_far[arm].append(self.trial(configuration, rng))
        return so_far

    def pick(self, finalists: Sequence[Configuration], rounds: int) -> Picked:
        picked = {}
        for configuration in finalists:
            rng = np.random.default_rng(zlib.crc32(configuration.digest.encode()))
            picked[configuration.digest] = [self.trial(configuration, rng) for _ in range(rounds)]
        return picked

    def verify(self, winners: Sequence[Configuration], rounds: int) -> Mapping[str, ByRound]:
        arms = {HOST: DEFAULT} | {c.digest: c for c in winners}
        found = np.exp(self.truth(list(arms.values()))).tolist()
        return {
            arm: {(1, n): p99 for n in range(1, rounds + 1)}
            for arm, p99 in zip(arms, found, strict=True)
        }

    def _leaves_of(self, configurations: Sequence[Configuration]) -> Leaves:
        return self._of(self.offer.space.values(configurations))

    def _of(self, values: Matrix) -> Leaves:
        """The leaf (n, trees) of each row of values (n, variables)."""
        return np.asarray(self._forest.apply(encode(self._variables, values)))


def tables_offer(rows: Sequence[Mapping[str, str]]) -> Offer:
    """The parameters of the table's columns, with the defaults of its first row, the default's.

    Ranges are the catalogue's: a host's may be narrower.
    """
    catalogue = load_catalogue(shipped("configs") / "parameters.toml")
    keys = _keys(rows)
    chosen = tuple(p for p in catalogue.parameters if p.key in keys)
    defaults = {
        p.key: " ".join(v for name, v in rows[0].items() if name.partition("[")[0] == p.key)
        for p in chosen
    }
    return offer(Catalogue(chosen, catalogue.constraints), defaults)


def _keys(rows: Sequence[Mapping[str, str]]) -> set[str]:
    return {n.partition("[")[0] for n in rows[0]} - {"configuration", "arm", "p99_ms", "tail_ms"}


class Lab:
    """Replicas of the lab, under a guard of the pipeline's."""

    def __init__(self, task: Task, keys: Collection[str]) -> None:
        self._task = task
        self._keys = keys

    @property
    def offer(self) -> Offer:
        probe = self._task.store.get(self._task.subject, Probe)
        assert probe is not None
        found = Offer(recorded_study(self._task.context.study), probe)
        found.space.restricted(self._keys)  # which has all of them
        return found

    def race(self, following: Round) -> Shared:
        return self._shared(
            execute(_Race(self._task, lambda trials: following(self.offer, self._shared(trials))))
        )

    def pick(self, finalists: Sequence[Configuration], rounds: int) -> Picked:
        picked: dict[str, list[Shot]] = defaultdict(list)
        for trial in self._in_rounds("pick", {c.digest: c for c in finalists}, rounds):
            picked[trial.configuration.digest].append(self._shot(trial))
        return picked

    def verify(self, winners: Sequence[Configuration], rounds: int) -> Mapping[str, ByRound]:
        arms = {HOST: DEFAULT} | {c.digest: c for c in winners}
        return judged_by_round(self._in_rounds("contest", arms, rounds))

    def _in_rounds(self, stage: str, arms: Arms, rounds: int) -> list[Trial]:
        return execute(_Rounds(self._task, stage, arms, rounds))

    def keep(self, path: Path) -> None:
        """Write a table of all trials, the default's first."""
        trials = [t for stage in ("contest", "pick", "collect") for t in self._task.trials(stage)]
        trials.sort(key=lambda t: not t.configuration.is_default)
        write(path, self.offer.space, trials, tails=True)

    def _shared(self, trials: Sequence[Trial]) -> Shared:
        found: dict[Arm, list[Shot]] = defaultdict(list)
        for trial in trials:
            found[Arm.named(trial.planned.arm)].append(self._shot(trial))
        return found

    def _shot(self, trial: Trial) -> Shot:
        worst = 1_000.0 * self._task.workload.timeout_s
        failed = trial.histogram is None
        return Shot(
            trial.configuration,
            p99_ms=worst if failed else trial.judged_ms,
            tail_ms=worst if failed else trial.tail_ms,
            status=trial.status,
        )


class _Race(Stage[list[Trial]]):
    """What all tuners ask for, one round after the other, as trials of `collect`."""

    name = "collect"
    description = "the rounds of a race"
    command = ""
    result_type = list
    ends_by_failures = False
    ends_by_overload = False

    def __init__(
        self, task: Task, following: Callable[[Sequence[Trial]], list[tuple[Arm, Configuration]]]
    ) -> None:
        super().__init__(task)
        self._following = following

    def ask(self, so_far: SoFar) -> Batch | None:
        if so_far.unfinished:
            return so_far.unfinished
        if not so_far.plan:
            so_far.testbed()  # which finds out the space
        # Of no round: all trials take turns on the replicas.
        places = [
            PlannedTrial(index=n, role="proposal", configuration=configuration, arm=arm.name)
            for n, (arm, configuration) in enumerate(
                self._following(so_far.trials), start=len(so_far.plan)
            )
        ]
        return Batch(places) if places else None

    def result(self, trials: Sequence[Trial]) -> list[Trial]:
        return list(trials)


class _Rounds(Stage[list[Trial]]):
    """Arms in rounds. What was planned with more rounds, and interrupted, may end with fewer."""

    description = "arms in rounds"
    command = ""
    result_type = list
    ends_by_failures = False
    ends_by_overload = False

    def __init__(self, task: Task, name: str, arms: Arms, rounds: int) -> None:
        super().__init__(task)
        self.name = name  # type: ignore[misc]
        self._arms = arms
        self._rounds = rounds

    def ask(self, so_far: SoFar) -> Batch | None:
        plan = so_far.plan or series_plan(self.task, self.name, self._arms, self._rounds)
        wanted = plan[: self._rounds * len(self._arms)]
        return Batch(wanted) if len(so_far.first(len(wanted))) < len(wanted) else None

    def result(self, trials: Sequence[Trial]) -> list[Trial]:
        return [t for t in trials if (t.planned.round or 0) <= self._rounds]


@contextmanager
def the_lab(
    store_path: Path,
    replicas: int,
    *,
    buffer_kb: int | None = None,
    delay_ms: float = 0.0,
    keys: Collection[str] = (),
) -> Iterator[Lab]:
    """Labs of our own, up as long as it lasts. `buffer_kb` and `delay_ms` (of the round trip) are
    those of their links.

    With a delay their load balancers are virtual machines. Without `keys`, those of the table.
    """
    whole = bbr_backends()
    arch = native_arch()
    (cluster, *_) = whole.clusters[arch]
    assert cluster.link is not None
    link = replace(cluster.link, delay_ms=delay_ms / 2)  # one way
    if buffer_kb is not None:
        link = replace(link, limit_kb=buffer_kb)
    specs = tuple(
        replace(cluster, name=f"tuners-{n}", link=link, kind="vm" if delay_ms else cluster.kind)
        for n in range(1, replicas + 1)
    )
    chosen = tuple(sorted(keys or _keys(read(TABLE))))
    study = replace(
        whole,
        name="tuners",
        clusters={arch: specs},
        wanted=chosen,
        workloads={"slt": whole.workloads["slt"]},
        budget=replace(whole.budget, prune_factor=0.0),
    )
    try:
        for spec in specs:
            lab.up(spec)
        with opened(str(store_path)) as store:
            (task,) = context_of(store, study).subjects()
            yield Lab(task, chosen)
    finally:
        for spec in specs:
            lab.down(spec.name)
