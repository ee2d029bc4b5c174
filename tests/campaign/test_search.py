"""What a search is given, and what it keeps."""

import pytest

from builders.collected import KEY, check, collect
from builders.testbeds import FakeTestbed
from builders.trials import training
from intop.campaign.search import stage as search
from intop.domain.search import Search
from intop.domain.training import TREE_MODELS, FittedFamily
from intop.learn import surrogate
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples


def test_a_search_fits_its_models_to_the_same(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(testbed)

    class EnoughError(Exception):
        """What was to be seen was seen."""

    def fit(_: object, samples: Samples, __: int) -> None:
        check(samples)
        raise EnoughError

    monkeypatch.setattr(surrogate, "fit_trees", fit)
    testbed.task.store.put(testbed.task.subject, training(keys=(KEY,)))
    with pytest.raises(EnoughError):
        search.search(testbed.task)


def test_a_search_keeps_each_tree_models_own_winner(testbed: FakeTestbed) -> None:
    """As its own search found it, which is its best prediction, whatever the others say."""
    collect(testbed)
    task = testbed.task
    fitted = tuple(
        FittedFamily(family=name, hyperparameters=dict(family.defaults), inner_score=0.0)
        for name, family in FAMILIES.items()
    )
    task.store.put(task.subject, training(keys=(KEY,), fitted=fitted))
    result = search.search(task)
    assert tuple(winner.model for winner in result.winners) == TREE_MODELS
    assert tuple(name for name, family in FAMILIES.items() if family.is_tree) == TREE_MODELS
    lowest = {run.model: run.best_ms[-1] for run in result.convergences}
    assert [lowest[w.model] for w in result.winners] == [w.predicted_ms for w in result.winners]
    assert {candidate.model for candidate in result.candidates} == {"ensemble"}
    assert result == task.store.get(task.subject, Search)
