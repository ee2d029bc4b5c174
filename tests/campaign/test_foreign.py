"""Models of foreign tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intop.campaign.train import foreign
from intop.campaign.train.foreign import check_size, chosen_families, train_table
from intop.config.table import Roles, read_table
from intop.document.progress import LineProgress
from intop.domain.table import Table
from intop.errors import UsageError
from intop.learn.families import FAMILIES
from intop.learn.tuning_effort import Effort


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Ten configurations of two variables and six features, one of them twice."""
    path = tmp_path / "runs.csv"
    rows = [f"{n},{'abcde'[n % 5]},{n + 1}" for n in (*range(9, -1, -1), 4)]
    path.write_text("\n".join(["x,mode,y", *rows]))
    return read_table(path, Roles(target="y"))


def test_families_are_known_in_any_case_of_letters() -> None:
    assert chosen_families(["svr", "RFR", "Svr"]) == ["SVR", "RFR"]
    assert list(FAMILIES) == chosen_families([])
    with pytest.raises(UsageError, match=r"--family cat: there are DNN, SVR, RFR"):
        chosen_families(["svr", "cat"])


def test_models_are_given_each_configuration_once(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(foreign, "train_all", lambda *args, **_: given.extend(args) or [])
    result = train_table(table, ["SVR"], Effort(folds=2, trials=1, seed=1), progress=LineProgress())
    families, samples = given
    assert (families, len(samples)) == (["SVR"], 10)
    assert samples.measured[5] == (5.0, 5.0)
    assert (result.keys, result.trials, result.configurations) == (("x", "mode"), 11, 10)
    assert (result.target, result.unit) == ("y", "")
    assert result.ceiling is not None


def test_a_table_of_some_size_is_let_pass(table: Table) -> None:
    check_size(table, 5)


def test_too_few_configurations_for_the_folds_are_told(table: Table) -> None:
    few = Table(
        variables=table.variables,
        values=table.values[:4],
        measured=table.measured[:4],
        inventory=replace(table.inventory, configurations=4),
    )
    with pytest.raises(UsageError, match=r"has 4 configurations, and 5 folds need at least 5: mea"):
        check_size(few, 5)


@pytest.mark.parametrize(("name", "most"), [("MOST_FEATURES", 5), ("MOST_NUMBERS", 59)])
def test_a_table_of_too_many_features_is_told(
    table: Table, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(foreign, name, most)
    with pytest.raises(UsageError, match="2 variables make 6 features, and models of 10 conf") as e:
        check_size(table, 5)
    assert "configurations take 5 at most: leave columns out by --ignore" in str(e.value)
