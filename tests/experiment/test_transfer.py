"""Two architectures crosswise, with testbeds that say what each trial comes to."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from builders.results import VERDICT
from builders.shipped_studies import lab_study
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import training, trial
from intop.document.machine import to_json
from intop.document.progress import LineProgress
from intop.document.text import show
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.multi_arm import COMPROMISE, Crosswise
from intop.domain.training import FittedFamily
from intop.domain.trial import PlannedTrial
from intop.errors import ResultMissingError, UsageError
from intop.experiment.transfer import stage as transfer
from intop.experiment.transfer import warm_starts
from intop.learn.families import FAMILIES
from intop.run.campaigns import new
from intop.run.context import Context, Task
from intop.store import Subject, opened

WAIT, QUEUE, SLOW = (
    "net.ipv4.tcp_fin_timeout",
    "net.core.somaxconn",
    "net.ipv4.tcp_slow_start_after_idle",
)
BOTH = ("x86", "arm")
OWN = {"x86": Configuration({WAIT: "20", QUEUE: "100"}), "arm": Configuration({QUEUE: "9000"})}
ROUNDS = 2


def p99_us(arch: str, configuration: Configuration) -> int:
    """x86 wants short queues and little waiting, arm hardly cares for waiting, and has no QUEUE."""
    wait = int(configuration.values.get(WAIT, "60"))
    queue = int(configuration.values.get(QUEUE, "4096"))
    return 1000 + 20 * wait + (queue // 4 if arch == "x86" else -(queue // 100))


@dataclass
class Site:
    """A context with both architectures, and the testbed of each."""

    context: Context
    testbeds: dict[str, FakeTestbed]

    def task(self, arch: str) -> Task:
        return self.testbeds[arch].task

    def collect(self, arch: str, count: int = 20) -> None:
        """Trials of a design, and models of them."""
        task, keys = self.task(arch), (WAIT, QUEUE) if arch == "x86" else (WAIT, SLOW)
        made = [
            Configuration({k: v for k, v in values.items() if k in keys})
            for values in (
                {WAIT: str(10 + 4 * n), QUEUE: str(50 + 731 * n % 8000), SLOW: str(n % 2)}
                for n in range(count)
            )
        ]
        trials = [trial(c, p99_us(arch, c), index=n) for n, c in enumerate([DEFAULT, *made])]
        task.store.write_plan(task.subject, "collect", [t.planned for t in trials])
        for one in trials:
            task.store.add(task.subject, one)
        task.store.put(
            task.subject,
            probe_of(
                {WAIT: "60", QUEUE: "4096", SLOW: "1"} if arch == "x86" else {WAIT: "60", SLOW: "1"}
            ),
        )
        small = {**FAMILIES["RFR"].defaults, "trees": 5}
        task.store.put(
            task.subject,
            training(
                keys=keys,
                fitted=(FittedFamily(family="RFR", hyperparameters=small, inner_score=0.0),),
            ),
        )

    def verdict(self, arch: str, configuration: Configuration) -> None:
        result = replace(VERDICT, configuration=configuration)
        self.task(arch).store.put(self.task(arch).subject, result)

    def transfer(self, **options: Any) -> transfer.Transfer:
        return transfer.transfer(
            self.context, BOTH, self.context.workloads[0], **{"rounds": ROUNDS, **options}
        )

    @property
    def measured(self) -> dict[str, int]:
        return {arch: len(testbed.measured) for arch, testbed in self.testbeds.items()}


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    study = lab_study()
    study = replace(
        study,
        clusters={arch: c[:1] for arch, c in study.clusters.items()},
        budget=replace(study.budget, population=20, generations=5),
    )
    message = StringIO()
    testbeds: dict[str, FakeTestbed] = {}
    monkeypatch.setattr(warm_starts, "REPEATS", 1)
    in_turn = lambda work, jobs, dask=None: [work(*job) for job in jobs]  # noqa: E731
    monkeypatch.setattr(warm_starts, "each", in_turn)
    with opened(str(tmp_path / "store.db")) as store:
        context = Context(
            study=study,
            store=store,
            campaign=new(store, study),
            connect=lambda address: pytest.fail(f"connects to {address}"),
            progress=LineProgress(message),
            archs=BOTH,
            workloads=(study.workloads["slt"],),
            testbeds=lambda task: nullcontext((testbeds[task.subject.arch],)),
        )
        testbeds |= {arch: fake(context, arch, message) for arch in BOTH}
        yield Site(context, testbeds)


def fake(context: Context, arch: str, output: StringIO) -> FakeTestbed:
    workload = context.workloads[0]
    subject = Subject(campaign=context.campaign, arch=arch, workload=workload.name)
    task = Task(context=context, subject=subject, workload=workload)

    def latency(planned: PlannedTrial) -> int:
        # A little noise, or an interval would have no width.
        return p99_us(arch, planned.configuration) + planned.index % 3

    return FakeTestbed(task, output=output, latency=latency)


@pytest.fixture(name="tuned")
def _tuned(site: Site) -> Site:
    for arch in BOTH:
        site.collect(arch)
    site.verdict("x86", OWN["x86"])
    site.verdict("arm", Configuration({WAIT: "30"}))
    return site


@pytest.fixture
def no_warm_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes most of the time, and has no part in what is measured."""
    monkeypatch.setattr(warm_starts, "warm_starts", lambda *_: ([], []))


def test_both_winners_and_the_compromise_meet_on_both(
    tuned: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tuned.transfer()
    arms = ["default", "x86 winner", "arm winner", COMPROMISE]
    assert list(BOTH) == [one.arch for one in result.crosswise]
    for one in result.crosswise:
        assert set(arms) == {c.name for c in one.contest.contestants}
        assert one == tuned.task(one.arch).store.get(tuned.task(one.arch).subject, Crosswise)
    assert tuned.measured == {"x86": 4 * ROUNDS, "arm": 4 * ROUNDS}
    by_name = {c.name: c for c in result.crosswise[1].contest.contestants}
    # The arm host has no such queue: that is left out, and said.
    assert by_name["x86 winner"].configuration.values == {WAIT: "20"}
    assert list(by_name["x86 winner"].left_out) == [QUEUE]
    assert by_name["x86 winner"].outcome == "gain"
    assert pytest.approx(result.crosswise[0].contest.ratio_level) == 1 - 0.05 / 3
    worst = {case.name: case for case in result.worst_cases}
    assert set(arms[1:]) == set(worst)
    assert worst["x86 winner"].arch == "arm"
    assert result.compromise is not None
    assert set(result.compromise.left_out) == {QUEUE}
    assert int(result.compromise.configuration.values[WAIT]) < 60
    show(*transfer.transfer_sections(result))
    printed = capsys.readouterr().out
    assert "measured gain, crosswise" in printed
    assert f"{len(result.warm_starts[0].common)} parameters in common: {WAIT}" in printed
    assert '"worst_cases"' in to_json(result)


def test_trials_alone_are_told_both_ways_and_nothing_is_measured(tuned: Site) -> None:
    result = tuned.transfer(measure=False, rounds=None)
    assert [(w.source, w.target) for w in result.warm_starts] == [("x86", "arm"), ("arm", "x86")]
    first, second = result.warm_starts
    assert (first.common, first.own, second.own) == ((WAIT,), (SLOW,), (QUEUE,))
    assert [p.configurations for p in first.curve] == [10]
    assert pytest.approx(sum(first.shares.values())) == 1
    assert tuned.measured == {"x86": 0, "arm": 0}
    assert result.crosswise == ()


def test_what_is_missing_is_named_and_the_rest_done(site: Site) -> None:
    with pytest.raises(ResultMissingError, match="slt: there is no verdict yet"):
        site.transfer()
    for arch in BOTH:
        site.collect(arch)
    site.verdict("x86", OWN["x86"])
    result = site.transfer()
    assert (len(result.warm_starts), result.crosswise) == (2, ())
    (line,) = result.missing
    assert "arm slt: there is no verdict yet" in line
    assert "intop verify --arch arm --workload slt" in line


@pytest.mark.usefixtures("no_warm_start")
def test_a_killed_measurement_goes_on_with_the_same(tuned: Site) -> None:
    arm = tuned.testbeds["arm"]
    arm.dies_after = 5
    with pytest.raises(KeyboardInterrupt):
        tuned.transfer()
    arm.dies_after = None
    result = tuned.transfer(rounds=None)
    assert [one.contest.rounds for one in result.crosswise] == [ROUNDS, ROUNDS]
    assert tuned.measured == {"x86": 8, "arm": 8}
    assert result == tuned.transfer(rounds=None)


@pytest.mark.usefixtures("no_warm_start")
def test_another_winner_needs_another_series(tuned: Site) -> None:
    tuned.transfer()
    tuned.verdict("x86", Configuration({WAIT: "40"}))
    with pytest.raises(UsageError, match=r"(?s)x86 winner: its values.*--again") as caught:
        tuned.transfer()
    assert "intop transfer x86 arm --again" in str(caught.value)
    tuned.testbeds["arm"].dies_after = 8
    with pytest.raises(KeyboardInterrupt):
        tuned.transfer(again=True)
    tuned.testbeds["arm"].dies_after = None
    # Killed between the two: the first one's new series is not measured again.
    tuned.transfer()
    assert tuned.measured == {"x86": 16, "arm": 16}


@pytest.mark.usefixtures("no_warm_start")
def test_equal_winners_are_measured_once(tuned: Site) -> None:
    tuned.verdict("x86", Configuration({WAIT: "30"}))
    result = tuned.transfer()
    by_name = {c.name: c for c in result.crosswise[0].contest.contestants}
    assert by_name["arm winner"].same_as == "x86 winner"
    assert tuned.measured == {"x86": 6, "arm": 6}
    ratios = {case.name: case.ratios for case in result.worst_cases}
    assert ratios["x86 winner"] == ratios["arm winner"]
