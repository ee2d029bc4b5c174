import numpy as np
import pytest

from intop.learn.families import FAMILIES
from intop.learn.families.part_of_rows import PartOfRows
from intop.learn.hyperparameters import MOST_SEARCHED
from intop.learn.tuning import limits


@pytest.mark.parametrize(("rows", "learned"), [(8, 8), (10, 10), (30, 10)])
def test_learns_from_a_part_of_more_rows_than_it_can_take(rows: int, learned: int) -> None:
    from sklearn.neighbors import KNeighborsRegressor

    places = np.arange(float(rows))
    nearest = PartOfRows(KNeighborsRegressor(1), most=10, seed=1).fit(places[:, None], places)
    known = nearest.predict(places[:, None]) == places
    assert learned == known.sum()


def test_what_does_not_use_all_rows_says_so() -> None:
    assert limits(list(FAMILIES), 1_000) == []
    svr, blend, searched = limits(["SVR", "RFR", "Blend"], 50_000)
    assert svr.startswith("SVR learns from 5,000 random configurations of 50,000: its time grows")
    assert blend.endswith("its time grows with their cube")
    assert f"searched on {MOST_SEARCHED:,} random configurations of 50,000" in searched
    assert all(f.growth for f in FAMILIES.values() if f.most_rows is not None)
