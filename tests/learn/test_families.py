from itertools import product

import numpy as np
import pytest

from builders.trials import table
from intop.domain.encoding import Variable
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples
from intop.learn.surrogate import fit, predicted
from intop.learn.tuning import limits
from intop.learn.tuning_effort import MOST_SEARCHED, Effort

OPTIONS = 7


@pytest.fixture
def samples() -> Samples:
    """On/off options of which one matters only together with another, over a factor of 30."""
    values = np.array(list(product((0.0, 1.0), repeat=OPTIONS)))
    log_target = 2 + 2 * values[:, 0] + 1.5 * values[:, 1] * values[:, 2] - 0.3 * values[:, 3]
    names = [f"option {n}" for n in range(OPTIONS)]
    return Samples(
        variables=tuple(Variable(name=name, key=name) for name in names),
        values=values,
        measured=tuple((target,) for target in np.exp(log_target).tolist()),
    )


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "DNN"])
def test_an_interaction_is_learned_without_any_search(name: str, samples: Samples) -> None:
    order = np.random.default_rng(1).permutation(len(samples))
    known, unseen = samples.rows(order[:60]), samples.rows(order[60:])
    family = FAMILIES[name]
    model = fit(family.build(samples.variables, dict(family.defaults), 1), known)
    error = predicted(model, unseen.values) - unseen.log_target
    # A line alone leaves 0.31 of the interaction.
    assert np.abs(error).mean() < 0.15


@pytest.mark.parametrize("name", FAMILIES)
def test_pca_is_not_for_trees(name: str) -> None:
    import optuna

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    chosen = {FAMILIES[name].suggest(study.ask())["pca_variance"] for _ in range(20)}
    assert (chosen == {0.0}) == FAMILIES[name].is_tree


def test_what_does_not_use_all_rows_says_so() -> None:
    effort = Effort(trials=1, seed=1)
    few, many = (table(np.zeros((rows, 1)), np.zeros(rows)) for rows in (1_000, 50_000))
    assert limits(list(FAMILIES), few, effort) == []
    svr, blend, searched = limits(["SVR", "RFR", "Blend"], many, effort)
    assert svr.startswith("SVR learns from 5,000 random configurations of 50,000: its time grows")
    assert blend.endswith("its time grows with their cube")
    assert f"searched on {MOST_SEARCHED:,} random configurations of 50,000" in searched
    assert all(f.growth for f in FAMILIES.values() if f.most_rows is not None)
