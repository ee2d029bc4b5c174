"""Trials as a data frame, a row for each. `scripts/references/trials.py` documents the columns.

Parameters have the columns of `domain.space` (`net.ipv4.tcp_rmem[max]`). If a configuration does
not set a parameter, the row has the host's default. Metrics have their host as a prefix (`lb.cpu`).
"""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from intop.domain.counters import CounterCatalogue
from intop.domain.parameter import Parameter, normalised
from intop.domain.space import parameter_columns
from intop.domain.spreadsheet import cell, quoting
from intop.domain.table import NO_PYARROW, Field, Recipe
from intop.domain.trial import Trial
from intop.errors import UsageError
from intop.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TRIAL = (
    Field("study", "", "the study's name"),
    Field("campaign", "", "the campaign's number in its store", "integer"),
    Field("arch", "", "architecture: x86 or arm"),
    Field("workload", "", "the workload that the trial is part of, such as slt or dlt"),
    Field("stage", "", "the stage that planned the trial; SDS and DDS are collect and refine"),
    Field("index", "", "place in the stage's plan, from 0", "integer"),
    Field("attempt", "", "0 for the first attempt, then 1, 2, ... for repetitions", "integer"),
    Field("role", "", "purpose: baseline, design, proposal, replicate, sentinel, ..."),
    Field("arm", "", "arm of an A/B measurement; otherwise empty"),
    Field("round", "", "round of the A/B measurement, from 1; otherwise empty", "integer"),
    Field("series", "", "series of rounds: 1, or higher if the stage was repeated", "integer"),
    Field("step", "", "step of the refinement, from 1; otherwise empty", "integer"),
    Field("reason", "", "why refine proposed it: promise, uncertainty or replicate"),
    Field("other_workload", "", "the study's workload that it was measured under, if another one"),
    Field("replica", "", "the load balancer of the measurement"),
    Field("status", "", "ok, overloaded, pruned, disturbed or failed; models use the first three"),
    Field("detail", "", "why the status is not ok"),
    Field("started_at", "UTC", "start time", "datetime"),
    Field("seconds", "s", "duration, with settling and restarts", "number"),
    Field("seed", "", "seed of the load", "integer"),
    Field("tool_version", "", "version of intop"),
    Field("configuration", "", "hash of all values; replicates have the same"),
)
CONDITIONS = (
    Field("machine", "", "the load balancer's machine type (uname -m)"),
    Field("kernel", "", "the load balancer's kernel"),
    Field("cpu", "", "the load balancer's processor"),
    Field("server", "", "what serves on the load balancer: nginx, apache, haproxy, ..."),
    Field("nginx", "", "version of the server, with its name: nginx/1.22.1"),
    Field("load_tool", "", "version of the load generator"),
    Field("script", "", "fingerprint of the load's scripts"),
    Field("rate_rps", "1/s", "requested rate", "number"),
    Field("connections", "", "connections of the load generator", "integer"),
    Field("threads", "", "threads of the load generator", "integer"),
    Field("duration_s", "s", "duration of the load", "integer"),
    Field("timeout_s", "s", "a request without an answer after this time has failed", "integer"),
    Field("link", "", "the network between the hosts"),
    Field("paths", "", "requested paths, abbreviated"),
    Field("emulation", "", "kind of emulation; empty for a real machine"),
    Field("traffic", "", "arrivals and clients where they aren't constant and alike"),
    Field("cpus", "", "number of the load balancer's processors", "integer"),
    Field("nginx_conf", "", "fingerprint of the server's configuration (nginx -T), or unknown"),
    Field("generator", "", "the load generator: processor, number of CPUs, kernel"),
    Field("backends", "", "the same of the backends, with nginx"),
    Field("congestion_control", "", "what the load balancer starts with; empty where unknown"),
    Field("peers_congestion_control", "", "the same of the clients and the backends"),
    Field("server_cpus", "", "processors that nginx's workers may run on; empty where unknown"),
    Field("judged_by", "", "the latency that judged_ms is"),
    Field("observation", "", "how a canary observed real traffic; empty under a load of intop's"),
)
RESULTS = (
    Field("judged_ms", "ms", "the objective; failed requests count as the timeout", "number"),
    Field("p99_ms", "ms", "P99 of all requests; failures as in judged_ms", "number"),
    Field(
        "pruned_above_ms",
        "ms",
        "lower limit of judged_ms, for a trial that was stopped early",
        "number",
    ),
    Field(
        "tail_ms", "ms", "geometric mean of the slowest tenth; failures as in judged_ms", "number"
    ),
    Field("p50_ms", "ms", "P50 of all requests", "number"),
    Field("p90_ms", "ms", "P90 of all requests", "number"),
    Field("p99_9_ms", "ms", "P99.9 of all requests", "number"),
    Field("max_ms", "ms", "slowest request", "number"),
    Field("requests", "", "requests that were due", "integer"),
    Field("mean_ms", "ms", "mean latency of all requests; failures as in judged_ms", "number"),
    Field("achieved_rps", "1/s", "answered requests per second", "number"),
    Field("received_mb_s", "MB/s", "received by the load generators, 10^6 bytes/s", "number"),
)
ERRORS = tuple(
    Field(f"errors_{kind}", "", f"failed requests: {meaning}", "integer")
    for kind, meaning in {
        "refused": "the connection was refused",
        "reset": "the connection was reset",
        "unreachable": "no way to the host",
        "ports": "the load generator had no port left",
        "connect": "no connection, for another reason",
        "tls": "no TLS connection",
        "write": "sending failed",
        "read": "reading the answer failed",
        "closed": "the answer ended before it was complete",
        "malformed": "the answer was no HTTP",
        "timeout": "no answer in time",
        "status": "an HTTP status of failure",
        "content": "another length or content than expected",
        "pending": "no answer at the end of the load",
    }.items()
)
METRICS = (
    Field("cpu", "0 to 1", "used share of the processors' time", "number"),
    Field("steal", "0 to 1", "share taken by the hypervisor (steal)", "number"),
    Field("memory_mib", "MiB", "memory in use at the end", "number"),
    Field("time_wait", "", "sockets in TIME_WAIT at the end", "integer"),
    Field("listen_overflows", "", "overflows of accept queues", "integer"),
    Field("listen_drops", "", "dropped connections", "integer"),
    Field("retransmits", "", "retransmitted segments", "integer"),
    Field("accepted", "", "accepted connections", "integer"),
    Field("cpu_pressure", "0 to 1", "share of time in which a task waited for a CPU", "number"),
    Field("memory_before_mib", "MiB", "memory in use before the load", "number"),
    Field("time_wait_before", "", "sockets in TIME_WAIT before the load", "integer"),
    Field("foreign_cpu", "0 to 1", "share used by programs without part in the load", "number"),
    Field("foreign_program", "", "the program that used most of it"),
    Field("load_cpu", "0 to 1", "used share of the load generator's threads", "number"),
    Field("lag_ms", "ms", "P99 of how late the load generator itself was", "number"),
    Field("p99_ms", "ms", "P99 of the requests that this load generator sent", "number"),
    Field("clock_step_s", "s", "by how much its clock was set during the load", "number"),
    Field("cpus", "", "number of processors", "integer"),
    Field("max_cpu_steal", "0 to 1", "steal of the processor that had most of it", "number"),
    Field("max_cpu_softirq", "0 to 1", "softirq work of the processor that had most", "number"),
    Field("softnet_drops", "", "packets that a processor's backlog had no room for", "integer"),
    Field("softnet_squeezes", "", "polls of the network that ended too early", "integer"),
    Field("context_switches_per_s", "1/s", "context switches of all processors", "number"),
    Field("power_w", "W", "power of the processors' packages (RAPL), where they say so", "number"),
    Field("server_memory_mib", "MiB", "anonymous memory of nginx's processes (soak)", "number"),
    Field("server_files", "", "open files of nginx's processes (soak)", "integer"),
    Field("server_started_s", "s", "uptime when the latest of them started (soak)", "number"),
    Field("files", "", "open files of the whole host (soak)", "integer"),
)
"""The metrics of each host, as `HOST.cpu`."""
MODELLED = Field(
    "p99_equivalent_ms",
    "ms",
    'target of the models; only with objective = "component"',
    "number",
)
_TYPES = {"integer": "Int64", "number": "float64", "string": "str", "datetime": "object"}
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}


@dataclass(frozen=True, kw_only=True)
class Part:
    """Trials of one architecture and workload of a campaign."""

    study: str
    campaign: int
    arch: str
    workload: str
    defaults: Mapping[str, str]
    """The host's values by key."""
    trials: Sequence[Trial]
    modelled: Mapping[tuple[str, int], float] = field(default_factory=dict)
    """The models' target by stage and place, where that is no latency."""


def fields_of(
    parts: Iterable[Part],
    parameters: Mapping[str, Parameter],
    counters: CounterCatalogue | None = None,
) -> tuple[Field, ...]:
    """Return the columns of these trials. `counters` explains counters; None leaves them out."""
    parts = list(parts)
    trials = [trial for part in parts for trial in part.trials]
    hosts = dict.fromkeys(host for t in trials for host in t.metrics)
    keys = sorted({key for t in trials for key in t.configuration.values})
    known = {error.name.removeprefix("errors_") for error in ERRORS}
    unknown_kinds = sorted({kind for t in trials for kind in t.errors} - known)
    return (
        *TRIAL,
        *CONDITIONS,
        *(field for key in keys for field in _parameter_fields(key, parameters.get(key))),
        *RESULTS,
        *((MODELLED,) if any(part.modelled for part in parts) else ()),
        *ERRORS,
        *(Field(f"errors_{kind}", "", "failed requests", "integer") for kind in unknown_kinds),
        *(Field(f"{host}.{m.name}", m.unit, m.meaning, m.type) for host in hosts for m in METRICS),
        *(() if counters is None else _counter_fields(trials, counters)),
    )


def frame(
    parts: Iterable[Part],
    parameters: Mapping[str, Parameter],
    counters: CounterCatalogue | None = None,
) -> "DataFrame":
    """Return a row for each trial, in order of measurement, all attempts.

    Columns are those of `fields_of`. Of parameters, those that any of the trials set; of counters,
    those that were not 0 in all of them. A failed trial has no latencies (NaN).
    """
    import pandas as pd

    parts = list(parts)
    fields = fields_of(parts, parameters, counters)
    rows = [_row(part, trial, parameters) for part in parts for trial in part.trials]
    if counters is not None:
        _add_zeros(rows, fields, [trial for part in parts for trial in part.trials])
    table = pd.DataFrame({f.name: _column([row.get(f.name) for row in rows], f) for f in fields})
    table["started_at"] = pd.to_datetime(table["started_at"], utc=True, format="ISO8601")
    return table


def to_csv(table: "DataFrame", path: PurePath | None = None) -> bytes:
    """Return CSV in UTF-8, packed if the name of the file says so. Numbers keep all digits.

    Texts are as `domain.spreadsheet.cell` makes them.
    """
    from pandas.api.types import is_object_dtype, is_string_dtype

    names = [n for n in table.columns if is_string_dtype(table[n]) or is_object_dtype(table[n])]
    texts = table[names].map(_csv_cell)
    table = table.assign(**{name: texts[name] for name in names}).rename(columns=cell)
    output = io.BytesIO()
    method = _PACKED.get("" if path is None else path.suffix.lower())
    options: Any = {"method": method}
    if method == "gzip":
        options["mtime"] = 0  # equal tables are equal files
    how: Any = quoting(text for text in texts.to_numpy().flat if isinstance(text, str))
    table.to_csv(output, index=False, lineterminator="\n", compression=options, quoting=how)
    return output.getvalue()


def _csv_cell(value: object) -> object:
    return cell(value) if isinstance(value, str) else value


def to_parquet(table: "DataFrame") -> bytes:
    """Return Parquet. Raises UsageError where pyarrow is not installed."""
    output = io.BytesIO()
    try:
        table.to_parquet(output, engine="pyarrow", index=False)
    except ImportError as error:
        raise UsageError(NO_PYARROW) from error
    return output.getvalue()


def schema(fields: Iterable[Field], recipes: Iterable[Recipe]) -> bytes:
    """Return the columns as a Table Schema of Frictionless Data.

    Below `intop` it has the recipes by which `train` made its models of the trials.
    """
    document = {
        "fields": [
            {"name": f.name, "type": f.type, "description": f.meaning}
            | ({"unit": f.unit} if f.unit else {})
            | ({"constraints": {"enum": f.values}} if f.values else {})
            for f in fields
        ],
        "missingValues": [""],
        "primaryKey": ["study", "campaign", "arch", "workload", "stage", "index", "attempt"],
        "intop": {"version": __version__, "recipes": [asdict(recipe) for recipe in recipes]},
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def _column(values: list[Any], of: Field) -> "Series[Any]":
    import pandas as pd

    try:
        return pd.Series(values, dtype=_TYPES[of.type])
    except (OverflowError, TypeError):  # some of the kernel's limits have 64 bits and no sign
        return pd.Series(values, dtype="float64")


def _row(part: Part, trial: Trial, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    planned, conditions = trial.planned, trial.conditions
    row: dict[str, Any] = {
        **{f.name: getattr(part, f.name) for f in TRIAL[:4]},
        **{f.name: getattr(trial, f.name) for f in TRIAL if hasattr(trial, f.name)},
        **{f.name: getattr(planned, f.name) for f in TRIAL if hasattr(planned, f.name)},
        **{f.name: getattr(conditions, f.name) for f in CONDITIONS},
        "configuration": trial.configuration.digest,
        "pruned_above_ms": trial.pruned_above_ms,
        "achieved_rps": trial.achieved_rps,
        "received_mb_s": trial.received_mb_s,
    }
    for key, value in {**part.defaults, **trial.configuration.values}.items():
        row |= _values(key, value, parameters.get(key))
    if (histogram := trial.histogram) is not None:
        row |= {
            "judged_ms": trial.judged_ms,
            "tail_ms": trial.tail_ms,
            "p50_ms": trial.percentile_ms(50.0),
            "p90_ms": trial.percentile_ms(90.0),
            "p99_ms": trial.statistic_ms("P99"),
            "p99_9_ms": trial.percentile_ms(99.9),
            "max_ms": histogram.max_ms,
            "mean_ms": histogram.mean_ms,
            "requests": histogram.total,
        }
        row |= {f.name: 0 for f in ERRORS}
    if trial.usable:
        row[MODELLED.name] = part.modelled.get((trial.stage, planned.index))
    row |= {f"errors_{kind}": count for kind, count in trial.errors.items()}
    for host, metrics in trial.metrics.items():
        row |= {f"{host}.{m.name}": getattr(metrics, m.name) for m in METRICS}
    for host, counted in trial.counters.items():
        row |= {f"{host}.{name}": total for name, total in counted.totals.items()}
    return row


def _add_zeros(rows: list[dict[str, Any]], fields: Iterable[Field], trials: list[Trial]) -> None:
    """Set counters to 0 that a host has read and that did not grow: they are stored nowhere."""
    names = [field.name for field in fields]
    for row, trial in zip(rows, trials, strict=True):
        for host, counted in trial.counters.items():
            for name in names:
                if name.startswith(f"{host}.") and counted.shows(name.removeprefix(f"{host}.")):
                    row.setdefault(name, 0)


def _counter_fields(trials: Iterable[Trial], known: CounterCatalogue) -> Iterator[Field]:
    """Yield a column for each counter of a host that was not 0 in all trials."""
    named = {(h, n): None for t in trials for h, c in t.counters.items() for n in c.totals}
    for host, name in sorted(named):
        counter = known.find(name)
        meaning = "a counter that the catalogue does not explain"
        if counter is not None:
            highest = "; the highest at any time" if counter.level else ""
            meaning = f"{counter.meaning.rstrip('.')}{highest}"
        yield Field(f"{host}.{name}", "", meaning, "number")


def _parameter_fields(key: str, parameter: Parameter | None) -> tuple[Field, ...]:
    """Return a column for each component. A parameter that nobody knows is one text."""
    if parameter is None:
        return (Field(key, "", "a sysctl of the load balancer"),)
    return tuple(
        Field(
            column.name,
            parameter.unit,
            parameter.mechanism,
            "integer" if parameter.is_numeric else "string",
        )
        for column in parameter_columns(parameter)
    )


def _values(key: str, value: str, parameter: Parameter | None) -> dict[str, int | str]:
    """Return the value of each component's column; none of what is no such number on a host."""
    text = normalised(value)
    if parameter is None or not parameter.is_numeric:
        return {key: text}
    columns, words = parameter_columns(parameter), text.split()
    if len(columns) != len(words) or not all(re.fullmatch("-?[0-9]+", word) for word in words):
        return {}
    return {c.name: int(word) for c, word in zip(columns, words, strict=True)}
