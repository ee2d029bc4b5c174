"""What a report gathers from a store, without any host."""

import pickle
from dataclasses import replace
from pathlib import Path

import click
import pytest

from builders.full_campaign import ONE, OTHER, TUNED, campaign
from builders.results import BROKEN_CPU, SWEEP
from intop.cli import cli
from intop.command.running import stored_context
from intop.domain.sweep import Arm, Sweeps
from intop.domain.verdict import Verdict
from intop.errors import ResultMissingError
from intop.report.findings import Report
from intop.report.gather import gather
from intop.store import Subject, opened


def gathered(path: Path, arch: str | None = None) -> Report:
    with stored_context(path, arch, None) as context:
        return gather(context)


def test_all_that_is_stored_is_gathered(tmp_path: Path) -> None:
    result = gathered(campaign(tmp_path))
    x86, arm = result.findings
    assert (x86.title, arm.title) == ("x86 slt", "arm slt")
    assert (result.study, result.seed, result.tool_versions) == ("made-up", 7, ("0.1.0",))
    assert result.compared is not None
    assert x86.verdict is not None
    assert x86.verdict.outcome == "gain"
    assert x86.deployment is not None
    assert x86.deployment.values == {ONE: "64"}
    assert x86.judged is not None
    assert [(p.default_ms, p.tuned_ms) for p in x86.judged.pairs][:2] == [
        (1.5, 0.5),
        (1.6, 0.52),
    ]
    assert len(x86.sentinels.sentinels) == 4 + 5  # the screening's, and the pairs', not apply's
    assert arm.verdict is not None
    assert arm.verdict.outcome == "no significant gain"
    assert arm.deployment is None
    assert (*x86.missing, *arm.missing) == ()


def test_another_process_can_hand_it_over(tmp_path: Path) -> None:
    result = gathered(campaign(tmp_path))
    assert result == pickle.loads(pickle.dumps(result))


def test_sweeps_are_those_with_the_winner(tmp_path: Path) -> None:
    path = campaign(tmp_path, archs=("x86",))
    with opened(str(tmp_path / "made-up.db")) as store:
        latest = store.latest("made-up")
        assert latest is not None
        subject = Subject(campaign=latest, arch="x86", workload="slt")
        (x86,) = gathered(path, "x86").findings
        assert x86.sweeps == ()
        store.put(subject, Sweeps((SWEEP,)))
        assert gathered(path, "x86").findings[0].sweeps == ()
        own = replace(SWEEP, arms=(SWEEP.arms[0], Arm(name="tuned", configuration=TUNED)))
        store.put(subject, Sweeps((SWEEP, own)))
        assert (own,) == gathered(path, "x86").findings[0].sweeps


def test_a_gain_that_costs_too_much_is_neither_deployed_nor_explained(tmp_path: Path) -> None:
    path = campaign(tmp_path, archs=("x86",))
    with opened(str(tmp_path / "made-up.db")) as store:
        latest = store.latest("made-up")
        assert latest is not None
        subject = Subject(campaign=latest, arch="x86", workload="slt")
        verdict = store.get(subject, Verdict)
        assert verdict is not None
        store.put(subject, replace(verdict, guardrails=(BROKEN_CPU,)))
    (x86,) = gathered(path, "x86").findings
    assert (x86.deployment, x86.undeployable, x86.missing) == (None, "", ())


def test_what_was_refused_is_told_by_reason(tmp_path: Path) -> None:
    (x86,) = gathered(campaign(tmp_path, archs=("x86",)), "x86").findings
    assert [(r.reason, r.attempts) for r in x86.refused_trials] == [
        ("disturbed", 2),
        ("refused value", 1),
        ("pruned", 1),
    ]
    (screen, judge, apply) = x86.stages
    assert (screen.stage, screen.planned, screen.measured) == ("screen", 11, 11)
    assert screen.by_status == {"ok": 7, "failed": 1, "disturbed": 2, "pruned": 1}
    assert (judge.measured, apply.measured) == (10, 2)
    keys = {key for reason in x86.refused_keys for key in reason.keys}
    assert OTHER not in keys
    assert any("doesn't have it" in reason.reason for reason in x86.refused_keys)


def test_what_is_not_there_yet_is_named_with_its_command(tmp_path: Path) -> None:
    path = campaign(tmp_path, archs=("x86",), rest=False)
    result = gathered(path)
    x86, arm = result.findings
    assert x86.ranking is not None
    assert x86.verdict is None
    # Not all of the design is measured yet; an ablation may turn out not to be wanted.
    assert [m.stage for m in x86.missing] == ["collect", "refine", "train", "search", "verify"]
    assert arm.missing[0].command == "intop screen --arch arm --workload slt"
    assert result.compared is None
    assert "Only x86 was measured" in result.not_compared
    assert "Only x86 was asked for" in gathered(path, "x86").not_compared


def test_a_study_without_that_key_by_now_is_told_in_place_of_a_deployment(tmp_path: Path) -> None:
    path = campaign(tmp_path, archs=("x86",))
    text = path.read_text().replace("[study]", '[study]\nparameters = ["net.ipv4.*"]')
    path.write_text(text)
    (x86,) = gathered(path, "x86").findings
    assert x86.deployment is None
    assert f"{ONE}, which the study no longer tunes" in x86.undeployable


def test_without_a_campaign_or_trials_there_is_nothing_to_report(tmp_path: Path) -> None:
    path = campaign(tmp_path, archs=())
    with pytest.raises(ResultMissingError, match="no trials yet"):
        gathered(path)
    path.write_text(path.read_text().replace("made-up.db", "other.db"))
    with (
        click.Context(cli, info_name="report"),
        pytest.raises(ResultMissingError, match="no campaign of made-up"),
    ):
        gathered(path)
    with opened(str(tmp_path / "other.db")) as store:
        assert store.latest("made-up") is None  # none was begun by asking
