"""Is the right mechanism named? Mechanisms that are planted on a lab, and taken away again.

    python -m benchmarks mechanisms                  all cases
    python -m benchmarks mechanisms syn-backlog      one of them
    python -m benchmarks mechanisms --equal 20       so many verdicts on equal sides only

A case is a scenario of configs/scenarios whose host has values that make requests wait by a
mechanism, and values that take it away. The product judges these against the host's own, and names
what the tuned side has less of. Right is the first that it names. Each verdict is of a campaign of
its own.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.campaign import begun, judged
from benchmarks.harness import Question, UnusableError
from intop.config.study import Study, load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.verdict import Verdict
from intop.lab import cluster as lab
from intop.resources import shipped
from intop.store import opened

PAIRS = 5
ARM = "eased"


@dataclass(frozen=True)
class Case:
    """A planted mechanism: the scenario, what its host has besides, and what takes it away."""

    mechanism: str
    scenario: str
    eased: Mapping[str, str]
    host: Mapping[str, str] = field(default_factory=dict)


CASES = (
    Case("syn-backlog", "bursts", {"net.ipv4.tcp_max_syn_backlog": "4096"}),
    Case(
        "accept-queue",
        "bursts",
        {"net.core.somaxconn": "4096"},
        {"net.core.somaxconn": "25", "net.ipv4.tcp_max_syn_backlog": "4096"},
    ),
    Case("receive-window", "uploads", {"net.ipv4.tcp_rmem": "4096 131072 6291456"}),
    Case(
        "send-buffer",
        "downloads",
        {"net.ipv4.tcp_wmem": "4096 16384 4194304"},
        {"net.ipv4.tcp_wmem": "4096 16384 32768"},
    ),
    Case("slow-start-after-idle", "idle-wan", {"net.ipv4.tcp_slow_start_after_idle": "0"}),
    Case("congestion", "static-wan", {"net.ipv4.tcp_congestion_control": "bbr"}),
    Case("rto", "small-objects", {"net.ipv4.tcp_rto_min_us": "20000"}),
    Case(
        "spurious-retransmission",
        "static-wan",
        {"net.ipv4.tcp_rto_min_us": "200000"},
        {"net.ipv4.tcp_rto_min_us": "1000"},
    ),
)


@contextmanager
def on_its_lab(case: Case, seed: int) -> Iterator[Study]:
    """The scenario's study with the case's host, on a lab that is up meanwhile."""
    study = load_study(shipped("configs") / "scenarios" / f"{case.scenario}.toml")
    arch = native_arch()
    spec = study.clusters[arch][0]
    if not isinstance(spec, LabSpec):
        raise TypeError(f"{case.scenario} has no lab")
    values = {**dict(spec.balancing.sysctls), **case.host}
    balancing = replace(spec.balancing, sysctls=tuple(values.items()))
    spec = replace(spec, name="why", balancing=balancing)
    budget = replace(study.budget, judge_pairs=PAIRS, judge_looks=1)
    try:
        lab.up(spec)
        yield replace(study, clusters={arch: (spec,)}, budget=budget, seed=seed)
    finally:
        lab.down(spec.name)


def verdict_on(study: Study, configuration: Configuration) -> Verdict:
    """By a campaign of its own."""
    with tempfile.TemporaryDirectory() as folder, opened(str(Path(folder) / "one.db")) as store:
        return judged(begun(store, study), ARM, configuration)


def row(case: str, found: Verdict) -> str:
    """Of the table."""
    causes = found.causes
    named = "-" if causes is None else ", ".join(c.mechanism for c in causes.eased) or "none"
    more = "-" if causes is None else ", ".join(c.mechanism for c in causes.worsened) or "none"
    first = causes.eased[0].counters[0].summary if causes and causes.eased else ""
    interval = f"{found.ratio:.2f} ({found.ratio_low:.2f} to {found.ratio_high:.2f})"
    return f"| {case} | {interval} | {named} | {first} | {more} |"


class Mechanisms(Question[tuple[Case, int, bool], Verdict]):
    """Is the planted mechanism named first?"""

    result = Verdict
    fixed = ("seed",)

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        names = [case.mechanism for case in CASES]
        parser.add_argument("mechanism", nargs="*", help=f"of {', '.join(names)}; all by default")
        parser.add_argument("--equal", type=int, default=0, help="verdicts on equal sides (0)")
        parser.add_argument("--seed", type=int, default=1, help="of all cases (1)")

    def cells(self) -> dict[str, tuple[Case, int, bool]]:
        given, names = self.given, [case.mechanism for case in CASES]
        if unknown := set(given.mechanism) - set(names):
            raise UnusableError(f"unknown: {', '.join(sorted(unknown))}")
        wanted = given.mechanism or ([] if given.equal else names)
        planted = {c.mechanism: (c, given.seed, True) for c in CASES if c.mechanism in wanted}
        return planted | {
            f"nothing ({case.scenario}, {n + 1})": (case, given.seed + 1 + n, False)
            for n in range(given.equal)
            for case in [CASES[n % len(CASES)]]
        }

    def measure(self, cell: tuple[Case, int, bool]) -> Verdict:
        case, seed, is_planted = cell
        with on_its_lab(case, seed) as study:
            return verdict_on(study, Configuration(dict(case.eased)) if is_planted else DEFAULT)

    def table(self, results: Mapping[str, Verdict]) -> Iterator[str]:
        yield "| planted | P99 times lower | less of | the first by | more of |"
        yield "|---|---:|---|---|---|"
        planted = {n: v for n, v in results.items() if not n.startswith("nothing")}
        equal = {n: v for n, v in results.items() if n not in planted}
        named = {n: v for n, v in equal.items() if v.causes and v.causes.mechanisms}
        for name, verdict in (planted | named).items():
            yield row(name, verdict)
        right = sum(is_first(name, verdict) for name, verdict in planted.items())
        yield ""
        yield (
            f"Right: {right} of {len(planted)}. "
            f"Named where nothing differs: {len(named)} of {len(equal)}."
        )


def is_first(mechanism: str, verdict: Verdict) -> bool:
    """Return whether a verdict names the mechanism first."""
    eased = verdict.causes.eased if verdict.causes else ()
    return bool(eased) and eased[0].mechanism == mechanism
