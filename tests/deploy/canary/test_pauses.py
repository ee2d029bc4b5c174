"""Hours and alerts that keep a block from beginning."""

from datetime import datetime, timedelta

import pytest

from intop.deploy.canary.pauses import pauses
from intop.errors import UsageError


def at(hours: float) -> str:
    return f"{datetime.now().astimezone() + timedelta(hours=hours):%H:%M}"


def test_nothing_keeps_a_block_unless_asked_for() -> None:
    assert pauses(None, None)() == ""


@pytest.mark.parametrize(
    ("begin", "end", "is_open"), [(-2, 2, True), (2, 4, False), (4, -2, False)]
)
def test_hours_may_go_over_midnight(begin: float, end: float, is_open: bool) -> None:
    between = f"{at(begin)}-{at(end)}"
    assert pauses(between, None)() == ("" if is_open else f"it is not between {between}")


@pytest.mark.parametrize("between", ["9-17", "09:00", "25:00-26:00", "09:00-17:60"])
def test_other_hours_are_refused(between: str) -> None:
    with pytest.raises(UsageError, match="say such as 09:00-17:00"):
        pauses(between, None)


def test_an_alert_is_a_command_that_fails() -> None:
    assert pauses(None, "true")() == ""
    assert (
        pauses(None, "echo disk is full >&2; false")() == "the alert command failed: disk is full"
    )
    assert pauses(None, "exit 3")() == "the alert command failed"
