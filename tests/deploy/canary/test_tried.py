"""`intop apply --after-canary`: only what the latest canary has called a gain."""

from dataclasses import replace

import pytest

from builders.results import CANARY, DEPLOYMENT
from builders.testbeds import FakeTestbed
from intop.deploy.canary.tried import check_tried
from intop.domain.canary import P99
from intop.domain.configuration import Configuration
from intop.errors import UsageError

CHANGE = replace(DEPLOYMENT.changes[0], key="net.ipv4.tcp_fin_timeout", value="30")
PLAIN = replace(DEPLOYMENT, changes=(CHANGE,))
TRIED = replace(CANARY, configuration=Configuration(dict(PLAIN.values)))


def test_a_gain_of_these_very_values_is_enough(testbed: FakeTestbed) -> None:
    task = testbed.task
    with pytest.raises(UsageError, match=r"x86 slt: no canary has .* Run: intop canary"):
        check_tried(task.context, PLAIN)
    task.store.put(task.subject, CANARY)
    with pytest.raises(UsageError, match=r"no canary has tried these values"):
        check_tried(task.context, PLAIN)
    task.store.put(task.subject, TRIED)
    check_tried(task.context, PLAIN)
    text = testbed.output.getvalue()
    assert "x86 slt: the canary on web1 counts, whose last block began at" in text
    assert f"by a margin of {TRIED.margin:g}" in text


def test_values_that_no_canary_can_try_are_named(testbed: FakeTestbed) -> None:
    with pytest.raises(UsageError, match=r"no canary can try net\..*somaxconn, which needs"):
        check_tried(testbed.task.context, DEPLOYMENT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome": "undecided"}, "says undecided after 9 pairs"),
        ({"outcome": "harm", "stopped": "lb: P99 was 9 ms"}, "says harm: lb: P99 was 9 ms"),
        ({"judged_by": P99}, "which the clients may not notice"),
    ],
)
def test_any_other_outcome_is_refused(
    testbed: FakeTestbed, changes: dict[str, str], message: str
) -> None:
    task = testbed.task
    task.store.put(task.subject, replace(TRIED, **changes))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        check_tried(task.context, PLAIN)
