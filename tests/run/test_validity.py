from dataclasses import replace
from typing import Any

import pytest

from builders.trials import METRICS
from intop.domain.trial import HostMetrics
from intop.domain.workload import Limits
from intop.run.validity import Validity, judge

QUIET = replace(METRICS, cpu=0.3, steal=0.0, cpu_pressure=0.0, cpus=2)
ROBBED = replace(QUIET, steal=0.25, max_cpu_steal=0.3)
CROWDED = replace(QUIET, foreign_cpu=0.48, foreign_program="cc1")
LARGE = replace(QUIET, cpus=48, max_cpu_steal=0.01)
"""Of its processors, whole ones are small shares."""
ONE_ROBBED = replace(LARGE, steal=0.15 / 48, max_cpu_steal=0.15)
NINE_STOLEN = replace(LARGE, steal=9 / 48)
ONE_TAKEN = replace(LARGE, foreign_cpu=1 / 48, foreign_program="cc1")
OWN_PACKETS = replace(LARGE, cpu=0.5, max_cpu_softirq=1.0, softnet_squeezes=1000)
PRESSED = replace(QUIET, cpu=1.0, cpu_pressure=0.9, foreign_cpu=0.1, foreign_program="cron")
SHORT = replace(QUIET, load_cpu=0.97)
STOLEN = "lb: other machines took 0.50 of its 2 cores, more than max_steal_cores (0.2)"
STOLEN_FROM_ONE = (
    "lb: other machines took 30% of the time of one of its 2 cores, more than max_steal (10%)"
)
TAKEN = (
    "lb: other programs used 0.96 of its 2 cores, most of it cc1, more than max_foreign_cores (0.4)"
)
HURRIED = (
    "lg: the load generator used 97% of the CPU time that its threads could, "
    "more than max_load_cpu (90%): it needs a lower rate, or another load generator "
    "(wrk2: more threads)"
)
LATE = replace(QUIET, lag_ms=30.0)
ITSELF_LATE = (
    "lg: the load generator was itself 30.0 ms late for one request in a hundred, "
    "more than max_lag (20%) of P99 (100.0 ms): something else ran in its place, "
    "or it needs a lower rate"
)
SET = replace(QUIET, clock_step_s=0.06)
CLOCK_SET = "lg: its clock was set by +0.060 s during the load"


OK = Validity("ok")


def disturbed(detail: str) -> Validity:
    return Validity("disturbed", detail)


def overloaded(detail: str) -> Validity:
    return Validity("overloaded", detail)


def judged(**changes: Any) -> Validity:
    values: dict[str, Any] = {"requests": 1000, "achieved_rps": 100.0, "offered_rps": 100.0}
    values |= {"errors": {}, "metrics": {"lb": QUIET}, "p99_ms": 100.0}
    values |= {"backends": (), "limits": Limits()}
    return judge(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, OK),
        ({"achieved_rps": 95.0}, OK),
        ({"errors": {"timeout": 10}}, OK),
        ({"achieved_rps": 94.0}, overloaded("94 of 100 requests/s")),
        # Arrivals at random were fewer than were asked for, and all of them were answered.
        ({"achieved_rps": 94.0, "offered_rps": 94.0}, OK),
        (
            {"errors": {"timeout": 6, "status": 5}},
            overloaded("11 of 1000 requests failed: {'timeout': 6, 'status': 5}"),
        ),
        ({"metrics": {"lg": QUIET, "lb": ROBBED}}, disturbed(STOLEN)),
        # A rate that was missed while others took the CPU says nothing of the configuration.
        ({"metrics": {"lb": ROBBED}, "achieved_rps": 10.0}, disturbed(STOLEN)),
        (
            {"metrics": {"lb": ROBBED}, "limits": Limits(max_steal_cores=0.5)},
            disturbed(STOLEN_FROM_ONE),
        ),
        ({"metrics": {"lb": ROBBED}, "limits": Limits(max_steal_cores=0.5, max_steal=0.3)}, OK),
        # Of 48 cores, nine are 19 %, and one is 2 %.
        (
            {"metrics": {"lb": NINE_STOLEN}},
            disturbed(
                "lb: other machines took 9.00 of its 48 cores, more than max_steal_cores (0.2)"
            ),
        ),
        (
            {"metrics": {"lb": ONE_ROBBED}},
            disturbed(
                "lb: other machines took 15% of the time of one of its 48 cores, "
                "more than max_steal (10%)"
            ),
        ),
        (
            {"metrics": {"lb": ONE_TAKEN}},
            disturbed(
                "lb: other programs used 1.00 of its 48 cores, most of it cc1, "
                "more than max_foreign_cores (0.4)"
            ),
        ),
        ({"metrics": {"lb": LARGE}}, OK),
        ({"metrics": {"lb": OWN_PACKETS}}, OK),
        ({"metrics": {"lg": QUIET, "lb": CROWDED}}, disturbed(TAKEN)),
        ({"metrics": {"lb": CROWDED}, "achieved_rps": 10.0}, disturbed(TAKEN)),
        ({"metrics": {"lb": CROWDED}, "limits": Limits(max_foreign_cores=0.96)}, OK),
        # What a configuration costs itself is its result: no reason to measure again.
        ({"metrics": {"lb": PRESSED}}, OK),
        ({"metrics": {"lb": PRESSED}, "achieved_rps": 10.0}, overloaded("10 of 100 requests/s")),
        ({"metrics": {"lg": SHORT, "lb": QUIET}}, disturbed(HURRIED)),
        ({"metrics": {"lg": SHORT}, "achieved_rps": 10.0}, disturbed(HURRIED)),
        ({"metrics": {"lg": SHORT}, "limits": Limits(max_load_cpu=0.97)}, OK),
        # Stopped for good: whatever its rate was until then.
        ({"pruned": "stopped"}, Validity("pruned", "stopped")),
        ({"pruned": "stopped", "achieved_rps": 1.0}, Validity("pruned", "stopped")),
        ({"pruned": "stopped", "metrics": {"lb": CROWDED}}, disturbed(TAKEN)),
        ({"pruned": "stopped", "metrics": {"lg": SHORT}}, disturbed(HURRIED)),
        (
            {"pruned": "stopped", "requests": 0},
            Validity("failed", "no request was answered; errors: {}"),
        ),
        # Who is refused tries again, as fast as it can.
        (
            {"metrics": {"lg": SHORT}, "errors": {"connect": 500}},
            overloaded("500 of 1000 requests failed: {'connect': 500}"),
        ),
        (
            {"requests": 0, "achieved_rps": 0.0, "errors": {"connect": 8}},
            Validity("failed", "no request was answered; errors: {'connect': 8}"),
        ),
        (
            {"requests": 8, "achieved_rps": 0.0, "errors": {"refused": 6, "pending": 2}},
            Validity("failed", "no request was answered; errors: {'refused': 6, 'pending': 2}"),
        ),
        # A generator that was late itself measured itself.
        ({"metrics": {"lg": LATE, "lb": QUIET}}, disturbed(ITSELF_LATE)),
        ({"metrics": {"lb": QUIET, "lg": LATE}, "achieved_rps": 10.0}, disturbed(ITSELF_LATE)),
        ({"metrics": {"lg": LATE}, "pruned": "stopped"}, disturbed(ITSELF_LATE)),
        ({"metrics": {"lg": LATE}, "p99_ms": 150.0}, OK),
        ({"metrics": {"lg": LATE}, "limits": Limits(max_lag=0.3)}, OK),
        (
            {"metrics": {"lg": LATE}, "requests": 5, "errors": {"refused": 5}},
            Validity("failed", "no request was answered; errors: {'refused': 5}"),
        ),
        ({"metrics": {"lg": SET}, "achieved_rps": 10.0}, disturbed(CLOCK_SET)),
        ({"metrics": {"lg": SET}, "pruned": "stopped"}, disturbed(CLOCK_SET)),
    ],
)
def test_judge(changes: dict[str, Any], expected: Validity) -> None:
    assert judged(**changes) == expected


TOO_LATE = replace(QUIET, lag_ms=21.0)


@pytest.mark.parametrize(
    ("metric", "p99_ms", "expected"),
    [
        (replace(QUIET, lag_ms=20.0), 100.0, OK),
        (TOO_LATE, 106.0, OK),
        (
            TOO_LATE,
            100.0,
            disturbed(
                "lg: the load generator was itself 21.0 ms late for one request in a hundred, "
                "more than max_lag (20%) of P99 (100.0 ms): something else ran in its place, or it "
                "needs a lower rate"
            ),
        ),
        # So little is the noise of any machine.
        (replace(QUIET, lag_ms=1.9), 1.0, OK),
        (replace(QUIET, clock_step_s=0.04), 1.0, OK),
        (
            replace(QUIET, clock_step_s=-3.5),
            1.0,
            disturbed("lg: its clock was set by -3.500 s during the load"),
        ),
    ],
)
def test_a_generator_that_was_late_or_whose_clock_was_set_disturbs(
    metric: HostMetrics, p99_ms: float, expected: Validity
) -> None:
    assert judged(metrics={"lg": metric, "lb": QUIET}, p99_ms=p99_ms) == expected


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ((3, 1, 5), OK),
        ((None, None, None), OK),
        # Nothing went to any of them: that shows as errors.
        ((0, 0, 0), OK),
        (
            (3, 0, 5),
            disturbed(
                "b2: accepted no connection during the load, and b3 accepted 5: is its server up? "
                "(A spare one doesn't belong in backends.)"
            ),
        ),
    ],
)
def test_a_backend_that_took_no_part_disturbs(
    accepted: tuple[int | None, ...], expected: Validity
) -> None:
    names = ("b1", "b2", "b3")
    backends = {n: replace(QUIET, accepted=a) for n, a in zip(names, accepted, strict=True)}
    metrics = {"lg": QUIET, "lb": replace(QUIET, accepted=9)} | backends
    assert judged(metrics=metrics, backends=names) == expected


def test_where_no_request_was_answered_a_trial_has_failed() -> None:
    expected = Validity("failed", "no request was answered; errors: {'refused': 1000}")
    assert judged(errors={"refused": 1000}, achieved_rps=0.0) == expected


TOO_FEW = "its 10 connections carried 5.0 of 100 requests/s"


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"pending": 800}, f"since earlier ones held all connections: {TOO_FEW}; errors: "),
        ({}, f"since earlier ones held all connections: {TOO_FEW}; errors: "),
        ({"refused": 790, "pending": 10}, "no request was answered; errors: {'refused': 790"),
        ({"ports": 700, "pending": 100}, "the load generator itself had no port left for its"),
    ],
)
def test_why_no_request_was_answered_is_named(errors: dict[str, int], expected: str) -> None:
    requests = sum(errors.values())
    result = judged(requests=requests, errors=errors, achieved_rps=5.0, too_few=TOO_FEW)
    assert result.status == "failed"
    assert expected in result.detail


def test_a_generator_without_ports_is_named_where_some_requests_fail() -> None:
    result = judged(errors={"ports": 100})
    assert result.status == "overloaded"
    assert "the load generator itself had no port left" in result.detail
