"""Advice from stores: a made-up one, the recorded campaign, and several at once."""

from pathlib import Path

import pytest

from builders.full_campaign import ONE, OTHER, campaign
from intop.errors import ResultMissingError
from intop.report.advice import Advice
from intop.report.gathered_advice import gather_advice
from intop.store import opened
from test_recorded_campaign import unpacked


@pytest.fixture(scope="module", name="recorded")
def _recorded(tmp_path_factory: pytest.TempPathFactory) -> Advice:
    path = unpacked("finished", tmp_path_factory.mktemp("recorded"))
    with opened(str(path)):
        pass  # brings it up to date
    return gather_advice([str(path)])


def test_the_recorded_campaign_has_a_pair_of_keys_that_help_only_together(
    recorded: Advice,
) -> None:
    x86, arm = recorded.situations
    assert (x86.conditions.arch, arm.conditions.arch) == ("x86", "arm")
    assert [one.verdict.short for one in recorded.verdicts] == ["gain", "undecided"]
    beside = [one for one in recorded.changes_in(x86) if one.beside_others.helped]
    assert [one.name.removeprefix("net.ipv4.") for one in beside] == [
        "tcp_workaround_signed_windows raised",
        "tcp_window_scaling lowered",
    ]
    assert not any(one.by_itself.helped for one in recorded.changes)
    assert all(one.by_itself.not_measured for one in recorded.changes_in(arm))
    assert {"web-server-benchmark-2016", "arm winner", "compromise"} < {
        one.name for one in recorded.sets
    }


def test_every_trial_behind_a_verdict_is_told_with_its_place(recorded: Advice) -> None:
    (first, rows), _ = recorded.trials
    assert first.title == "recorded 1, x86 slt"
    judged = [row for row in rows if row.stage == "judge"]
    assert [*range(14)] == [row.index for row in judged]
    assert {row.arm for row in judged} == {"default", "XGBoost"}
    assert sum(row.stage == "explain" for row in rows) == 194
    assert all(row.judged_ms for row in judged)


def test_an_explanation_of_another_winner_is_not_heeded(tmp_path: Path) -> None:
    path = campaign(tmp_path)
    result = gather_advice([str(path.with_name("made-up.db"))])
    assert [one.source.arch for one in result.verdicts] == ["x86", "arm"]
    assert [one.is_explained for one in result.verdicts] == [True, False]
    assert {one.keys for one in result.changes} == {(ONE,), (OTHER,)}


def test_several_stores_are_told_apart(tmp_path: Path) -> None:
    stores = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = campaign(tmp_path / name, archs=("x86",)).with_name("made-up.db")
        stores.append(str(path.rename(tmp_path / f"{name}.db")))
    result = gather_advice(stores)
    titles = [f"{name}: made-up 1, x86 slt" for name in ("a", "b")]
    assert titles == [one.source.title for one in result.verdicts]
    (situation,) = result.situations
    assert situation.campaigns == 2
    assert {one.winners for one in result.changes} == {2}


def test_only_what_was_asked_for_is_told(tmp_path: Path) -> None:
    store = str(campaign(tmp_path).with_name("made-up.db"))
    assert [one.source.arch for one in gather_advice([store], "arm").verdicts] == ["arm"]
    with pytest.raises(ResultMissingError, match="no verdict and no contest is stored"):
        gather_advice([store], workload="dlt")


def test_too_little_is_no_advice(tmp_path: Path) -> None:
    store = str(campaign(tmp_path, rest=False).with_name("made-up.db"))
    with pytest.raises(ResultMissingError, match="no verdict and no contest is stored"):
        gather_advice([store])
    with pytest.raises(ResultMissingError, match=r"there is no store .*none\.db yet"):
        gather_advice([str(tmp_path / "none.db")])
