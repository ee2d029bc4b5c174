"""Does a verdict see harm beyond P99, and does it call harm or gain where there is none?

No host is asked: the trials are those of the default in the recorded campaign, real ones of X86 and
ARM, with about 1,070 requests each. A verdict draws PAIRS pairs of them with
replacement. `aa` leaves both sides as they are. `planted` makes one request in ONE_IN of the other
side, drawn at random, WAIT_MS slower. The verdict is `judged` of the product with the guardrails of
a file that says nothing of them, after one look at 95 %.

The claim: of the planted ones 95 % are flagged (the guardrail of slow requests is unclear or
broken), and of A/A at most 10 % call anything: P99, or any of the latencies beside it.
"""

import argparse
import lzma
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.harness import Question, positive
from intop.domain.configuration import DEFAULT
from intop.domain.guardrails import Guardrails
from intop.domain.histogram import Histogram
from intop.domain.sides import judged
from intop.domain.trial import Trial
from intop.domain.verdict import Verdict
from intop.store import opened_to_read

RECORDED = Path(__file__).parents[1] / "tests" / "data" / "campaign" / "finished.db.xz"
LEVEL = 0.95
NOTHING = "no significant gain"
ONE_IN, WAIT_MS = 400, 1000
FLAGGED, CALLED = 0.95, 0.10
"""The claim: the least share of planted ones, and the largest of A/A."""


@dataclass(frozen=True)
class Shares:
    """The shares of simulated verdicts on one architecture."""

    flagged: float
    """The guardrail of slow requests is unclear or broken."""
    broken: float
    called: float
    """P99 or another latency differs."""
    called_p99: float


def defaults() -> dict[str, list[Trial]]:
    """Return the usable trials of the default in the recorded campaign, by architecture."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "finished.db"
        path.write_bytes(lzma.decompress(RECORDED.read_bytes()))
        with opened_to_read(str(path), print) as store:
            return {
                subject.arch: [
                    trial
                    for trial in store.trials(subject)
                    if trial.usable and trial.configuration.is_default
                ]
                for campaign in store.campaigns()
                for subject in store.subjects(campaign)
            }


class FarTail(Question[tuple[str, bool], Shares]):
    """Is harm beyond P99 seen?"""

    seeds = 1
    result = Shares
    fixed = ("pairs", "verdicts")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--pairs", type=positive, default=10, help="of a verdict (10)")
        parser.add_argument("--verdicts", type=positive, default=1000, help="of each cell (1000)")

    def cells(self) -> dict[str, tuple[str, bool]]:
        return {
            f"{arch} {'planted' if is_planted else 'aa'}": (arch, is_planted)
            for arch in ("x86", "arm")
            for is_planted in (False, True)
        }

    @cached_property
    def trials(self) -> dict[str, list[Trial]]:
        """The usable trials of the default, by architecture."""
        return defaults()

    def measure(self, cell: tuple[str, bool]) -> Shares:
        arch, is_planted = cell
        rng = np.random.default_rng(self.given.start)
        verdicts = [self._verdict(arch, rng, is_planted) for _ in range(self.given.verdicts)]
        states = [
            next(g.state for g in v.guardrails if g.quantity == "slow requests") for v in verdicts
        ]
        return Shares(
            flagged=float(np.mean([state != "kept" for state in states])),
            broken=float(np.mean([state == "broken" for state in states])),
            called=float(np.mean([_differs(v) for v in verdicts])),
            called_p99=float(np.mean([v.latency_outcome != NOTHING for v in verdicts])),
        )

    def _verdict(self, arch: str, rng: np.random.Generator, is_planted: bool) -> Verdict:
        pool = self.trials[arch]
        drawn = [pool[n] for n in rng.integers(len(pool), size=2 * self.given.pairs)]
        default, other = drawn[: self.given.pairs], drawn[self.given.pairs :]
        if is_planted:
            other = [slower(trial, rng) for trial in other]
        return judged(
            default,
            other,
            DEFAULT,
            origin="other side",
            against="",
            failures=0,
            rounds=self.given.pairs,
            margins=Guardrails(),
            level=LEVEL,
            each_level=LEVEL,
        )

    def table(self, results: Mapping[str, Shares]) -> Iterator[str]:
        yield "| bed | flagged | broken | calls a latency | calls P99 |"
        yield "|---|---:|---:|---:|---:|"
        for name, r in results.items():
            shares = (r.flagged, r.broken, r.called, r.called_p99)
            yield f"| {name} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |"

    def missed(self, results: Mapping[str, Shares]) -> list[str]:
        planted = [n for n, r in results.items() if "planted" in n and r.flagged < FLAGGED]
        same = [n for n, r in results.items() if "aa" in n and r.called > CALLED]
        return [*(f"{n}: too few are flagged" for n in planted), *(f"{n}: calls" for n in same)]


def _differs(verdict: Verdict) -> bool:
    return verdict.latency_outcome != NOTHING or bool(verdict.certain)


def slower(trial: Trial, rng: np.random.Generator) -> Trial:
    """Return the trial with one request in ONE_IN slower by WAIT_MS, drawn at random."""
    assert trial.histogram is not None
    pairs: list[tuple[int, int]] = []
    for value_us, count in trial.histogram.pairs():
        slow = int(rng.binomial(count, 1 / ONE_IN))
        pairs += [(value_us, count - slow)] if count > slow else []
        pairs += [(value_us + 1000 * WAIT_MS, slow)] if slow else []
    return replace(trial, histogram=Histogram.from_pairs(pairs))
