"""Tables of trials: read, written, and as samples. Those in benchmarks/data/ have one row a trial.

They were measured on two replicas of the lab on 2026-11-21, in an hour, for slt and dlt:

screen      configurations that fill the space of all of PARAMETERS, once each
collect     configurations of the parameters that the screening chose, several times each
alone       slt only: the default with one parameter changed, by rounds; this is what a screening
            has to find, measured without any model
alone-best  the same about the best configuration that was collected: about the default, parameters
            that only act together change nothing

A row has `configuration` (which rows are replicates), the varied numbers or names, and `p99_ms`.
slt's screening is of two halves, of which only the first was there when parameters were chosen for
collect; dlt's has 240 configurations. What models make of them:

    intop train --data benchmarks/data/slt-collect.csv.gz --target p99_ms --ignore configuration \\
        --ignore arm
    python -m benchmarks screening-tables
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Sequence
from gzip import GzipFile
from io import TextIOWrapper
from pathlib import Path

import numpy as np

from intop.config.catalogue import load_catalogue
from intop.domain.baseline import HOST
from intop.domain.configuration import Configuration
from intop.domain.encoding import Variable
from intop.domain.rounds import Arms
from intop.domain.space import Column, Space, parameter_columns
from intop.domain.trial import Trial
from intop.learn.samples import Samples
from intop.resources import shipped

DUMMIES = (
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_retries2",
)
"""Written and read back as any other, and without a part in requests that take seconds at most:
two of them are waits of minutes and more, the others count what comes after such waits."""

PARAMETERS = (
    *DUMMIES,
    "net.core.somaxconn",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_comp_sack_delay_ns",
    "net.ipv4.tcp_comp_sack_nr",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_min_rtt_wlen",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_thin_linear_timeouts",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
)
BASE = "base"
"""The arm in which nothing is changed, where that is not the default."""
LEVELS = (0.0, 0.5, 1.0)
"""Of a number, as places in its range on its own scale."""


def alone(
    space: Space,
    base: Configuration,
    levels: Callable[[Column], Sequence[float]] = lambda _: LEVELS,
) -> Arms:
    """The base, and it with one number or name changed; by `COLUMN: VALUE`.

    `levels` says at which places of its range a number is measured.
    """
    arms = {HOST if base.is_default else BASE: base}
    genes = space.genes(space.values([base]))
    (unchanged,) = space.configurations(space.decode(genes))
    for index, column in enumerate(space.columns):
        count = len(column.parameter.choices)
        places = levels(column) if column.component else [(n + 0.5) / count for n in range(count)]
        moved = np.repeat(genes, len(places), axis=0)
        moved[:, index] = places
        for whole in space.configurations(space.decode(moved)):
            # A repaired partner is part of it; a default outside of its range is not.
            other = {k: v for k, v in whole.values.items() if v != unchanged.values[k]}
            if other:
                name = f"{column.name}: {whole.values[column.parameter.key]}"
                arms[name] = Configuration({**base.values, **other})
    return arms


def write(path: Path, space: Space, trials: Sequence[Trial], *, tails: bool = False) -> None:
    """A row for each usable trial: its configuration, arm, values and P99, and maybe its tail."""
    targets = {"p99_ms": lambda t: t.judged_ms} | (
        {"tail_ms": lambda t: t.tail_ms} if tails else {}
    )
    columns = [c for c in space.columns if varies(c.parameter.key, trials)]
    # Without a date in it, equal tables are equal files.
    with GzipFile(path, "wb", mtime=0) as packed, TextIOWrapper(packed, newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["configuration", "arm", *(c.name for c in columns), *targets])
        for trial in trials:
            if trial.usable:
                (numbers,) = space.values([trial.configuration])
                rows.writerow(
                    [
                        trial.configuration.digest,
                        trial.planned.arm,
                        *(
                            f"{v:.0f}" if c.component else c.parameter.choices[int(v)]
                            for c, v in zip(space.columns, numbers, strict=True)
                            if c in columns
                        ),
                        *(f"{of(trial):.3f}" for of in targets.values()),
                    ]
                )


def varies(key: str, trials: Sequence[Trial]) -> bool:
    """Whether any of the trials wrote it."""
    return any(key in t.configuration.values for t in trials)


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def as_samples(rows: Sequence[dict[str, str]], target: str = "p99_ms") -> Samples:
    """A table of trials: each configuration with all of its trials."""
    catalogue = load_catalogue(shipped("configs") / "parameters.toml")
    known = {c.name: c.variable for p in catalogue.parameters for c in parameter_columns(p)}
    names = [n for n in rows[0] if n in known]
    variables = [known[n] for n in names]
    for n, variable in enumerate(variables):
        if variable.choices:
            # The host's, which may be others than the catalogue's.
            said = tuple(sorted({row[variable.name] for row in rows}))
            variables[n] = Variable(name=variable.name, key=variable.key, choices=said)
    first: dict[str, list[float]] = {}
    measured: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        digest = row["configuration"]
        measured[digest].append(float(row[target]))
        first.setdefault(
            digest,
            [float(v.choices.index(row[v.name]) if v.choices else row[v.name]) for v in variables],
        )
    return Samples(
        variables=tuple(variables),
        values=np.array(list(first.values())),
        measured=tuple(tuple(measured[digest]) for digest in first),
    )
