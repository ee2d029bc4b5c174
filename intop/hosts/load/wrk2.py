"""wrk2: its command line, and its output through our scripts.

wrk2 paces itself (-R) and throws its calibration away. What is due and unanswered at its end is in
no number of it.
"""

import math
import re
from collections.abc import Mapping

from intop.domain.histogram import Histogram
from intop.hosts.load.engine import script_words
from intop.hosts.load.output import check_kind, counts, histogram, json_line, whole
from intop.hosts.load.types import Load, LoadResult, LoadTool

SCHEMA = 1
"""The version of the JSON line; `lua/intop.lua` and this module change it together."""

ERROR_KINDS = ("connect", "read", "write", "timeout", "status")

CALIBRATION_S = 10.0
"""wrk2 resets its histogram this long after the last connection of a thread was started."""
CONNECT_INTERVAL_S = 0.005
"""wrk2 starts the connections of one thread this far apart."""


def why_not(load: Load) -> str:
    """Return the part of a load that wrk2 can't send; "" where it can send all of it."""
    clients = load.clients
    if load.arrivals != "constant":
        return "a closed loop" if load.arrivals == "closed" else f"{load.arrivals} arrivals"
    if clients.http != "1.1":
        return f"HTTP/{clients.http}"
    if clients.method == "HEAD":
        return "HEAD, since it waits for a body that no answer to HEAD has"
    if clients.requests_per_connection is not None:
        return "requests_per_connection"
    if clients.think_ms or clients.read_kb_per_s is not None:
        return "think_ms" if clients.think_ms else "read_kb_per_s"
    if clients.source or clients.tls_resume:
        return "source" if clients.source else "tls_resume"
    if load.connections % load.threads:
        return (
            f"{load.connections} connections on {load.threads} threads: it would leave out the "
            "remainder"
        )
    if round(load.rate_rps) < 1:
        return f"{load.rate_rps:g} requests/s: its rate is a whole number"
    if load.connections / load.rate_rps >= load.timeout_s:
        return (
            f"{load.connections} connections at {load.rate_rps:g} requests/s: they are idle for "
            f"longer than timeout_s ({load.timeout_s:g}), which it counts as timeouts"
        )
    return ""


def calibration_s(connections: int, threads: int) -> float:
    """Return the seconds that wrk2 does not count: it starts connections one by one, then waits."""
    return CALIBRATION_S + connections // threads * CONNECT_INTERVAL_S


def planned_run_s(load: Load) -> int:
    """Return the seconds of the whole run, for -d. They are whole: wrk2 takes no others."""
    return math.ceil(calibration_s(load.connections, load.threads) + load.duration_s)


def sent_s(load: Load) -> float:
    """Return the seconds in which requests are sent: all of the run."""
    return planned_run_s(load)


def words(tool: LoadTool, load: Load) -> list[str]:
    """Return the command line, to be run in the directory of the scripts."""
    # Its -t are the threads of this stream; streams keep their URLs apart by their seeds.
    threads = str(load.threads)
    return [
        *(tool.path, "-t", threads, "-c", str(load.connections), "-d", str(planned_run_s(load))),
        *("--timeout", str(math.ceil(load.timeout_s)), "-R", str(round(load.rate_rps))),
        *("-s", f"{load.script_name}.lua", load.url, "--", "--seed", str(load.seed)),
        *("--threads", threads, *script_words(load)),
    ]


def parse(text: str, load: Load) -> LoadResult:
    """Return the result.

    wrk2 has no number for the errors of the counted part. They are taken as evenly spread over the
    whole run: else those of 10 s of calibration would weigh on a few counted seconds. It counts an
    answer that took longer than the timeout as an error, too.

    Raises:
        ValueError: The run was not calibrated, or another script printed it.
    """
    calibrated = len(re.findall(r"^[ \t]*Thread calibration:", text, re.MULTILINE))
    if calibrated != load.threads:
        raise ValueError(f"wrk2 calibrated {calibrated} of {load.threads} threads")
    data = json_line(text)
    check_kind(data, SCHEMA, load.script_name)
    run_s = whole(data, "duration_us") / 1e6
    uncounted_s = calibration_s(load.connections, load.threads)
    duration_s = run_s - uncounted_s
    if duration_s <= 0:
        raise ValueError(f"the run took {run_s:.3f} s and {uncounted_s:.3f} s don't count")
    answered = histogram(data.get("histogram"))
    run_requests = whole(data, "requests")
    share = answered.total / run_requests if run_requests else 1.0
    errors = {k: round(n * share) for k, n in counts(data.get("errors"), ERROR_KINDS).items()}
    errors = {kind: count for kind, count in errors.items() if count}
    latencies = _with_failures(answered, errors, load.timeout_s)
    due = round(load.rate_rps) * duration_s
    return LoadResult(
        requests=latencies.total,
        duration_s=duration_s,
        run_s=run_s,
        bytes=whole(data, "bytes"),
        errors=errors,
        histogram=latencies,
        achieved_rps=answered.total / duration_s,
        offered_rps=float(round(load.rate_rps)),
        uncounted=max(0, round(due) - latencies.total),
    )


def _with_failures(answered: Histogram, errors: Mapping[str, int], timeout_s: float) -> Histogram:
    """Return the histogram with each failed request as if it took the whole timeout."""
    failed = sum(errors.values())
    if not failed:
        return answered
    return answered.merge(Histogram.from_pairs([(round(timeout_s * 1e6), failed)]))
