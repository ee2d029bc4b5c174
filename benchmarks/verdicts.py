"""What verdicts are worth: many of them on a lab where the truth is known.

`aa` has the host's own values on both sides: every difference that a verdict calls is an error,
and at the 95 % level it may call one in twenty. `planted` has them on both sides, too, but one
side is slower, by one of these:

--wait-ms D   Every dynamic page of that side is answered D ms later, so its P99 is the other's
              plus D. The true ratio follows from the P99s of the default's trials alone. The
              default's pages wait, too (10 ms): see BOTH_WAIT_MS.
--share S     That side's link has S of its rate. What it does to P99 is not known from theory,
              so the true ratio is that of all pairs.

The lab and its load come from the scenario short-buffer. For `aa`, `--scenario` names another one
of configs/scenarios.

Each verdict is held against the truth from the trials of all others. How often the right sign is
found, and how often the interval holds the truth, is what the run is for; where it is not as often
as it should be, the exit code is 1.

Each verdict is of a campaign of its own, as `intop verify` would measure it. Prints a table in
Markdown, line by line; progress is on stderr. No new verdict begins after --minutes. What is run
beside it on another machine, or another lab, begins with another --start.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev
from typing import Any, Protocol

from benchmarks.campaign import Opened, altered, begun, judged, scenario
from intop.config.study import Study
from intop.domain.baseline import HOST
from intop.domain.cluster import LabSpec
from intop.domain.configuration import DEFAULT
from intop.domain.rounds import p99_by_round, paired
from intop.domain.stats import geometric_interval, geometric_mean
from intop.domain.trial import Block, PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.lab import app, network
from intop.lab import cluster as lab
from intop.lab.commands import run
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.loads import Loads
from intop.store import Store, opened

SIDE = "other side"
LEVEL = 0.95
WAIT_MS = 12
BOTH_WAIT_MS = 10
"""What both sides wait. To wait at all made P99 longer than by the wait, by 1 to 2 ms and for a
reason that is not known; with it on both sides, that is less of the effect."""

MAY_DIFFER = 0.1
"""Of verdicts without an effect, the share that may call one: of 40, true 5 % stay below it in
95 % of cases."""
MUST_HOLD = 0.9
"""Of verdicts with an effect, the share whose interval must hold its size: of 20, true 95 % reach
it in 92 % of cases."""

P99s = Mapping[str, Mapping[Block, float]]
"""P99 (ms) by arm and round."""


def waiting(testbed: ClusterTestbed, wait_ms: int) -> ClusterTestbed:
    """The testbed, asking for dynamic pages that come so much later."""
    cluster = testbed.rig.cluster
    later = replace(cluster, dynamic_path=f"{cluster.dynamic_path}?wait_ms={wait_ms}")
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


def main() -> None:
    arguments = parsed()
    study, spec = study_of(arguments)
    effect = effect_of(arguments, spec)
    testbeds = None if effect is None else one_sided(effect)
    deadline = time.monotonic() + 60 * arguments.minutes
    found: list[Found] = []
    try:
        lab.up(spec)
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(str(Path(folder) / "verdicts.db")) as store,
        ):
            print("| verdict | pairs | ratio | 95 % interval | outcome | seconds |")
            print("|---:|---:|---:|---|---|---:|", flush=True)
            while len(found) < arguments.verdicts and time.monotonic() < deadline:
                number = arguments.start + len(found)
                found.append(one_verdict(store, replace(study, seed=number), effect, testbeds))
                print(row(number, found[-1]), flush=True)
    finally:
        lab.down(spec.name)
    if len(found) < 2:
        sys.exit("there are fewer than two verdicts to sum up: give it more --minutes")
    rows, missed = summary(found, effect)
    print("\n" + "\n".join(rows))
    if missed:
        sys.exit(f"not as it should be: {', '.join(missed)}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    same = modes.add_parser("aa", help="the same on both sides")
    same.add_argument("--workload", choices=["slt", "dlt"], default="slt", help="(slt)")
    same.add_argument("--scenario", default="short-buffer", help="(short-buffer)")
    planted = modes.add_parser("planted", help="one side is slower")
    planted.set_defaults(scenario="short-buffer")
    effects = planted.add_mutually_exclusive_group()
    effects.add_argument(
        "--wait-ms",
        type=between(1, app.MOST_WAIT_MS - BOTH_WAIT_MS),
        default=WAIT_MS,
        help=f"that dynamic pages come later ({WAIT_MS})",
    )
    effects.add_argument("--share", type=share, help="of the link's rate, in place of waiting")
    for mode, verdicts in ((same, 40), (planted, 20)):
        mode.add_argument("--verdicts", type=between(2), default=verdicts, help=f"({verdicts})")
        mode.add_argument("--pairs", type=between(2), default=10, help="at most, each (10)")
        mode.add_argument("--looks", type=between(1), default=2, help="at the pairs (2)")
        mode.add_argument("--seconds", type=between(1), help="of a trial (as the scenario)")
        mode.add_argument("--minutes", type=float, default=60, help="at most, and a verdict (60)")
        mode.add_argument("--start", type=int, default=1, help="the first one's number, its seed")
    return parser.parse_args()


def between(least: int, most: int | None = None) -> Any:
    """A type of argument: a whole number in this range."""

    def whole(text: str) -> int:
        number = int(text)
        if number < least or (most is not None and number > most):
            limits = f"from {least}" + (f" to {most}" if most is not None else "")
            raise argparse.ArgumentTypeError(f"{number} is not {limits}")
        return number

    return whole


def share(text: str) -> float:
    """A type of argument: a share of a rate."""
    number = float(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and up to 1")
    return number


def effect_of(arguments: argparse.Namespace, spec: LabSpec) -> Effect | None:
    """None where there is none."""
    if arguments.mode == "aa":
        return None
    if arguments.share is not None:
        return SlowLink(spec, arguments.share)
    return Wait(arguments.wait_ms)


def study_of(arguments: argparse.Namespace) -> tuple[Study, LabSpec]:
    """The study of a scenario, on a lab of our own, with one workload."""
    study = scenario(arguments.scenario)
    ((arch, (spec,)),) = study.clusters.items()
    assert isinstance(spec, LabSpec)
    spec = replace(spec, name=f"v{os.getpid() % 10_000}")
    effect = effect_of(arguments, spec)
    name = arguments.workload if effect is None else effect.workload
    if name not in study.workloads:
        sys.exit(f"{arguments.scenario} has no workload {name}: give it another --workload")
    workload = study.workloads[name]
    if arguments.seconds is not None:
        workload = replace(workload, duration_s=arguments.seconds)
    budget = replace(
        study.budget, judge_pairs=arguments.pairs, judge_looks=arguments.looks, level=LEVEL
    )
    study = replace(study, clusters={arch: (spec,)}, workloads={name: workload}, budget=budget)
    return study, spec


def one_verdict(
    store: Store, study: Study, effect: Effect | None, testbeds: Opened | None
) -> Found:
    """A verdict on the host's own values against themselves."""
    began = time.monotonic()
    task = begun(store, study, testbeds=testbeds)
    verdict = judged(task, SIDE, DEFAULT)
    p99s = p99_by_round(task.trials("judge"))
    return Found(
        verdict=verdict,
        seconds=time.monotonic() - began,
        truth=effect.truth(p99s) if effect else [],
        pairs=ratios_of_pairs(p99s),
    )


def ratios_of_pairs(p99s: P99s) -> list[float]:
    """P99 of the default / that of the other side, round by round."""
    default, other = paired(p99s[HOST], p99s[SIDE])
    return [one / two for one, two in zip(default, other, strict=True)]


def one_sided(effect: Effect) -> Opened:
    """The replicas of the cluster, each with the effect."""
    return altered(lambda ready: OneSided(**vars(ready), effect=effect))


def row(number: int, found: Found) -> str:
    v = found.verdict
    interval = f"{v.ratio_low:.2f} to {v.ratio_high:.2f}"
    cells = [number, v.pairs, f"{v.ratio:.3f}", interval, v.p99_outcome, f"{found.seconds:.0f}"]
    return f"| {' | '.join(map(str, cells))} |"


def summary(found: list[Found], effect: Effect | None) -> tuple[list[str], list[str]]:
    """What the verdicts come to together, as a second table, and what is not as it should be."""
    verdicts = [f.verdict for f in found]
    count, ratios = len(verdicts), [v.ratio for v in verdicts]
    p99 = geometric_mean([v.default_p99_ms for v in verdicts])
    spread = stdev(map(math.log, ratios))
    outcomes = {name: sum(v.p99_outcome == name for v in verdicts) for name in ("gain", "worse")}
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
    if effect is None:
        checks = [("call a difference", sum(outcomes.values()), "at most", MAY_DIFFER)]
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


if __name__ == "__main__":
    main()
