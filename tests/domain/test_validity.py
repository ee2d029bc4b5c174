from typing import Any

import pytest

from intop.domain.trial import HostMetrics
from intop.domain.validity import Validity, judge

QUIET = HostMetrics(
    cpu=0.3,
    steal=0.0,
    memory_mib=100.0,
    time_wait=0,
    listen_overflows=0,
    listen_drops=0,
    retransmits=0,
    cpu_pressure=0.0,
)
ROBBED = HostMetrics(
    cpu=0.3,
    steal=0.25,
    memory_mib=100.0,
    time_wait=0,
    listen_overflows=0,
    listen_drops=0,
    retransmits=0,
    cpu_pressure=0.0,
)


def judged(**changes: Any) -> Validity:
    values: dict[str, Any] = {
        "requests": 1000,
        "achieved_rps": 100.0,
        "rate_rps": 100.0,
        "errors": {},
        "metrics": {"lb": QUIET},
        "max_steal": 0.1,
    }
    return judge(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Validity("ok")),
        ({"achieved_rps": 95.0}, Validity("ok")),
        ({"errors": {"timeout": 10}}, Validity("ok")),
        ({"achieved_rps": 94.0}, Validity("overloaded", "94 of 100 requests/s")),
        (
            {"errors": {"timeout": 6, "status": 5}},
            Validity("overloaded", "11 of 1000 requests failed: {'timeout': 6, 'status': 5}"),
        ),
        (
            {"metrics": {"lg": QUIET, "lb": ROBBED}},
            Validity("disturbed", "lb: 25% of its CPU time was stolen"),
        ),
        # A rate that was missed while others took the CPU says nothing of the configuration.
        (
            {"metrics": {"lb": ROBBED}, "achieved_rps": 10.0},
            Validity("disturbed", "lb: 25% of its CPU time was stolen"),
        ),
        ({"metrics": {"lb": ROBBED}, "max_steal": 0.25}, Validity("ok")),
        (
            {"requests": 0, "achieved_rps": 0.0, "errors": {"connect": 8}},
            Validity("failed", "no request was answered; errors: {'connect': 8}"),
        ),
    ],
)
def test_judge(changes: dict[str, Any], expected: Validity) -> None:
    assert expected == judged(**changes)
