"""What verdicts are worth: many of them on a lab where the truth is known.

`verdicts-aa` has the host's own values on both sides: every difference that a verdict calls is an
error, and at the 95 % level it may call one in twenty. With `--recorded` its load
replays a made-up log of bursts. `verdicts-planted` has them on both sides, too, but one side is
slower, by one of these:

--wait-ms D   Every dynamic page of that side is answered D ms later, so its P99 is the other's
              plus D. The true ratio follows from the P99s of the default's trials alone. The
              default's pages wait, too (10 ms): see BOTH_WAIT_MS.
--stall N     One request in N waits for a second on that side, and none on the other. The claim is
              that the verdict names slow requests: the guardrail is broken or unclear.
--share S     That side's link has S of its rate. What it does to P99 is not known from theory,
              so the true ratio is that of all pairs.

The lab and its load come from `--scenario`, a file of configs/scenarios.

Each verdict is held against the truth from the trials of all others. How often the right sign is
found, and how often the interval holds the truth, is the claim.

Each verdict is of a campaign of its own, as `intop verify` would measure it; its number is its
seed. What is run beside it on another machine, or another lab, begins with another --start.
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import stdev
from typing import Any, Literal, Protocol

from benchmarks.campaign import Opened, altered, begun, judged, labs_up, scenario
from benchmarks.harness import Question, UnusableError, positive
from benchmarks.logs import EPA_RPS, NAME, epa, learned_study
from intop.config.study import Study
from intop.domain.agreement import Agreement
from intop.domain.baseline import HOST
from intop.domain.cluster import LabSpec
from intop.domain.configuration import DEFAULT
from intop.domain.lab_files import MOST_WAIT_MS
from intop.domain.rounds import judged_by_round, paired
from intop.domain.stats import geometric_interval, geometric_mean
from intop.domain.trial import PlannedTrial, SeriesRound, Trial
from intop.domain.verdict import Verdict
from intop.lab import network
from intop.lab.commands import run
from intop.lab.content import static_paths
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.loads import Loads
from intop.sentences import NOT_SHOWN
from intop.store import Store, opened

SIDE = "other side"
LEVEL = 0.95
WAIT_MS = 12
BOTH_WAIT_MS = 10
"""What both sides wait. To wait at all made P99 longer than by the wait, by 1 to 2 ms and for a
reason that is not known; with it on both sides, that is less of the effect."""

STALL_MS = 1000
RECORDED_S = 600
"""Length of the recording of `--recorded`."""
MUST_FLAG = 0.95
"""The share of verdicts that must flag the stalls."""
MAY_DIFFER = 0.1
"""Of verdicts without an effect, the share that may call one: of 40, true 5 % stay below it in
95 % of cases."""
MUST_HOLD = 0.9
"""Of verdicts with an effect, the share whose interval must hold its size: of 20, true 95 % reach
it in 92 % of cases."""

Planting = Literal["nothing", "effect", "stalls"]

P99s = Mapping[str, Mapping[SeriesRound, float]]
"""P99 (ms) by arm and round."""


def waiting(testbed: ClusterTestbed, wait_ms: int, one_in: int = 1) -> ClusterTestbed:
    """The testbed, asking for dynamic pages of which one in so many comes so much later."""
    cluster = testbed.rig.cluster
    query = f"wait_ms={wait_ms}" + (f"&one_in={one_in}" if one_in > 1 else "")
    later = replace(cluster, dynamic_path=f"{cluster.dynamic_path}?{query}")
    rig = replace(testbed.rig, cluster=later)
    return replace(testbed, rig=rig, loads=Loads(task=testbed.task, rig=rig))


class Effect(Protocol):
    """What is planted on one side."""

    workload: str

    def on(self, testbed: ClusterTestbed, arm: str) -> AbstractContextManager[ClusterTestbed]:
        """The testbed for one trial of an arm."""

    def truth(self, p99s: P99s) -> list[float]:
        """Ratios default / other side whose geometric mean is the true one."""


@dataclass(frozen=True)
class Wait:
    """Every dynamic page of one side is answered this much later than those of the default."""

    wait_ms: int
    workload: str = "dlt"

    @contextmanager
    def on(self, testbed: ClusterTestbed, arm: str) -> Iterator[ClusterTestbed]:
        yield waiting(testbed, BOTH_WAIT_MS + (self.wait_ms if arm == SIDE else 0))

    def truth(self, p99s: P99s) -> list[float]:
        # Trial by trial: the mean of log(P99 + D) is not the logarithm of the mean P99 plus D.
        return [p99 / (p99 + self.wait_ms) for p99 in p99s[HOST].values()]


@dataclass(frozen=True)
class Stall:
    """One dynamic page in `one_in` of one side is answered a second later."""

    one_in: int
    workload: str = "dlt"

    @contextmanager
    def on(self, testbed: ClusterTestbed, arm: str) -> Iterator[ClusterTestbed]:
        yield waiting(testbed, STALL_MS, self.one_in) if arm == SIDE else testbed

    def truth(self, p99s: P99s) -> list[float]:
        return ratios_of_pairs(p99s)


@dataclass(frozen=True)
class SlowLink:
    """The link has a share of the rate that it was made with."""

    spec: LabSpec
    share: float
    workload: str = "slt"

    @contextmanager
    def on(self, testbed: ClusterTestbed, arm: str) -> Iterator[ClusterTestbed]:
        if arm != SIDE:
            yield testbed
            return
        self._reshape(self.share)
        try:
            yield testbed
        finally:
            self._reshape(1)

    def truth(self, p99s: P99s) -> list[float]:
        return ratios_of_pairs(p99s)

    def _reshape(self, share: float) -> None:
        spec = self.spec
        (command,) = network.shaping(replace(spec.link, rate_mbit=share * spec.link.rate_mbit))
        program, *words = ["replace" if word == "add" else word for word in command]
        run([program, "-netns", network.namespace(spec.name, network.BALANCER), *words])


@dataclass(frozen=True, kw_only=True)
class OneSided(ClusterTestbed):
    """A testbed with an effect on the trials of one side."""

    effect: Effect

    def trial(self, planned: PlannedTrial, *rest: Any) -> Trial:
        with self.effect.on(self, planned.arm) as changed:
            return ClusterTestbed.trial(changed, planned, *rest)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A verdict, what it took (s), the ratios that it adds to the truth, and those of its pairs."""

    verdict: Verdict
    seconds: float
    truth: list[float]
    pairs: list[float]


class Verdicts(Question[int, Found]):
    """Verdicts on a lab of our own."""

    result = Found
    may_end_early = True
    fixed = ("scenario", "pairs", "looks", "seconds", "replicas")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--scenario", default="bbr-backends", help="(bbr-backends)")
        add("--pairs", type=positive, default=10, help="at most, each (10)")
        add("--looks", type=positive, default=2, help="at the pairs (2)")
        add("--seconds", type=positive, help="of a trial (as the scenario)")
        add("--replicas", type=int, choices=range(1, 5), default=1, help="labs at once (1)")

    def effect(self, spec: LabSpec) -> Effect | None:  # noqa: ARG002
        """Return what is planted on one side."""
        return None

    def cells(self) -> dict[str, int]:
        return {f"verdict {seed}": seed for seed in self.seed_range()}

    @contextmanager
    def bed(self) -> Iterator[None]:
        study, spec = lab_of(self.given.scenario, self.given.replicas)
        self.planted = self.effect(spec)
        self.study = study_of(study, self.planted, self.given)
        testbeds = None if self.planted is None else one_sided(self.planted)
        with (
            labs_up(study),
            tempfile.TemporaryDirectory() as folder,
            opened(f"{folder}/verdicts.db") as store,
        ):
            if getattr(self.given, "recorded", False):
                self.study = replaying(self.study, Path(folder))
            self.verdict = partial(one_verdict, store, effect=self.planted, testbeds=testbeds)
            self.agreement: Agreement | None = None
            yield

    def measure(self, cell: int) -> Found:
        study = replace(self.study, seed=cell)
        verdict, agreement = self.verdict(study, self.agreement)
        # The first one's: a lab that is set aside in one verdict is there again in the next.
        self.agreement = self.agreement or agreement
        return verdict

    def progress(self, name: str, result: Found) -> str:
        return row(name, result)

    def table(self, results: Mapping[str, Found]) -> Iterator[str]:
        yield "| verdict | pairs | ratio | 95 % interval | outcome | seconds |"
        yield "|---:|---:|---:|---|---|---:|"
        for name, result in results.items():
            yield row(name.removeprefix("verdict "), result)
        yield ""
        yield from self._summary(results)[0]

    def missed(self, results: Mapping[str, Found]) -> list[str]:
        return self._summary(results)[1]

    def _summary(self, results: Mapping[str, Found]) -> tuple[list[str], list[str]]:
        if len(results) < 2:
            raise UnusableError("there are fewer than two verdicts to sum up")
        return summary(list(results.values()), self.planted_kind())

    def planted_kind(self) -> Planting:
        """Return what is planted."""
        return "nothing"


class AA(Verdicts):
    """Do verdicts call differences where there are none?"""

    seeds = 40
    fixed = (*Verdicts.fixed, "workload", "recorded")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        super().options(parser)
        parser.add_argument("--workload", choices=["slt", "dlt"], default="slt", help="(slt)")
        recorded = "the load replays a recorded log of bursts, at the scenario's rate"
        parser.add_argument("--recorded", action="store_true", help=recorded)


class Planted(Verdicts):
    """Do verdicts find a known effect?"""

    seeds = 20
    fixed = (*Verdicts.fixed, "wait_ms", "stall", "share")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        super().options(parser)
        effects = parser.add_mutually_exclusive_group()
        wait = f"that dynamic pages come later ({WAIT_MS})"
        effects.add_argument("--wait-ms", type=positive, default=WAIT_MS, help=wait)
        stall = "that one dynamic page in N waits for a second, in place of waiting"
        effects.add_argument("--stall", type=positive, metavar="N", help=stall)
        effects.add_argument("--share", type=float, help="of the link's rate, in place of waiting")

    def effect(self, spec: LabSpec) -> Effect:
        wait_ms, share, most = self.given.wait_ms, self.given.share, MOST_WAIT_MS - BOTH_WAIT_MS
        if self.given.stall is not None:
            return Stall(self.given.stall)
        if share is None and wait_ms > most:
            raise UnusableError(f"--wait-ms {wait_ms} is not from 1 to {most}")
        if share is None:
            return Wait(wait_ms)
        if not 0 < share <= 1:
            raise UnusableError(f"--share {share:g} is not above 0 and up to 1")
        if self.given.replicas > 1:
            raise UnusableError("--share is for one lab: leave --replicas out")
        return SlowLink(spec, share)

    def planted_kind(self) -> Planting:
        return "stalls" if self.given.stall is not None else "effect"


def lab_of(name: str, replicas: int = 1) -> tuple[Study, LabSpec]:
    """Return the study of a scenario on labs of our own, and the first lab."""
    study = scenario(name)
    ((arch, (spec, *_)),) = study.clusters.items()
    assert isinstance(spec, LabSpec)
    specs = tuple(
        replace(spec, name=f"v{os.getpid() % 10_000}{letter}") for letter in "abcd"[:replicas]
    )
    return replace(study, clusters={arch: specs}), specs[0]


def study_of(study: Study, effect: Effect | None, given: argparse.Namespace) -> Study:
    """Return the study with one workload, as the options say."""
    name = given.workload if effect is None else effect.workload
    if name not in study.workloads:
        raise UnusableError(f"{given.scenario} has no workload {name}: give it another --workload")
    workload = study.workloads[name]
    if given.seconds is not None:
        workload = replace(workload, duration_s=given.seconds)
    budget = replace(study.budget, judge_pairs=given.pairs, judge_looks=given.looks, level=LEVEL)
    return replace(study, workloads={name: workload}, budget=budget)


def replaying(study: Study, folder: Path) -> Study:
    """Return the study with its load recorded from a log of bursts (`logs.epa`) of about its rate.

    The log asks for the load's own paths equally often, so a link is no fuller than before.
    """
    head = '[study]\nname = "epa"\nstore = "epa.db"\n[cluster.native]\nlab = "epa"\n'
    ((name, workload),) = study.workloads.items()
    paths = tuple(dict.fromkeys(workload.paths or static_paths()))
    log = epa(RECORDED_S, visits=5 * workload.rate_rps / EPA_RPS, paths=paths)
    recorded = learned_study(folder, log, head).workloads[NAME]
    load = replace(workload, arrivals="recorded", recording=recorded.recording)
    return replace(study, workloads={name: load})


def one_verdict(
    store: Store,
    study: Study,
    agreement: Agreement | None,
    effect: Effect | None,
    testbeds: Opened | None,
) -> tuple[Found, Agreement | None]:
    """Return a verdict on the host's own values against themselves, and which labs agree.

    The labs stay up from verdict to verdict, so whether they agree is tested by the first, as a
    campaign tests it once for all of its stages.
    """
    began = time.monotonic()
    task = begun(store, study, testbeds=testbeds)
    if agreement is not None:
        task.store.put(task.subject, agreement)
    verdict = judged(task, SIDE, DEFAULT)
    p99s = judged_by_round(task.trials("judge"))
    result = Found(
        verdict=verdict,
        seconds=time.monotonic() - began,
        truth=effect.truth(p99s) if effect else [],
        pairs=ratios_of_pairs(p99s),
    )
    return result, task.store.get(task.subject, Agreement)


def ratios_of_pairs(p99s: P99s) -> list[float]:
    """P99 of the default / that of the other side, round by round."""
    default, other = paired(p99s[HOST], p99s[SIDE])
    return [one / two for one, two in zip(default, other, strict=True)]


def one_sided(effect: Effect) -> Opened:
    """The replicas of the cluster, each with the effect."""

    def with_effect(ready: ClusterTestbed) -> OneSided:
        given = {f.name: getattr(ready, f.name) for f in fields(ready) if f.init}
        return OneSided(**given, effect=effect)

    return altered(with_effect)


def row(number: str, result: Found) -> str:
    v = result.verdict
    interval = f"{v.ratio_low:.2f} to {v.ratio_high:.2f}"
    cells = [
        number,
        v.pairs,
        f"{v.ratio:.3f}",
        interval,
        v.latency_outcome,
        f"{result.seconds:.0f}",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def calls_anything(verdict: Verdict) -> bool:
    """Return whether a verdict calls any latency different, or any guardrail broken."""
    return verdict.latency_outcome != NOT_SHOWN or bool(verdict.certain) or bool(verdict.broken)


def flags_slow(verdict: Verdict) -> bool:
    """Return whether a verdict says that slow requests are more, or may be."""
    return any(g.quantity == "slow requests" and g.state != "kept" for g in verdict.guardrails)


def summary(found: list[Found], planted: Planting) -> tuple[list[str], list[str]]:
    """What the verdicts come to together, as a second table, and what is not as it should be."""
    verdicts = [f.verdict for f in found]
    count, ratios = len(verdicts), [v.ratio for v in verdicts]
    p99 = geometric_mean([v.default_ms for v in verdicts])
    spread = stdev(map(math.log, ratios))
    outcomes = {
        name: sum(v.latency_outcome == name for v in verdicts) for name in ("gain", "worse")
    }
    rows = [
        ("verdicts", f"{count}", ""),
        ("pairs, mean", f"{sum(v.pairs for v in verdicts) / count:.1f}", ""),
        ("seconds, mean", f"{sum(f.seconds for f in found) / count:.0f}", ""),
        ("P99 of the default", f"{p99:.1f} ms", ""),
        ("ratio, geometric mean", f"{geometric_mean(ratios):.3f}", ""),
        ("ratio, lowest and highest", f"{min(ratios):.3f}, {max(ratios):.3f}", ""),
        ("ratio, standard deviation of its logarithm", f"{spread:.3f}", ""),
        *((f"outcome {name}", f"{number}", "") for name, number in outcomes.items()),
    ]
    rows.append(("slow requests flagged", f"{sum(map(flags_slow, verdicts))}", ""))
    checks: list[tuple[str, int, str, float]]
    if planted == "nothing":
        called = sum(map(calls_anything, verdicts))
        checks = [("call anything, all percentiles together", called, "at most", MAY_DIFFER)]
    elif planted == "stalls":
        checks = [("flag slow requests", sum(map(flags_slow, verdicts)), "at least", MUST_FLAG)]
    else:
        truth = geometric_interval([ratio for f in found for ratio in f.truth], level=LEVEL)
        shown = f"{truth.value:.3f} ({truth.low:.3f} to {truth.high:.3f})"
        rows.append(("true ratio, with its own 95 % interval", shown, ""))
        rows.append(("right sign, and significant", f"{outcomes['worse']} of {count}", ""))
        held = sum(holds_truth(found, n) for n in range(count))
        pairs = geometric_interval([ratio for f in found for ratio in f.pairs], level=LEVEL)
        shown = f"{pairs.value:.3f} ({pairs.low:.3f} to {pairs.high:.3f})"
        rows.append(("ratio of all pairs, with its 95 % interval", shown, ""))
        held_pairs = sum(holds_pairs(found, n) for n in range(count))
        rows.append(
            ("interval holds the ratio of all others' pairs", f"{held_pairs} of {count}", "")
        )
        checks = [
            ("right sign", sum(ratio < 1 for ratio in ratios), "at least", 1.0),
            ("interval holds the truth of all others", held, "at least", MUST_HOLD),
        ]
    missed = []
    for name, number, bound, share in checks:
        at_most = bound == "at most"
        limit = math.floor(round(share * count, 6)) if at_most else math.ceil(share * count - 1e-6)
        rows.append((name, f"{number} of {count}", f"{bound} {limit}"))
        if number > limit if at_most else number < limit:
            missed.append(f"{name}: {number} of {count}, {bound} {limit}")
    lines = [f"| {name} | {value} | {wanted} |" for name, value, wanted in rows]
    return ["| | | wanted |", "|---|---:|---|", *lines], missed


def holds_truth(found: list[Found], place: int) -> bool:
    """Whether a verdict's interval holds the true ratio, as the trials of all others have it.

    Each trial counts once, so that verdicts which stopped early weigh less (Wald's identity).
    """
    return holds(found[place], [r for n, f in enumerate(found) if n != place for r in f.truth])


def holds_pairs(found: list[Found], place: int) -> bool:
    """Whether it holds what all others measured, whatever the true ratio should be."""
    return holds(found[place], [r for n, f in enumerate(found) if n != place for r in f.pairs])


def holds(one: Found, others: list[float]) -> bool:
    return one.verdict.ratio_low <= geometric_mean(others) <= one.verdict.ratio_high
