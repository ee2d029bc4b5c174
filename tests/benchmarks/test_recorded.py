"""Campaigns on recorded measurements: the product's stages without a host."""

from itertools import product
from math import log

import numpy as np
import pytest

from benchmarks.recorded import (
    REQUESTS,
    Offer,
    Onward,
    Shot,
    TrainTrees,
    campaign,
    histogram,
    table_offer,
)
from intop.campaign.collect.stage import Collect
from intop.campaign.refine.stage import Refine
from intop.campaign.search.stage import GlobalSearch
from intop.campaign.verify.judge import Judge
from intop.campaign.verify.pick import Pick
from intop.domain.encoding import Variable
from intop.domain.search import Search
from intop.domain.trial import TAIL, PlannedTrial
from intop.domain.verdict import Verdict
from intop.learn.samples import Samples
from intop.run.executor import execute
from intop.run.stage import Stage

ROWS = np.array(
    [(a, b, c) for a, b, c in product((1, 10, 100, 1000), range(5), range(4)) if b + c < 7]
)
SAMPLES = Samples(
    variables=(
        Variable(name="a", key="a", low=1, high=1000, scale="log"),
        Variable(name="b", key="b", high=4),
        Variable(name="c", key="c", high=3),
    ),
    values=ROWS.astype(float),
    measured=tuple((10.0 + 5 * abs(log(a / 100)) + b + b * c,) for a, b, c in ROWS),
)
WORST = int(np.argmax(SAMPLES.log_target))


def small(offer: Offer) -> Offer:
    return offer.with_budget(
        collect_trials=12,
        refine_trials=8,
        folds=2,
        repeats=1,
        tuning_trials=1,
        population=20,
        generations=5,
        judge_pairs=4,
    )


class Recorder:
    """Answers with a row's value and a seed's noise; `asked` are the rows."""

    def __init__(self, offer: Offer, seed: int = 1) -> None:
        self.offer = offer
        self.asked: list[tuple[int, ...]] = []
        self.rng = np.random.default_rng(seed)

    def __call__(self, planned: PlannedTrial, stage: str) -> Shot:
        (row,) = self.offer.space.values([planned.configuration]).astype(int).tolist()
        self.asked.append(tuple(row))
        (value,) = SAMPLES.measured[ROWS.tolist().index(row)]
        value *= np.exp(self.rng.normal(0, 0.02))
        return Shot(planned.configuration, value, value / 2)


@pytest.mark.long
def test_a_whole_campaign_runs_on_a_table_and_asks_for_its_rows_only() -> None:
    offer = small(table_offer(SAMPLES, WORST))
    result = []
    for _ in range(2):
        record = Recorder(offer)
        with campaign(offer, record) as task:
            for stage in (Collect, Refine, TrainTrees, GlobalSearch):
                execute(stage(task))
            picked = execute(Pick(task))
            verdict = execute(Judge(task, picked))
            search = task.store.get(task.subject, Search)
            assert search is not None
            assert verdict == task.store.get(task.subject, Verdict)
            candidates = offer.space.values([c.configuration for c in search.candidates])
        assert set(record.asked) <= set(map(tuple, ROWS.tolist()))
        assert {tuple(row) for row in candidates} <= set(map(tuple, ROWS.tolist()))
        assert verdict.outcome == "gain"
        result.append((record.asked, verdict))
    # A seed's campaign is the same again.
    assert result[0] == result[1]


def test_a_campaign_that_was_left_goes_on_in_its_store(tmp_path) -> None:
    offer = small(table_offer(SAMPLES, WORST))

    class LeftError(Exception):
        pass

    def asked(url: str, limits: tuple[int, ...], stages: tuple[type[Stage], ...]) -> list[str]:
        made: list[str] = []
        for limit in limits:

            def answer(planned: PlannedTrial, _: str, limit: int = limit) -> Shot:
                if len(made) == limit:
                    raise LeftError
                made.append(planned.configuration.digest)
                (row,) = offer.space.values([planned.configuration]).astype(int).tolist()
                (value,) = SAMPLES.measured[ROWS.tolist().index(row)]
                return Shot(planned.configuration, value, value)

            try:
                with campaign(offer, answer, url) as task:
                    for stage in stages:
                        execute(stage(task))
            except LeftError:
                assert len(made) == limit
        return made

    stages = (Collect, Onward)
    whole = asked("sqlite://", (1_000,), stages)
    assert len(whole) > 20
    assert whole == asked(str(tmp_path / "left.db"), (5, 15, 18, 1_000), stages)


@pytest.mark.parametrize(
    ("p99_ms", "tail_ms"), [(20, 20), (20, 9), (210, 30), (10, 10.5), (0.9, 0.4), (500_000, 300)]
)
def test_a_histogram_has_the_p99_and_the_tail_that_were_recorded(
    p99_ms: float, tail_ms: float
) -> None:
    made = histogram(p99_ms, tail_ms)
    assert made.total == REQUESTS
    assert p99_ms == pytest.approx(made.percentile_ms(99), rel=0.0011)
    assert tail_ms == pytest.approx(made.slowest_ms(TAIL), rel=1e-6)


def test_a_table_of_other_numbers_is_refused() -> None:
    odd = Samples(variables=SAMPLES.variables, values=ROWS + 0.5, measured=SAMPLES.measured)
    with pytest.raises(ValueError, match="whole numbers"):
        table_offer(odd, 0)
