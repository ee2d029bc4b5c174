"""What the benchmarks of the search hold algorithms and penalties against."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import penalty, search_speed
from benchmarks.models import UnusableError
from intop.domain.encoding import Matrix
from intop.domain.training import FittedFamily
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples
from intop.learn.surrogate import Predictor, fit_trees
from samples import table


def few_trees(samples: Samples, seed: int) -> Predictor:
    """Two families, quickly fitted."""
    fitted = [
        FittedFamily(
            family=name,
            hyperparameters={**FAMILIES[name].defaults, "trees": 20},
            inner_score=0.0,
        )
        for name in ("RFR", "XGBoost")
    ]
    return fit_trees(fitted, samples, seed)


def test_the_space_has_forty_parameters_and_surfaces_differ() -> None:
    space = search_speed.space()
    assert 40 == len(space.parameters) == len(space.columns)
    features = space.encode(space.decode(np.random.default_rng(1).random((50, 40))))

    def surface(seed: int) -> Matrix:
        return search_speed.surface(features, np.random.default_rng(seed))

    assert np.array_equal(surface(1), surface(1))
    assert np.corrcoef(surface(1), surface(2))[0, 1] < 0.9


def test_both_tables_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_speed, "trees", few_trees)
    monkeypatch.setattr(search_speed, "POPULATION", 10)
    monkeypatch.setattr(search_speed, "GENERATIONS", 3)
    lines = search_speed.algorithms(20, 2, 1)
    assert [line.split("|")[1].strip() for line in lines[4:]] == list(search_speed.ALGORITHMS)
    assert sum(int(line.split("|")[4]) for line in lines[4:]) >= 2
    printed = "\n".join(search_speed.speed(20, 2))
    assert "share inside the models' predictions" in printed
    assert "| 40 one by one, by the models' predict, scaled from 2 |" in printed


def test_a_penalty_is_judged_by_what_was_measured_of_the_pick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(penalty, "trees", few_trees)
    rng = np.random.default_rng(1)
    values = rng.random((60, 3))
    above = penalty.run(table(values, 3 + 3 * values[:, 0]), 40, 1)
    assert len(penalty.WEIGHTS) == len(above)
    assert all(0 <= one < 1 for one in above)


def test_the_labs_table_stands_before_those_of_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match="no tables in search/"):
        penalty.tables(tmp_path)
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "published_x.csv").write_text("a\n")
    (tmp_path / "search" / "one.csv").write_text("a,time\n1,2\n2,3\n")
    (lab_name, lab), (name, found) = penalty.tables(tmp_path)
    assert ("lab slt", "one") == (lab_name, name)
    assert len(lab) > 100
    assert [[1], [2]] == found.values.tolist()
