"""Models of foreign tables."""

from dataclasses import replace
from pathlib import Path

import pytest

from intop.config.table import Roles, read_table
from intop.domain.table import Table
from intop.errors import UsageError
from intop.learn.families import FAMILIES
from intop.pipeline import foreign
from intop.pipeline.foreign import chosen_families, train_table
from intop.report.progress import LineProgress


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Ten configurations of two variables and six features, one of them twice."""
    path = tmp_path / "runs.csv"
    rows = [f"{n},{'abcde'[n % 5]},{n + 1}" for n in (*range(9, -1, -1), 4)]
    path.write_text("\n".join(["x,mode,y", *rows]))
    return read_table(path, Roles(target="y"))


def test_families_are_known_in_any_case_of_letters() -> None:
    assert ["SVR", "RFR"] == chosen_families(["svr", "RFR", "Svr"])
    assert list(FAMILIES) == chosen_families([])
    with pytest.raises(UsageError, match=r"--family cat: there are DNN, SVR, RFR"):
        chosen_families(["svr", "cat"])


def test_a_table_is_fitted_as_a_campaigns_trials_are(table: Table) -> None:
    found = train_table(table, ["SVR"], folds=2, trials=1, seed=1, progress=LineProgress())
    assert (("x", "mode"), 11, 10) == (found.keys, found.trials, found.configurations)
    assert ["SVR"] == [fitted.family for fitted in found.fitted]
    (error,) = found.errors
    assert ("SVR", 11) == (error.family, error.trials)


def test_too_few_configurations_for_the_folds_are_told(table: Table) -> None:
    few = Table(
        variables=table.variables,
        values=table.values[:4],
        measured=table.measured[:4],
        inventory=replace(table.inventory, configurations=4),
    )
    with pytest.raises(UsageError, match=r"has 4 configurations, and 5 folds need at least 6: mea"):
        train_table(few, ["SVR"], folds=5, trials=1, seed=1, progress=LineProgress())


def test_a_table_of_too_many_features_is_told(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "MOST_FEATURES", 59)
    with pytest.raises(UsageError, match="10 configurations of 6 features are more than 59 numb"):
        train_table(table, ["SVR"], folds=5, trials=1, seed=1, progress=LineProgress())
