"""A campaign that refines, on a testbed and with models that are made up."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.testbeds import FakeTestbed, probe_of
from intop.campaign.collect.stage import collect
from intop.campaign.sentinels import with_sentinels
from intop.domain.configuration import Configuration
from intop.domain.space import Space
from intop.domain.trial import PlannedTrial
from intop.learn import active
from intop.learn.active import Pool, Proposal, Step
from intop.learn.samples import Samples
from intop.run.campaigns import new
from intop.store import opened

COUNT = 8
EVERY = 4
NOISE = 0.1
"""The standard deviation of a trial's log tail, as models have it."""
KEYS = ("net.core.somaxconn", "net.ipv4.tcp_fin_timeout")
PROBE = probe_of({"net.core.somaxconn": "4096", "net.ipv4.tcp_fin_timeout": "60"})
DESIGN = [
    Configuration({KEYS[0]: str(1000 * n), KEYS[1]: str(20 + n)}) for n in range(1, COUNT + 1)
]


def latency(planned: PlannedTrial) -> int:
    """In us, the lower the lower somaxconn is; no two trials are alike."""
    if planned.configuration.is_default:
        return 50_000 + 500 * (planned.index % 3)
    return int(planned.configuration.values[KEYS[0]]) + 2_000 + 70 * (planned.index * 7 % 5)


@dataclass(frozen=True)
class Fitted:
    """A stand-in for models."""

    samples: Samples
    seed: int


@dataclass
class Models:
    """What stands in for learn.active: an answer that hangs on every sample it is given.

    The best one is always measured again. `improvements` by call, else they hang on the samples.
    """

    improvements: list[float] = field(default_factory=list)
    seen: list[Samples] = field(default_factory=list)
    tails: list[Samples] = field(default_factory=list)
    fruitless: list[int] = field(default_factory=list)
    slow: list[int] = field(default_factory=list)
    most: int = 100

    def learned(self, samples: Samples, *, tails: Samples, seed: int) -> "Fitted":
        self.seen.append(samples)
        self.tails.append(tails)
        return Fitted(samples, seed)

    def pool(self, space: Space, models: "Fitted") -> Pool:
        genes = np.random.default_rng(models.seed).random((50, len(space.columns)))
        values = space.decode(genes)[: self.most]
        return Pool(values=values, scattered=np.full(len(values), fill_value=True))

    def propose(
        self, models: "Fitted", pool: Pool, *, count: int, fruitless: int, slow: int
    ) -> Step:
        self.fruitless.append(fruitless)
        self.slow.append(slow)
        samples, seed = models.samples, models.seed
        left = pool.values
        rng = np.random.default_rng([seed, int(samples.digest[:8], 16)])
        rows = [Proposal(values=left[n], reason="promise") for n in rng.permutation(len(left))]
        again = samples.values[int(np.argmin(samples.log_target))]
        proposals = (Proposal(values=again, reason="replicate"), *rows)[: count if rows else 0]
        improvement = self.improvements.pop(0) if self.improvements else 0.1 + rng.random()
        return Step(proposals=proposals, improvement=improvement, noise=NOISE)


@pytest.fixture(name="models")
def _models(monkeypatch: pytest.MonkeyPatch) -> Models:
    made = Models()
    monkeypatch.setattr(active, "learned", made.learned)
    monkeypatch.setattr(active, "pool", made.pool)
    monkeypatch.setattr(active, "propose", made.propose)
    monkeypatch.setattr(
        active, "best_known", lambda samples, seed: int(np.argmin(samples.log_target))
    )
    return made


def with_budget(testbed: FakeTestbed, **changes: Any) -> None:
    study = testbed.task.context.study
    with_study(testbed, budget=replace(study.budget, **changes))


def with_study(testbed: FakeTestbed, **changes: Any) -> None:
    with_context(testbed, study=replace(testbed.task.context.study, **changes))


def with_context(testbed: FakeTestbed, **changes: Any) -> None:
    testbed.task = replace(testbed.task, context=replace(testbed.task.context, **changes))


def with_design(testbed: FakeTestbed) -> None:
    store, subject = testbed.task.store, testbed.task.subject
    store.put(subject, PROBE)
    store.write_plan(subject, "collect", with_sentinels(DESIGN, EVERY))
    collect(testbed.task)
    testbed.measured = []


def another_campaign(testbed: FakeTestbed) -> None:
    campaign = new(testbed.task.store, testbed.task.context.study)
    testbed.task = replace(testbed.task, subject=replace(testbed.task.subject, campaign=campaign))


@pytest.fixture(name="ready")
def _ready(testbed: FakeTestbed, models: Models) -> FakeTestbed:
    """A campaign that is collected, and 10 trials to refine it in steps of 4, 4 and 2."""
    testbed.latency = latency
    with_budget(testbed, sentinel_every=EVERY, refine_trials=10, refine_batch=4)
    with_design(testbed)
    return testbed


def plan(testbed: FakeTestbed) -> list[PlannedTrial]:
    return testbed.task.store.plan(testbed.task.subject, "refine")


@contextmanager
def in_a_copy(testbed: FakeTestbed, path: Path) -> Iterator[None]:
    """The testbed's task in a copy of its store as it is now."""
    task = testbed.task
    (origin,) = path.glob("store.db")
    source, target = sqlite3.connect(origin), sqlite3.connect(path / "copy.db")
    source.backup(target)
    source.close()
    target.close()
    with opened(str(path / "copy.db")) as store:
        testbed.task = replace(task, context=replace(task.context, store=store))
        testbed.measured = []
        yield
    testbed.task = task
    testbed.measured = []
