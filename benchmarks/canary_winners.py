"""Does a canary keep a good winner of `tune`, and give back one that was over-tuned?

    python -m benchmarks canary-winners

The product finds both winners on labs. The *good* one is of the scenario static-wan, with the
budget of `make run`. Nobody should deploy the *over-tuned* one. Its clients have no link, its
trials take a second, nothing is trimmed, three pairs make its verdict, and congestion control is
left out. So chance has chosen the values of its many parameters. Both leave out what a canary can't
try without a restart of nginx.

The canary runs on a lab of static-wan (30 ms, 0.2 % of the packets lost). Its traffic is not
intop's: sixteen clients that fetch files of 100 KB, ten a connection, with pauses.

Terms, said before any run: at most 30 pairs (4 s after 1 s), with the product's margin and limits.
Wanted: `canary --keep` would keep the good winner, and not the over-tuned one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from benchmarks.campaign import begun, labs_up
from benchmarks.canary_lab import TRAFFIC, canary, clients, logging_lab
from benchmarks.harness import Question
from benchmarks.winners import study_of, tuned
from intop.config.study import Study
from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.opening import WHEN_LISTENING, Observation
from intop.deploy.canary.testbed import Timing
from intop.domain.cluster import LabSpec

SCENARIO = "static-wan"
PAIRS, BLOCK_S, WASHOUT_S, MARGIN = 30, 4, 1, 1.05
GOOD, OVER_TUNED = "good", "over-tuned"
CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"


@dataclass(frozen=True)
class Judged:
    """A winner and its canary."""

    values: dict[str, str]
    ratio: float
    """That of its own verdict on P99, default / winner."""
    outcome: str
    stopped: str
    may_stay: bool
    judged_by: str
    pairs: int
    canary: float | None
    """The ratio of what judges, canary / default; None without a pair."""


class CanaryWinners(Question[tuple[str, int], Judged]):
    """Canaries of two winners."""

    result = Judged
    seeds = 1
    has_store = True

    def cells(self) -> Mapping[str, tuple[str, int]]:
        places = [(name, seed) for seed in self.seed_range() for name in (GOOD, OVER_TUNED)]
        return {f"{name} {seed}": (name, seed) for name, seed in places}

    def measure(self, cell: tuple[str, int]) -> Judged:
        name, seed = cell
        store = self.store(f"{name}-{seed}")
        study = tryable(study_of(SCENARIO, seed, store))
        verdict = tuned(store, study if name == GOOD else over_tuned(study))
        winner = verdict.configuration
        lab, spec = logging_lab(SCENARIO)
        timing = Timing(block_s=BLOCK_S, washout_s=WASHOUT_S)
        observation = Observation(timing=timing, limits=BlockLimits())
        with labs_up(lab), clients(spec.name, TRAFFIC, "/size/100k.jpg", "0.1"):
            task = begun(store, replace(lab, name=f"{study.name}-canary"))
            result = canary(
                task, winner, observation, pairs=PAIRS, margin=MARGIN, title=f"{name} winner"
            )
        side = result.side(result.judged_by)
        return Judged(
            values=dict(winner.values),
            ratio=verdict.ratio,
            outcome=result.outcome,
            stopped=result.stopped,
            may_stay=result.may_stay,
            judged_by=result.judged_by,
            pairs=result.pairs,
            canary=None if side is None else side.ratio,
        )

    def progress(self, name: str, result: Judged) -> str:
        return f"{name}: {result}"

    def table(self, results: Mapping[str, Judged]) -> Iterator[str]:
        yield "| winner | parameters | its verdict, default / winner | canary | pairs | judged by |"
        yield "|---|---:|---:|---|---:|---|"
        for name, r in results.items():
            ratio = "" if r.canary is None else f" ({r.canary:.2f})"
            outcome = f"{r.outcome}{ratio} {r.stopped}".strip()
            yield (
                f"| {name} | {len(r.values)} | {r.ratio:.2f} | {outcome} | {r.pairs} | "
                f"{r.judged_by} |"
            )

    def missed(self, results: Mapping[str, Judged]) -> list[str]:
        return [name for name, r in results.items() if r.may_stay != name.startswith(GOOD)]


def tryable(study: Study) -> Study:
    """Return the study with the parameters that a canary can try."""
    keys = {p.key for p in study.parameters} - WHEN_LISTENING.keys()
    return replace(study, wanted=tuple(sorted(keys)))


def over_tuned(study: Study) -> Study:
    """Return a study whose winner is what chance chose."""
    ((arch, specs),) = study.clusters.items()
    near = tuple(replace(spec, link=None) for spec in specs if isinstance(spec, LabSpec))
    ((name, workload),) = study.workloads.items()
    return replace(
        study,
        name=f"{study.name}-over-tuned",
        clusters={arch: near},
        workloads={name: replace(workload, duration_s=1)},
        budget=replace(study.budget, trim_rounds=0, judge_pairs=3, judge_looks=1),
        wanted=tuple(key for key in study.wanted if key != CONGESTION_CONTROL),
    )
