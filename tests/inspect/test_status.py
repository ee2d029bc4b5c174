"""How far a campaign is, by a store that somebody may be writing to."""

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from builders import trials as samples
from builders.campaigns import STUDY, begun, place
from builders.results import CANARY, SWEEP, VERDICT
from intop import process
from intop.config.study import Study, load_study
from intop.document.model import Verbatim
from intop.domain.campaign_status import CampaignStatus, StageStatus
from intop.domain.refined import BestKnown, Decision, Decisions
from intop.domain.sweep import Sweeps
from intop.errors import IntopError, UsageError
from intop.inspect import status_view as report
from intop.inspect.status import campaign_status
from intop.run import effort
from intop.store import opened, opened_to_read, opening

ROOT = Path(__file__).parents[2]
TRIALS = 60


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "intop.toml"
    path.write_text(STUDY.format(folder=tmp_path))
    return load_study(path)


def status(study: Study, *, new: bool = False, now: datetime | None = None) -> CampaignStatus:
    with opened_to_read(study.store) as store:
        workloads = list(study.workloads.values())
        return campaign_status(study, store, ["x86"], workloads, new=new, now=now)


def stage(result: CampaignStatus, name: str) -> StageStatus:
    (subject,) = result.subjects
    (one,) = (stage for stage in subject.stages if stage.name == name)
    return one


def test_a_store_that_is_missing_is_not_made(study: Study) -> None:
    result = status(study)
    assert result.campaign is None
    assert {stage.state for stage in result.subjects[0].stages} == {"to come"}
    assert not Path(study.store).exists()


def test_reading_leaves_the_folder_as_it_is(study: Study, tmp_path: Path) -> None:
    begun(tmp_path, ["ok"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    status(study)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_what_is_read_cannot_be_written(study: Study, tmp_path: Path) -> None:
    campaign, _ = begun(tmp_path, ["ok"])
    with opened_to_read(study.store) as store:
        assert store is not None
        with pytest.raises(OperationalError, match="readonly database"):
            store.finish(campaign)


def test_a_store_of_an_earlier_intop_is_not_brought_up_to_date(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path, ["ok"])
    monkeypatch.setattr(opening, "HEAD", "9999")
    with pytest.raises(UsageError, match="was made by an earlier intop"):
        status(study)


def test_another_programs_database_is_refused(study: Study) -> None:
    with sqlite3.connect(study.store) as connection:
        connection.execute("create table tracks (name text)")
    connection.close()
    with pytest.raises(UsageError, match="database of another program"):
        status(study)


def test_a_stage_under_way_is_counted_by_its_trials(study: Study, tmp_path: Path) -> None:
    begun(tmp_path, ["ok", "ok", "failed", "disturbed", "overloaded"])
    result = status(study)
    screen = stage(result, "screen")
    assert (
        screen.state,
        screen.trials,
        screen.done,
        screen.disturbed,
        screen.failed,
        screen.left,
    ) == ("begun", 8, 4, 1, 1, 4)
    assert stage(result, "collect").state == "to come"
    assert result.trials == 5
    best = result.subjects[0].best
    assert best is not None
    # Of those that can be used; the last one took 6 ms.
    assert (
        round(best.judged_ms),
        best.trials,
        best.configurations,
        best.by_models,
    ) == (6, 1, 2, False)


def test_a_process_at_work_is_named_until_it_ends(study: Study, tmp_path: Path) -> None:
    _, subject = begun(tmp_path, ["ok"])
    ended = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=12)
    before = status(study, now=ended + timedelta(seconds=30))
    assert (before.silent_s, before.is_at_work) == (30.0, False)
    with opened(study.store) as store:
        store.activities.take(subject, "train")
    result = status(study)
    assert result.is_at_work
    (activity,) = result.activities.values()
    assert (activity.stage, activity.is_alive) == ("train", True)
    lines = " ".join(report.campaign_lines(result))
    assert f"at work: {process.title()} at x86 slt train since 20" in lines
    with opened(study.store) as store:
        store.activities.end(subject)
    assert not status(study).is_at_work


def test_results_end_stages_and_skipped_ones_are_left_out(study: Study, tmp_path: Path) -> None:
    campaign, subject = begun(tmp_path, ["ok"] * 2)
    key = "net.core.somaxconn"
    with opened(study.store) as store:
        store.put(subject, samples.ranking(samples.importance(key), chosen=[key]))
        store.write_plan(subject, "refine", [place(0), place(1)])
    result = status(study)
    # It may end before its plan does.
    assert (
        stage(result, "screen").state,
        stage(result, "screen").trials,
        stage(result, "screen").left,
    ) == ("done", 2, 0)
    assert stage(result, "collect").state == "left out"
    assert (stage(result, "refine").state, stage(result, "refine").bound) == ("begun", "at most")
    with opened(study.store) as store:
        store.put(subject, replace(VERDICT, ratio=1.0, ratio_low=0.9, ratio_high=1.1))
        store.finish(campaign)
    result = status(study)
    assert stage(result, "explain").state == "left out"
    assert result.subjects[0].verdict is not None
    assert not result.is_at_work


def test_a_sweep_is_seen_once_it_is_begun(study: Study, tmp_path: Path) -> None:
    campaign, subject = begun(tmp_path, ["ok"] * 2)
    assert "sweep" not in {one.name for one in status(study).subjects[0].stages}
    at = [replace(place(n), rate_rps=50.0 * (n + 1), round=1, arm="tuned") for n in range(2)]
    with opened(study.store) as store:
        store.put(subject, VERDICT)
        store.write_plan(subject, "sweep", at)
        one = samples.trial(stage="sweep", index=0)
        store.add(subject, replace(one, planned=at[0]))
    result = status(study)
    assert (
        stage(result, "sweep").state,
        stage(result, "sweep").trials,
        stage(result, "sweep").done,
    ) == ("begun", 2, 1)
    assert result.subjects[0].sweeps == ()
    with opened(study.store) as store:
        store.add(subject, replace(one, planned=at[1]))
        store.put(subject, Sweeps((SWEEP,)))
        store.finish(campaign)
    result = status(study)
    assert stage(result, "sweep").state == "done"
    assert result.subjects[0].sweeps == (SWEEP,)
    # Another one is under way.
    with opened(study.store) as store:
        store.write_plan(subject, "sweep", [replace(place(2), rate_rps=75.0, round=1, series=2)])
    present = stage(status(study), "sweep")
    assert (present.state, present.trials, present.done) == ("begun", 1, 0)
    (block,) = report.campaign(result)[1:]
    lines = [line for part in block.blocks if isinstance(part, Verbatim) for line in part.lines]
    assert "  at other rates: tuned gain at 50, 100, worse at 150 requests/s" in lines


def test_the_models_best_comes_before_the_lowest(study: Study, tmp_path: Path) -> None:
    _, subject = begun(tmp_path, ["ok"] * 5)
    known = BestKnown(configuration=place(1).configuration, judged_ms=9.0, trials=3)
    with opened(study.store) as store:
        store.put(subject, Decisions(made=(Decision(best=known, improvement=0.1),)))
    best = status(study).subjects[0].best
    assert best is not None
    assert (best.judged_ms, best.trials, best.configurations, best.by_models) == (9.0, 3, 4, True)


def test_a_new_campaign_takes_as_long_as_the_one_before(study: Study, tmp_path: Path) -> None:
    begun(tmp_path, ["ok"] * 5)
    with sqlite3.connect(study.store) as connection:
        for n in range(1, 6):
            at = f"2026-01-01T00:00:{3 * n:02}+00:00"
            connection.execute("update trial set started_at = ? where id = ?", (at, n))
    connection.close()
    now, new = status(study).subjects[0], status(study, new=True).subjects[0]
    assert (3.0, 1) == (now.trial_s, now.measured_in) == (new.trial_s, new.measured_in)
    assert sum(stage.done for stage in new.stages) == 0


def test_trials_of_another_duration_say_nothing_of_the_pace(study: Study, tmp_path: Path) -> None:
    begun(tmp_path, ["ok"] * 5)
    workload = replace(study.workloads["slt"], duration_s=30)
    longer = replace(study, workloads={"slt": workload})
    (new,) = status(longer, new=True).subjects
    assert new.measured_in is None
    assert new.trial_s is not None
    assert new.trial_s > 30


def test_before_a_pilot_the_time_is_a_guess_by_the_durations_that_it_may_try(study: Study) -> None:
    workload = replace(study.workloads["slt"], duration_s=None)
    (subject,) = status(replace(study, workloads={"slt": workload})).subjects
    assert subject.awaits_pilot
    assert subject.trial_s is not None
    # 1,000 requests at 100/s take 10 s, and the third duration of the pilot is 40 s.
    assert 40 < subject.trial_s < 50
    assert None not in (subject.left_s, subject.most_s)
    assert report.pace(subject).endswith("s; the pilot chooses")


def test_tune_connects_once_before_the_models_and_once_after_them(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_s(connecting_s: float) -> float:
        monkeypatch.setattr(effort, "STAGE_S", dict.fromkeys(effort.STAGE_S, connecting_s))
        result = campaign_status(study, None, ["x86"], list(study.workloads.values()))
        (subject,) = result.subjects
        return sum(stage.left_s or 0.0 for stage in subject.stages)

    assert left_s(100.0) - left_s(0.0) == pytest.approx(200.0)


def test_longer_trials_of_a_verdict_say_nothing_of_the_pace(study: Study, tmp_path: Path) -> None:
    begun(tmp_path, ["ok"] * 5)
    with sqlite3.connect(study.store) as connection:
        connection.execute("update planned set stage = 'judge'")
    connection.close()
    assert status(study).subjects[0].measured_in == 1
    longer = replace(study, budget=replace(study.budget, judge_duration_s=99))
    assert status(longer).subjects[0].measured_in is None


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("trial", "started_at", "yesterday"),
        ("trial", "started_at", "2026-01-01T00:00:00"),
        ("trial", "seconds", -1.0),
        ("trial", "seconds", 1e300),
        ("trial", "judged_ms", 0.0),
        ("trial", "status", "fine"),
        ("planned", "configuration", "[1]"),
        ("result", "created_at", "x"),
    ],
)
def test_what_nobody_of_us_wrote_is_named(
    study: Study, tmp_path: Path, table: str, column: str, value: object
) -> None:
    _, subject = begun(tmp_path, ["ok"])
    with opened(study.store) as store:
        store.put(subject, VERDICT)
    with sqlite3.connect(study.store) as connection:
        connection.execute(f"update {table} set {column} = ?", (value,))
    connection.close()
    with pytest.raises(IntopError, match="is not as this intop writes it"):
        status(study)


WRITER = f"""
import sys
from builders.campaigns import add
from intop.store import Subject, opened
with opened(sys.argv[1]) as store:
    subject = Subject(campaign=store.latest("mine"), arch="x86", workload="slt")
    for n in range({TRIALS}):
        add(store, subject, n)
        print(n + 1, flush=True)
"""


def test_it_is_read_while_another_process_measures(study: Study, tmp_path: Path) -> None:
    """Nobody waits for nobody: what the writer says it has stored, is seen at once."""
    begun(tmp_path, [], planned=TRIALS)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, study.store],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )
    assert writer.stdout is not None
    seen: list[int] = []
    for line in writer.stdout:
        done = stage(status(study), "screen").done
        assert int(line) <= done
        seen.append(done)
    assert writer.wait(timeout=60) == 0
    assert (sorted(seen), TRIALS) == (seen, stage(status(study), "screen").done)
    assert len(set(seen)) > 1


def test_a_canary_that_ended_early_is_done_and_its_lost_blocks_count(
    study: Study, tmp_path: Path
) -> None:
    _, subject = begun(tmp_path, ["ok"] * 2)
    at = [replace(place(n), round=n or None, arm="canary") for n in range(3)]
    with opened(study.store) as store:
        store.write_plan(subject, "canary", at)
        for planned, status_ in zip(at[:2], ("ok", "disturbed"), strict=True):
            made = samples.trial(stage="canary", index=planned.index, status=status_)
            store.add(subject, replace(made, planned=planned))
    present = stage(status(study), "canary")
    assert (present.state, present.trials, present.done) == ("begun", 3, 2)
    assert present.bound == "at most"
    with opened(study.store) as store:
        store.put(subject, CANARY)
    present = stage(status(study), "canary")
    assert (present.state, present.trials) == ("done", 2)
