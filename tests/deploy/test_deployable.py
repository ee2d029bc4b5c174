"""Which deployment is exported, from stored verdicts alone."""

from dataclasses import replace

import pytest

from builders.results import ACROSS, BETTER, COSTLY, TRIMMED, VERDICT
from builders.testbeds import FakeTestbed, probe_of
from intop.deploy.deployable import sole_deployment
from intop.domain.across import AcrossByName
from intop.domain.configuration import Configuration
from intop.domain.verdict import Verdict
from intop.errors import ResultMissingError, UsageError
from intop.run.context import Context
from intop.store import Subject

DEFAULTS = {"net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "4096 131072 6291456"}
NO_GAIN = replace(VERDICT, ratio_low=0.9)


@pytest.fixture
def both(testbed: FakeTestbed) -> Context:
    return replace(testbed.task.context, archs=("x86", "arm"))


def judge(context: Context, arch: str, verdict: Verdict) -> None:
    subject = Subject(campaign=context.campaign, arch=arch, workload="slt")
    context.store.put(subject, probe_of(DEFAULTS))
    context.store.put(subject, verdict)


def test_the_one_gain_is_exported_whatever_the_other_has(
    both: Context, testbed: FakeTestbed
) -> None:
    judge(both, "arm", VERDICT)
    result = sole_deployment(both)
    assert result is not None
    assert ("arm", dict(VERDICT.configuration.values)) == (result.arch, result.values)
    assert {change.key: change.default for change in result.changes} == DEFAULTS
    assert "left out: x86: no verdict yet. Run: intop tune --arch x86" in testbed.output.getvalue()
    judge(both, "x86", NO_GAIN)
    result = sole_deployment(both)
    assert result is not None
    assert result.arch == "arm"
    assert "x86: no verdict is a gain: there is nothing to deploy" in testbed.output.getvalue()


def test_of_two_gains_one_has_to_be_chosen(both: Context) -> None:
    judge(both, "x86", VERDICT)
    judge(both, "arm", VERDICT)
    with pytest.raises(UsageError, match=r"x86 and arm have a gain each.*--arch x86"):
        sole_deployment(both)
    result = sole_deployment(replace(both, archs=("arm",)))
    assert result is not None
    assert result.arch == "arm"


def test_without_a_gain_there_is_none(both: Context) -> None:
    judge(both, "x86", NO_GAIN)
    assert sole_deployment(both) is None


def test_what_costs_too_much_is_exported_where_that_is_accepted(both: Context) -> None:
    judge(both, "x86", COSTLY)
    assert sole_deployment(both) is None
    result = sole_deployment(both, accept_costs=True)
    assert result is not None
    assert result.verdict == COSTLY


def test_without_a_verdict_the_next_step_is_said(both: Context) -> None:
    with pytest.raises(ResultMissingError, match=r"x86: no verdict yet\. Run: intop tune --arch"):
        sole_deployment(both)


def test_what_trim_measured_of_a_change_goes_with_it(both: Context) -> None:
    judge(both, "x86", VERDICT)
    subject = Subject(campaign=both.campaign, arch="x86", workload="slt")
    both.store.put(subject, TRIMMED)
    result = sole_deployment(both)
    assert result is not None
    measured = {change.key: change.contribution for change in result.changes}
    somaxconn = measured["net.core.somaxconn"]
    assert somaxconn is not None
    assert somaxconn.left_out == TRIMMED.left_out[0].ratio
    assert measured["net.ipv4.tcp_rmem"] is None


def test_what_trim_measured_of_another_winner_says_nothing(both: Context) -> None:
    judge(both, "x86", VERDICT)
    subject = Subject(campaign=both.campaign, arch="x86", workload="slt")
    both.store.put(subject, replace(TRIMMED, configuration=TRIMMED.candidate))
    result = sole_deployment(both)
    assert result is not None
    assert all(change.contribution is None for change in result.changes)


# A configuration of across ------------------------------------------------------------------------

BASELINE = "ubuntu-18.04"


def measure(context: Context, name: str, verdict: Verdict, workload: str = "slt") -> None:
    """Store the result of `across` on x86 under one workload."""
    subject = Subject(campaign=context.campaign, arch="x86", workload="slt")
    under = replace(BETTER, workload=workload, verdict=replace(verdict, origin=name))
    across = replace(ACROSS, name=name, configuration=verdict.configuration, workloads=(under,))
    earlier = context.store.get(subject, AcrossByName) or AcrossByName()
    context.store.put(subject, earlier.with_one(across))


def test_a_baseline_that_is_a_gain_is_deployed_by_its_newest_verdict(both: Context) -> None:
    judge(both, "x86", NO_GAIN)
    own = replace(VERDICT, configuration=Configuration({"net.core.somaxconn": "128"}))
    measure(both, BASELINE, replace(own, ratio_low=0.9))
    measure(both, "winner", VERDICT)
    assert sole_deployment(both, configuration=BASELINE) is None
    measure(both, BASELINE, own)
    result = sole_deployment(both, configuration=BASELINE)
    assert result is not None
    assert (result.origin, result.verdict.origin) == ("baseline", BASELINE)
    assert result.values == {"net.core.somaxconn": "128"}
    assert result.across is not None
    assert result.across.name == BASELINE


def test_a_winner_that_fresh_pairs_show_to_be_a_gain_is_deployed_whole(
    both: Context, testbed: FakeTestbed
) -> None:
    judge(both, "x86", NO_GAIN)
    measure(both, "winner", VERDICT)
    assert sole_deployment(both) is None
    message = "Its newest verdict is a gain. Run: intop plan --configuration winner"
    assert message in testbed.output.getvalue()
    result = sole_deployment(both, configuration="winner")
    assert result is not None
    assert (result.origin, result.verdict) == ("winner", replace(VERDICT, origin="winner"))


def test_an_undecided_configuration_asks_for_more_rounds(
    both: Context, testbed: FakeTestbed
) -> None:
    judge(both, "x86", VERDICT)
    measure(both, BASELINE, NO_GAIN)
    assert sole_deployment(both, configuration=BASELINE) is None
    command = f"intop across {BASELINE} --rounds {2 * NO_GAIN.rounds} --arch x86"
    assert f"More rounds may tell. Run: {command}" in testbed.output.getvalue()


def test_a_configuration_without_a_verdict_says_how_to_measure_it(both: Context) -> None:
    judge(both, "x86", VERDICT)
    line = f"x86: no verdict on {BASELINE} yet. Run: intop across {BASELINE} --arch x86"
    with pytest.raises(ResultMissingError, match=line):
        sole_deployment(both, configuration=BASELINE)
    measure(both, BASELINE, VERDICT, workload="dlt")
    with pytest.raises(ResultMissingError, match=line):
        sole_deployment(both, configuration=BASELINE)
    with pytest.raises(UsageError, match="--winner and --configuration exclude each other"):
        sole_deployment(both, whole=True, configuration=BASELINE)


def test_of_a_single_key_the_verdict_is_what_was_measured(both: Context) -> None:
    one = Configuration({"net.core.somaxconn": "64"})
    judge(both, "x86", replace(VERDICT, configuration=one))
    subject = Subject(campaign=both.campaign, arch="x86", workload="slt")
    both.store.put(subject, replace(TRIMMED, configuration=one))
    result = sole_deployment(both)
    assert result is not None
    (change,) = result.changes
    assert change.contribution is not None
    assert change.contribution.left_out == VERDICT.interval
