"""A feature is a folder, and one line in `intop.features`: nothing else of intop knows of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from builders import watch
from builders.full_campaign import campaign
from builders.testbeds import FakeTestbed
from builders.trials import trial
from builders.watch.stage import Watch, Watched
from builders.watch.view import watched
from intop import features
from intop.campaign.tune import tune
from intop.config.study import load_study
from intop.document.figures import write_figures
from intop.document.machine import to_json
from intop.document.progress import LineProgress
from intop.domain.campaign_status import StageStatus
from intop.features import commands, load, stage_places
from intop.inspect.dry_run import DryRunRequest, dry_run, of_tune
from intop.inspect.status import campaign_status
from intop.report.gather import gather
from intop.run import registry
from intop.run.context import Context, Task
from intop.run.executor import execute
from intop.store import opened

WATCH = Path(watch.__file__).parent


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(features, "FEATURES", (*features.FEATURES, "builders.watch"))
    forget()
    yield
    forget()


def forget() -> None:
    """Look at the features anew."""
    for function in (
        features.features,
        features.tune_places,
        features.own_places,
        features._result_names,
    ):
        function.cache_clear()


@pytest.fixture
def by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    feature = replace(watch.FEATURE, stages={}, own_stages=watch.FEATURE.stages)
    monkeypatch.setattr(watch, "FEATURE", feature)
    forget()


@pytest.fixture
def made_up(tmp_path: Path, testbed: FakeTestbed) -> Iterator[Task]:
    """A task of a campaign that has all that `tune` finds out, but for the watching."""
    study = load_study(campaign(tmp_path, archs=("x86",)))
    budget = replace(study.budget, explain_rounds=0)
    study = replace(study, clusters={"x86": study.clusters["x86"]}, budget=budget)
    with opened(study.store) as store:
        latest = store.latest(study.name)
        assert latest is not None
        context = Context(
            study=study,
            store=store,
            campaign=latest,
            connect=lambda address: pytest.fail(f"connects to {address}"),
            progress=LineProgress(testbed.output),
            archs=("x86",),
            workloads=tuple(study.workloads.values()),
            testbeds=lambda _: nullcontext((testbed,)),
        )
        (task,) = context.subjects()
        collected = trial()
        store.write_plan(task.subject, "collect", [collected.planned])
        store.add(task.subject, collected)
        yield task


def status_of(task: Task, *asked: str) -> StageStatus | None:
    """The stage, where `intop status` has it."""
    context = task.context
    results = campaign_status(
        context.study, task.store, context.archs, context.workloads, asked=asked
    )
    return next((s for s in results.subjects[0].stages if s.name == "watch"), None)


def test_every_stage_has_its_name_and_says_what_it_is_for() -> None:
    assert list(stage_places()) == [stage.name for stage in registry.stages()]
    assert all(stage.description for stage in registry.stages())
    assert {need for s in registry.stages() for need in s.needs} <= stage_places().keys()


def test_a_new_feature_touches_five_files_at_most() -> None:
    files = [path.name for path in WATCH.glob("*.py")]
    assert sorted(files) == ["__init__.py", "command.py", "stage.py", "view.py"]
    source = Path(features.__file__).parent
    assert not [path for path in source.rglob("*.py") if "watch:" in path.read_text()]


def test_its_result_is_kept_and_drawn(testbed: FakeTestbed, tmp_path: Path) -> None:
    result = execute(Watch(testbed.task))
    assert testbed.task.store.get(testbed.task.subject, Watched) == result
    assert json.loads(to_json(result)) == {"judged_ms": list(result.judged_ms)}
    assert len(watched("x86 slt", result).blocks) > 0
    assert [path.name for path in write_figures(tmp_path, "svg", {"x86 slt": result})] == [
        "x86-slt-watch.svg"
    ]


def test_its_command_is_among_those_of_intop(tmp_path: Path) -> None:
    own = load(commands()["watch"])
    assert own.name == "watch"
    done = CliRunner().invoke(own, ["--dry-run", "-c", str(campaign(tmp_path, archs=("x86",)))])
    assert done.exit_code == 0, done.output
    assert "watch" in done.output


def test_it_is_carried_out_and_goes_on_after_a_kill(testbed: FakeTestbed) -> None:
    testbed.dies_after = 3
    with pytest.raises(KeyboardInterrupt):
        execute(Watch(testbed.task))
    testbed.dies_after = None
    results = execute(Watch(testbed.task))
    assert testbed.measured == [0, 1, 2, 3]
    assert results == execute(Watch(testbed.task))
    assert 4 == len(results.judged_ms) == len(testbed.measured)


def test_tune_ends_with_it(made_up: Task, testbed: FakeTestbed) -> None:
    tune(made_up.context, lambda _: None)
    assert testbed.measured == [0, 1, 2, 3]
    tune(made_up.context, lambda _: None)
    assert len(testbed.measured) == 4


def test_tune_leaves_out_what_is_begun_by_itself(
    made_up: Task, testbed: FakeTestbed, by_itself: None
) -> None:
    tune(made_up.context, lambda _: None)
    assert testbed.measured == []


def test_its_state_is_seen(made_up: Task, testbed: FakeTestbed) -> None:
    def seen() -> tuple[str, int, int]:
        results = status_of(made_up)
        assert results is not None
        return results.state, results.done, results.trials

    assert seen() == ("to come", 0, 4)
    testbed.dies_after = 1
    with pytest.raises(KeyboardInterrupt):
        execute(Watch(made_up))
    assert seen() == ("begun", 1, 4)
    testbed.dies_after = None
    execute(Watch(made_up))
    assert seen() == ("done", 4, 4)


def test_one_by_itself_is_seen_once_it_is_begun(made_up: Task, by_itself: None) -> None:
    assert status_of(made_up) is None
    execute(Watch(made_up))
    results = status_of(made_up)
    assert results is not None
    assert (results.state, results.done) == ("done", 4)


def test_one_that_tune_does_not_want_is_seen_where_it_is_asked_for(
    made_up: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watch, "is_wanted", classmethod(lambda cls, prospect: False))
    assert status_of(made_up) is None
    assert status_of(made_up, "watch") is not None


@pytest.mark.parametrize("stages", [lambda: ("watch",), of_tune])
def test_a_dry_run_has_it(made_up: Task, stages: Callable[[], tuple[str, ...]]) -> None:
    context = made_up.context
    results = dry_run(
        context.study,
        made_up.store,
        context.archs,
        context.workloads,
        DryRunRequest(stages=stages()),
    )
    (intended,) = results.intended
    assert next(s for s in intended.stages if s.name == "watch").left == 4
    assert intended.lacking == ()


def test_a_report_has_it_among_the_stages(made_up: Task) -> None:
    execute(Watch(made_up))
    (findings,) = gather(made_up.context).findings
    record = next(record for record in findings.stages if record.stage == "watch")
    assert (
        record.stage,
        record.description,
        record.measured,
    ) == ("watch", "whether the default stays as it is", 4)
