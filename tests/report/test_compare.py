"""Comparing what a store holds: hand-made trials of two architectures, no hosts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from builders import results as findings
from builders import trials as samples
from builders.shipped_studies import lab_study
from builders.testbeds import probe_of
from builders.trials import CONDITIONS, judged_trials, trial
from intop.document.progress import LineProgress
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.probing import Probe, Reading
from intop.domain.search import Candidate
from intop.domain.trial import Conditions, Trial
from intop.errors import IncomparableError, ResultMissingError, UsageError
from intop.report.compare import compare
from intop.report.history import histories
from intop.run.campaigns import new
from intop.run.context import Context
from intop.store import Subject, opened
from kit.golden import Golden

TUNED = Configuration({"net.core.somaxconn": "64", "net.ipv4.tcp_fin_timeout": "60"})
MACHINES = {"x86": "x86_64", "arm": "aarch64"}


@dataclass(frozen=True)
class Campaign:
    """A context, and ways to put measured things into its store."""

    context: Context

    def subject(self, arch: str, workload: str) -> Subject:
        return Subject(campaign=self.context.campaign, arch=arch, workload=workload)

    def conditions(self, arch: str, workload: str, **changes: Any) -> Conditions:
        values = {"arch": arch, "machine": MACHINES[arch], "workload": workload}
        return replace(CONDITIONS, **(values | changes))

    def add(self, subject: Subject, trials: Sequence[Trial]) -> None:
        for stage in dict.fromkeys(t.stage for t in trials):
            own = [t for t in trials if t.stage == stage]
            self.context.store.write_plan(subject, stage, [t.planned for t in own])
            for one in own:
                self.context.store.add(subject, one)

    def collected(self, arch: str, workload: str = "slt", **changes: Any) -> None:
        """Two trials of the default, 900 and 1,600 us, and one of a configuration."""
        made = self.conditions(arch, workload, **changes)
        three = [(DEFAULT, 900), (TUNED, 300), (DEFAULT, 1600)]
        subject = self.subject(arch, workload)
        self.add(
            subject,
            [trial(c, us, index=n, conditions=made) for n, (c, us) in enumerate(three)],
        )
        self.context.store.put(subject, probe(arch))

    def judged(self, arch: str, default_us: Sequence[int], tuned_us: Sequence[int]) -> None:
        """A verdict of slt, and the trials it rests on."""
        subject = self.subject(arch, "slt")
        self.add(
            subject,
            judged_trials(TUNED, default_us, tuned_us, self.conditions(arch, "slt")),
        )
        self.context.store.put(subject, VERDICT)


VERDICT = replace(findings.VERDICT, configuration=TUNED, origin="candidate 1")


def probe(arch: str) -> Probe:
    """A host that has a few keys, the ARM one without tcp_fin_timeout."""
    readings: Mapping[str, str] = {
        "net.core.somaxconn": "4096",
        "net.ipv4.tcp_fin_timeout": "60",
        "net.ipv4.tcp_notsent_lowat": "4294967295",
    }
    known = probe_of(readings)
    result = dict(known.readings)
    if arch == "arm":
        result["net.ipv4.tcp_fin_timeout"] = Reading("missing", "")
    return replace(known, readings=result)


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Campaign]:
    study = lab_study()
    with opened(str(tmp_path / "store.db")) as store:
        yield Campaign(
            Context(
                study=study,
                store=store,
                campaign=new(store, study),
                connect=lambda address: pytest.fail(f"connects to {address}"),
                progress=LineProgress(),
                archs=("x86", "arm"),
                workloads=(study.workloads["slt"], study.workloads["dlt"]),
            )
        )


# What it takes its figures from -------------------------------------------------------------------


def test_before_a_verdict_the_default_is_of_all_its_trials_and_nothing_is_tuned(
    campaign: Campaign,
) -> None:
    campaign.collected("x86")
    campaign.collected("arm")
    (result,) = compare(campaign.context, "x86", "arm").comparisons
    for side in result.sides:
        assert pytest.approx(side.default.trials_ms) == (0.9, 1.6)
        assert pytest.approx(side.default.mean_ms.value) == 1.2
        assert side.tuned is None
        assert side.trials == 3
    assert result.tuned is None
    assert result.values == ()


def test_with_a_verdict_both_are_of_the_judging_pairs_alone(campaign: Campaign) -> None:
    for arch, tuned_us in (("x86", (200, 800)), ("arm", (400, 1600))):
        campaign.collected(arch)
        campaign.judged(arch, (500, 2000), tuned_us)
    (result,) = compare(campaign.context, "x86", "arm").comparisons
    assert [pytest.approx(s.default.trials_ms) for s in result.sides] == [(0.5, 2.0)] * 2
    x86, arm = (side.tuned for side in result.sides)
    assert x86 is not None
    assert arm is not None
    assert pytest.approx((x86.mean_ms.value, arm.mean_ms.value)) == (0.4, 0.8)
    assert result.tuned is not None
    assert pytest.approx((result.tuned.ratio.value, result.tuned.difference_ms.value)) == (2.0, 0.4)
    assert result.tuned.outcome == "not separated"
    assert [side.trials for side in result.sides] == [7, 7]


def test_a_verdict_against_a_baseline_has_that_as_its_default(campaign: Campaign) -> None:
    baseline = Configuration({"net.core.somaxconn": "128"})
    for arch in ("x86", "arm"):
        campaign.collected(arch)
        made = judged_trials(TUNED, (1000, 1000), (500, 500), campaign.conditions(arch, "slt"))
        judged = [
            replace(t, planned=replace(t.planned, arm="web", configuration=baseline))
            if t.planned.arm == "default"
            else t
            for t in made
        ]
        campaign.add(campaign.subject(arch, "slt"), judged)
        campaign.context.store.put(campaign.subject(arch, "slt"), replace(VERDICT, against="web"))
    (result,) = compare(campaign.context, "x86", "arm").comparisons
    for side in result.sides:
        assert side.tuned is not None
        assert (side.default.trials_ms, side.tuned.trials_ms) == ((1.0, 1.0), (0.5, 0.5))


def test_a_round_without_both_arms_is_no_pair(campaign: Campaign) -> None:
    subject = campaign.subject("x86", "slt")
    made = judged_trials(
        TUNED, (500, 700, 2000), (200, 300, 800), campaign.conditions("x86", "slt")
    )
    failed = trial(TUNED, stage="judge", index=3, status="failed")
    failed = replace(failed, planned=made[3].planned)
    campaign.add(subject, [*made[:3], failed, *made[4:]])
    campaign.context.store.put(subject, probe("x86"))
    campaign.context.store.put(subject, VERDICT)
    campaign.collected("arm")
    (result,) = compare(campaign.context, "x86", "arm").comparisons
    assert pytest.approx(result.sides[0].default.trials_ms) == (0.5, 2.0)
    assert result.sides[0].tuned is not None
    assert pytest.approx(result.sides[0].tuned.trials_ms) == (0.2, 0.8)
    assert result.sides[0].trials == 5


def test_a_trial_that_was_measured_again_counts_once(campaign: Campaign) -> None:
    campaign.collected("arm")
    subject = campaign.subject("x86", "slt")
    first = trial(p99_us=1, conditions=campaign.conditions("x86", "slt"))
    second = replace(first, planned=replace(first.planned, index=1))
    campaign.add(subject, [first, second])
    again = trial(p99_us=1000, conditions=first.conditions)
    campaign.context.store.add(subject, replace(again, attempt=1))
    campaign.context.store.put(subject, probe("x86"))
    (result,) = compare(campaign.context, "x86", "arm").comparisons
    assert pytest.approx(result.sides[0].default.trials_ms) == (1.0, 0.001)


def test_what_the_stages_found_is_laid_side_by_side(campaign: Campaign) -> None:
    keys = ("net.ipv4.tcp_fin_timeout", "net.core.somaxconn", "net.ipv4.tcp_notsent_lowat")
    for arch, ranked, chosen in (("x86", keys, keys[:2]), ("arm", keys[1:], keys[2:])):
        campaign.collected(arch)
        store, subject = campaign.context.store, campaign.subject(arch, "slt")
        importances = (samples.importance(key, 0.5 / n) for n, key in enumerate(ranked, 1))
        store.put(subject, samples.ranking(*importances, chosen=chosen))
        store.put(subject, samples.training(samples.model_error("RFR"), keys=chosen))
        store.put(subject, samples.search(samples.run("RFR", 3.0, 2.0)))
    campaign.judged("x86", (500, 2000), (200, 800))

    (result,) = compare(campaign.context, "x86", "arm").comparisons
    assert [side.errors[0].family for side in result.sides] == ["RFR"] * 2
    assert [side.convergences[0].generations for side in result.sides] == [1, 1]
    assert [
        (keys[0], (True, False), ("", "this kernel doesn't have it")),
        (keys[1], (True, False), ("", "")),
        (keys[2], (False, True), ("", "")),
    ] == [(p.key, p.chosen, p.refused) for p in result.parameters]
    # tcp_fin_timeout is judged at its default, so it isn't changed.
    assert [(v.key, v.defaults, v.tuned) for v in result.values] == [
        ("net.core.somaxconn", ("4096", "4096"), ("64", None))
    ]


def test_no_prediction_gets_into_a_comparison(campaign: Campaign) -> None:
    predicted = math.pi
    for arch in ("x86", "arm"):
        campaign.collected(arch)
        guess = Candidate(configuration=TUNED, predicted_ms=predicted, model="RFR")
        result = samples.search(samples.run("RFR", predicted), candidates=(guess,))
        campaign.context.store.put(campaign.subject(arch, "slt"), result)
    assert str(predicted) not in repr(compare(campaign.context, "x86", "arm"))


# Sides of other campaigns -------------------------------------------------------------------------


def another(campaign: Campaign) -> Campaign:
    """A further campaign of the same study."""
    context = campaign.context
    return Campaign(replace(context, campaign=new(context.store, context.study)))


def test_two_campaigns_are_compared_and_what_else_changed_is_named(campaign: Campaign) -> None:
    campaign.collected("x86", cpu="Xeon")
    later = another(campaign)
    later.collected("x86", cpu="EPYC")
    result = compare(later.context, "campaign:1", "campaign:2")
    assert [about.campaign for about in result.provenance] == [1, 2]
    assert result.chosen_by == ("campaign",)
    assert not result.is_of_architectures
    (one,) = result.comparisons
    assert [side.name for side in one.sides] == ["campaign:1", "campaign:2"]
    assert one.warnings == ("cpu: Xeon against EPYC",)
    assert one.default.outcome == "not separated"


def test_a_condition_is_looked_for_in_the_latest_campaign_that_has_it(campaign: Campaign) -> None:
    campaign.collected("x86", kernel="6.1.0-9")
    middle = another(campaign)
    middle.collected("x86", kernel="6.1.0-56")
    later = another(middle)
    later.collected("x86", kernel="6.12.3")
    result = compare(later.context, "kernel:6.1", "kernel:6.12")
    assert [about.campaign for about in result.provenance] == [2, 3]
    assert result.comparisons[0].warnings == ()
    # Of the latest campaign, though an earlier one has it, too.
    assert [
        about.campaign for about in compare(later.context, "x86", "kernel:6.1.0-9").provenance
    ] == [3, 1]


def test_a_workload_that_was_measured_otherwise_is_not_compared(campaign: Campaign) -> None:
    campaign.collected("x86", kernel="6.1")
    campaign.collected("x86", "dlt", kernel="6.1")
    later = another(campaign)
    later.collected("x86", kernel="6.12")
    later.collected("x86", "dlt", kernel="6.13")
    result = compare(later.context, "kernel:6.1", "kernel:6.12")
    assert [c.workload for c in result.comparisons] == ["slt"]
    assert result.missing == ("kernel:6.12 dlt: not measured so in campaign 2",)


def test_other_loads_are_refused_between_campaigns_too(campaign: Campaign) -> None:
    campaign.collected("x86")
    later = another(campaign)
    later.collected("x86", rate_rps=200.0)
    for one, other in (("campaign:1", "campaign:2"), ("rate_rps:100", "rate_rps:200")):
        with pytest.raises(IncomparableError, match="slt: rate_rps: 100"):
            compare(later.context, one, other)


def test_a_side_of_another_study_in_the_same_store(campaign: Campaign) -> None:
    context = campaign.context
    other = Campaign(
        replace(context, campaign=context.store.begin("other", seed=1, tool_version="1"))
    )
    other.collected("x86")
    campaign.collected("x86")
    result = compare(context, "study:other", "x86")
    assert ["other", context.study.name] == [about.study for about in result.provenance]
    with pytest.raises(UsageError, match="nothing that is 'campaign:2'"):
        compare(context, "campaign:2", "x86")


def test_what_the_store_does_not_have_is_told_with_what_it_has(campaign: Campaign) -> None:
    campaign.collected("x86", kernel="6.1.0-56")
    campaign.collected("arm", kernel="6.12.3")
    with pytest.raises(UsageError) as caught:
        compare(campaign.context, "kernel:6.18", "kernel:6.1")
    assert (
        "the store has nothing that is 'kernel:6.18'. It has:\n"
        f"  campaign:1,x86 slt: kernel 6.1.0-56, nginx {CONDITIONS.nginx}\n"
        f"  campaign:1,arm slt: kernel 6.12.3, nginx {CONDITIONS.nginx}"
    ) == str(caught.value)


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (("campaign:1", "arm"), "'campaign:1' is x86 and arm in campaign 1: say which one, such"),
        (("x86", "x86"), "x86 and x86 are the same: x86 in campaign 1"),
        (("x86", "campaign:1,x86"), "are the same: x86 in campaign 1"),
        (("x86", "sparc"), "'sparc' is no side of a comparison"),
    ],
)
def test_what_is_not_two_sides_is_refused(
    campaign: Campaign, sides: tuple[str, str], message: str
) -> None:
    campaign.collected("x86")
    campaign.collected("arm")
    with pytest.raises(UsageError, match=message):
        compare(campaign.context, *sides)


# Over time ----------------------------------------------------------------------------------------


def test_over_time_there_is_a_moment_for_each_campaign_that_measured_the_default(
    campaign: Campaign,
) -> None:
    campaign.collected("x86", kernel="6.1")
    campaign.judged("x86", (500, 2000), (200, 800))
    empty = another(campaign)
    empty.add(empty.subject("x86", "slt"), [trial(conditions=empty.conditions("x86", "slt"))])
    later = another(empty)
    later.collected("x86", kernel="6.12")
    later.collected("arm")
    x86, arm = histories(later.context, "")
    assert (x86.title, [m.campaign for m in x86.moments]) == ("x86 slt", [1, 3])
    judged, collected = x86.moments
    assert pytest.approx(judged.default.trials_ms) == (0.5, 2.0)
    assert judged.tuned is not None
    assert pytest.approx(judged.tuned.mean_ms.value) == 0.4
    assert pytest.approx(collected.default.trials_ms) == (0.9, 1.6)
    assert collected.tuned is None
    (step,) = x86.steps
    assert (
        step.incomparable,
        step.changed,
    ) == ((), ("kernel: 6.18.0-28-cloud-amd64 against 6.12",))
    assert step.default is not None
    assert pytest.approx(step.default.ratio.value) == 1.2
    assert (arm.steps, len(arm.moments)) == ((), 1)


def test_over_time_a_selector_leaves_out_what_it_does_not_mean(campaign: Campaign) -> None:
    campaign.collected("x86", kernel="6.1")
    campaign.collected("arm", kernel="6.1")
    later = another(campaign)
    later.collected("x86", kernel="6.12")
    (x86,) = histories(later.context, "x86")
    assert [m.campaign for m in x86.moments] == [1, 2]
    assert sorted(one.arch for one in histories(later.context, "kernel:6.1")) == ["arm", "x86"]
    with pytest.raises(ResultMissingError, match=r"the default of kernel:6\.2 twice"):
        histories(later.context, "kernel:6.2")


# What is missing ----------------------------------------------------------------------------------


def test_a_workload_measured_on_one_side_is_named_and_the_other_one_compared(
    campaign: Campaign,
) -> None:
    campaign.collected("x86")
    campaign.collected("arm")
    campaign.collected("x86", "dlt")
    result = compare(campaign.context, "x86", "arm")
    assert [c.workload for c in result.comparisons] == ["slt"]
    (message,) = result.missing
    assert message.startswith("arm dlt: nothing to compare (0 usable trials of the default")
    assert "intop collect --arch arm --workload dlt" in message


def test_without_any_workload_measured_on_both_sides_all_that_is_missing_is_named(
    campaign: Campaign,
) -> None:
    campaign.collected("x86")
    campaign.collected("arm", "dlt")
    with pytest.raises(ResultMissingError) as caught:
        compare(campaign.context, "x86", "arm")
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "arm slt",
        "x86 dlt",
    ]


def test_one_trial_of_the_default_is_too_few(campaign: Campaign) -> None:
    campaign.collected("x86")
    subject = campaign.subject("arm", "slt")
    campaign.add(subject, [trial(conditions=campaign.conditions("arm", "slt"))])
    with pytest.raises(ResultMissingError, match="arm slt: nothing to compare \\(1 usable trial"):
        compare(campaign.context, "x86", "arm")


# What must be equal -------------------------------------------------------------------------------


def test_durations_that_two_pilots_chose_are_refused_with_what_to_set(
    campaign: Campaign, golden: Golden
) -> None:
    campaign.collected("x86", duration_s=8)
    campaign.collected("arm", duration_s=16)
    with pytest.raises(IncomparableError) as caught:
        compare(campaign.context, "x86", "arm")
    golden(str(caught.value))
    piloted = tuple(replace(w, duration_s=None) for w in campaign.context.workloads)
    with pytest.raises(IncomparableError, match=r"set duration_s = 16 in \[workload\.slt\] of"):
        compare(replace(campaign.context, workloads=piloted), "x86", "arm")


def test_the_trials_of_a_pilot_are_not_compared(campaign: Campaign) -> None:
    for arch in ("x86", "arm"):
        campaign.collected(arch)
    piloted = trial(
        stage="pilot", p99_us=1, conditions=campaign.conditions("x86", "slt", duration_s=4)
    )
    campaign.add(campaign.subject("x86", "slt"), [piloted])
    (result,) = compare(campaign.context, "x86", "arm").comparisons
    assert result.differences == ()
    assert pytest.approx(result.sides[0].default.trials_ms) == (0.9, 1.6)


def test_other_loads_are_refused_by_name_with_both_values_and_the_way_out(
    campaign: Campaign, golden: Golden
) -> None:
    for workload in ("slt", "dlt"):
        campaign.collected("x86", workload)
    campaign.collected("arm", rate_rps=200.0, link="10 Gbit/s", kernel="6.1.0")
    campaign.collected("arm", "dlt", script="f" * 16)
    with pytest.raises(IncomparableError) as caught:
        compare(campaign.context, "x86", "arm")
    message = str(caught.value)
    golden(message)


def test_by_force_other_loads_are_compared_and_marked(campaign: Campaign) -> None:
    campaign.collected("x86")
    campaign.collected("arm", rate_rps=200.0, kernel="6.1.0")
    (result,) = compare(campaign.context, "x86", "arm", force=True).comparisons
    assert result.differences == ("rate_rps: 100.0 against 200.0",)
    assert result.warnings == (f"kernel: {CONDITIONS.kernel} against 6.1.0",)
