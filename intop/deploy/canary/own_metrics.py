"""Numbers of the user's own, asked at a block's end: by a command on the host, or by Prometheus."""

import json
import math
import shlex
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from intop.domain.canary import Metrics, OwnMetric
from intop.errors import CommandError, UsageError
from intop.hosts.host import Host, output

LIMIT_S = 30.0
GRACE_S = 5.0
"""The longest time for a command's end after its limit."""
LARGEST_ANSWER = 1_000_000
"""Bytes."""

Ask = Callable[[float, float], dict[str, float]]
"""Returns a number for each metric, by the seconds of a block and its end (s since 1970). Raises
CommandError."""


def asking(host: Host, metrics: Metrics) -> Ask:
    """Return what asks for a host's metrics."""
    # Commands may take long, and only Prometheus knows what was at the block's end.
    ordered = sorted(metrics, key=lambda name: metrics[name].prometheus is None)

    def ask(seconds: float, end_s: float) -> dict[str, float]:
        return {name: _number(host, name, metrics[name], seconds, end_s) for name in ordered}

    return ask


def check(host: Host, metrics: Metrics, study: str, seconds: float) -> None:
    """Ask for each metric once. Raises UsageError for one that gives no number."""
    try:
        asking(host, metrics)(seconds, time.time())
    except CommandError as error:
        raise UsageError(
            f"{study}: {error}. Correct it there, or leave it out; then run: intop canary"
        ) from error


def check_hosts(metrics: Metrics, study: str, hosts: int) -> None:
    """Raises UsageError for a query about all hosts, which don't have the same side at a time."""
    for name, metric in metrics.items():
        if hosts > 1 and metric.query is not None and "$host" not in metric.query:
            raise UsageError(
                f"{study}: [canary.metrics.{name}] query: {hosts} hosts take part, and every "
                "second one has the other side. Select one of them by $host in it"
            )


def _number(host: Host, name: str, metric: OwnMetric, seconds: float, end_s: float) -> float:
    """Return a metric. Raises CommandError, also for what has no logarithm."""
    where = f"[canary.metrics.{name}]"
    whole_s = max(1, round(seconds))
    if metric.command is not None:
        # The host ends it, since one that hangs outlives its connection.
        command = (
            f"INTOP_BLOCK_SECONDS={whole_s} timeout -k 1 {LIMIT_S:g} "
            f"sh -c {shlex.quote(metric.command)}"
        )
        of = host.address.name
        try:
            text = output(host, command, timeout_s=LIMIT_S + GRACE_S).strip()
        except CommandError as error:
            raise CommandError(of, f"{where}: {error.message}") from error
    else:
        query = (metric.query or "").replace("$block", f"{whole_s}s")
        query = query.replace("$host", host.address.name)
        url = of = metric.prometheus or ""
        try:
            of = urlsplit(url).netloc
            text = prometheus(url, query, end_s)
        except (OSError, ValueError, HTTPException) as error:
            raise CommandError(of, f"{where}: {error}") from error
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise CommandError(of, f"{where}: {text[:60]!r} is no number above 0")
    return number


def prometheus(url: str, query: str, at_s: float) -> str:
    """Return the one number that a query had at a time (s since 1970), as Prometheus writes it.

    Raises:
        OSError: The server can't be reached.
        HTTPException: It does not speak HTTP.
        ValueError: It refuses the query, or the result is not one number.
    """
    words = urlencode({"query": query, "time": f"{at_s:.3f}"})
    address = f"{url.rstrip('/')}/api/v1/query?{words}"
    try:
        with urlopen(address, timeout=LIMIT_S) as answer:  # noqa: S310 (a study has http(s) only)
            text = answer.read(LARGEST_ANSWER)
    except HTTPError as error:
        # It says what it does not like of a query in the body.
        raise ValueError(_problem(error.read(LARGEST_ANSWER)) or str(error)) from error
    except URLError as error:
        raise OSError(f"can't be reached: {error.reason}") from error
    match _decoded(text).get("data"):
        case {"resultType": "scalar", "result": [_, value]}:
            return str(value)
        case {"resultType": "vector", "result": [{"value": [_, value]}]}:
            return str(value)
        case {"resultType": "vector", "result": list(series)}:
            raise ValueError(f"the query selects {len(series)} series in place of 1")
    raise ValueError("the result is neither a scalar nor an instant vector")


def _decoded(text: bytes) -> dict[str, Any]:
    """Return a JSON object. Raises ValueError for anything else."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("the answer is no object of JSON")  # noqa: TRY004 (it is somebody's data)
    return value


def _problem(text: bytes) -> str:
    """Return the words of an error of Prometheus; "" for another body."""
    try:
        return str(_decoded(text).get("error", ""))[:300]
    except ValueError:
        return ""
