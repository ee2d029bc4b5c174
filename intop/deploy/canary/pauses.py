"""Times in which no block of a canary may begin."""

import re
import subprocess
from collections.abc import Callable
from datetime import datetime, time

from intop.errors import UsageError

ALERT_LIMIT_S = 30.0
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


def pauses(between: str | None, alert: str | None) -> Callable[[], str]:
    """Return what tells why no block may begin now; "" where one may.

    `between` are hours of this machine's clock, such as 09:00-17:00, also over midnight. `alert` is
    a command of the shell that fails during an alert. Raises UsageError for other hours.
    """
    hours = _hours(between) if between else None

    def why() -> str:
        if hours is not None and not _is_within(datetime.now().astimezone().time(), *hours):
            return f"it is not between {between}"
        return _alert(alert) if alert else ""

    return why


def _hours(text: str) -> tuple[time, time]:
    match = _HOURS.fullmatch(text)
    if match is None:
        raise UsageError(f"--between {text}: say such as 09:00-17:00")
    begin_h, begin_min, end_h, end_min = map(int, match.groups())
    return time(begin_h, begin_min), time(end_h, end_min)


def _is_within(now: time, begin: time, end: time) -> bool:
    now = now.replace(tzinfo=None)
    return begin <= now < end if begin <= end else now >= begin or now < end


def _alert(command: str) -> str:
    """Return why a command failed; "" where it did not."""
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            timeout=ALERT_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the alert command takes longer than {ALERT_LIMIT_S:g} s"
    if done.returncode == 0:
        return ""
    words = (done.stderr or done.stdout).strip().splitlines()
    return f"the alert command failed{': ' + words[-1][:200] if words else ''}"
