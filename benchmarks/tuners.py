"""Tuners on the lab: active learning beside random search, published tuners, and offline.

    python -m benchmarks tuners                 on two replicas of the lab, slt: some 40 minutes
    python -m benchmarks tuners --buffer 40     behind a shorter buffer, where the good is rare
    python -m benchmarks tuners --buffer 30     and where it is rarer
    python -m benchmarks tuners --tuners ours offline --first 8 --checkpoints 8 12 16 20 40
    python -m benchmarks tuners --dry           on an emulator of it
    python -m benchmarks tuners --dry --buffer 40 --tuners ours p99 offline --trials 50
    python -m benchmarks tuners-pool FILE...    what races with other seeds come to together

All minimise log P99 over the parameters of benchmarks/data/slt-collect.csv.gz with the same number
of trials, from several seeds, in rounds: in each of them every tuner with every seed gets its next
BATCH trials, and all of these are measured in random order. What a tuner asks for passes through
`Space.decode`, and it is told what was measured there. A trial that fails counts as one whose
requests all took the timeout.

ours      a campaign of the product with the lab's study: `intop collect` of --first, then `intop
          refine`, except that it goes on when nothing better is expected
p99       the same where the tail of a trial is its P99; only when asked for
random    uniform on the parameters' own scales
tpe, gp   Optuna's samplers with their own settings; both take running trials into account
flash     what a regression tree predicts to be the lowest of POOL random configurations
ezr       PyPI's ezr on one such pool for each seed; it gets one trial a round, as it labels them
smac      PyPI's smac: the random forest and expected improvement of its hyper-parameter facade
offline   a campaign of the product without refining, for each of the checkpoints one of its own:
          `intop collect`, where one trial in five is a replicate

What begins alike is measured once: the --first trials of ours and p99 with the same seed, and the
first ALIKE of all rivals, which begin at random. The trials of the default by which ours and
offline watch for drift are no part of their number, as in a study's budget.

The winner after n trials is picked as `intop verify` does it: the finalists of all and the default
meet in interleaved rounds, as many as the lab's study has. Finalists of ours, p99 and offline are
what `intop train`, `intop search` and `intop verify` make of their first n trials, and their winner
is the one that `intop verify` picks. Those of the rivals are as many as the others may have, and
have the lowest trials; of these the lowest geometric mean wins. These trials are no part of
the n. Then all winners meet the default in further interleaved rounds. The gain is the geometric
mean of P99 of the default / that of the winner over rounds, and of the seeds' gains.

The claim: with n trials ours reaches SHARE of the best gain (its logarithm) that any tuner has
after any number of trials, and offline needs at least 2 n for that.

All is kept in `--store`; an interrupted verification may go on with fewer `--rounds`. `--table`
keeps all trials as a table; the emulator draws its trials from such a one (benchmarks/beds.py), and
judges winners without any noise.

Some tuners need a package that nothing else here needs: pip install torch ezr smac.
"""

import argparse
import importlib.util
import json
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from benchmarks.beds import BUFFERS, Bed, ByRound, Emulator, the_lab
from benchmarks.contenders import (
    BEGUN,
    MOST,
    TUNERS,
    Arm,
    Entry,
    Picked,
    Shared,
    Shots,
    counted,
    different,
    upto,
)
from benchmarks.harness import Question, UnusableError
from benchmarks.recorded import Offer
from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.stats import paired_ratio
from intop.learn.parallel import each

BATCH = 4
LEVEL = 0.95
SHARE = 0.95
EVERYBODYS = (40, 100)
"""Where winners of all tuners are judged."""
OFTEN = ("ours", "p99")
"""Whose winners are judged at all checkpoints."""
SEVERAL = ("offline",)
"""Who begins by how many trials there are: each checkpoint has an arm of its own."""
CLAIMED = ("ours", "offline")
ASIDE = ("p99",)
"""Who takes part only when asked for."""
NEEDS = {"gp": "torch", "ezr": "ezr", "smac": "smac"}
"""Tuners that need a package which nothing else here needs."""


@dataclass(frozen=True)
class Schedule:
    """How many trials ours begins with, and after how many winners are judged."""

    first: int = 20
    checkpoints: tuple[int, ...] = (20, 40, 50, 100)


# The race -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Race:
    """Who takes part, and how much each may measure. Models are fitted in `jobs` processes.

    Campaigns are kept in `folder` as long as it lasts.
    """

    arms: tuple[Arm, ...]
    trials: int
    folder: Path
    jobs: int | None = None
    schedule: Schedule = Schedule()

    def round(self, offer: Offer, so_far: Shared) -> list[tuple[Arm, Configuration]]:
        """What is measured next, in random order; none when all have had their trials."""
        tasks = []
        for arm in self.arms:
            shots = self.shots(arm, so_far)
            count = min(BATCH, self._trials(arm) - counted(shots))
            if count and counted(shots) >= self._shared(arm)[1]:
                tasks.append((self._entry(arm, offer), shots, count))
        asked = dict(each(_asked, tasks, jobs=self.jobs))
        places = [(arm, c) for arm in self.arms for c in asked.get(arm, ())]
        random.Random(sum(map(len, so_far.values()))).shuffle(places)
        return places

    def shots(self, arm: Arm, so_far: Shared) -> Shots:
        """All trials of an arm, with those that another one began with."""
        other, count = self._shared(arm)
        return [*upto(so_far.get(other, ()), count), *so_far.get(arm, ())]

    def finalists(self, offer: Offer, measured: Shared) -> "Finalists":
        """Those of each arm after each of its checkpoints."""
        shots = {arm: self.shots(arm, measured) for arm in self.arms}
        for arm in self.arms:
            TUNERS[arm.method].end(self._entry(arm, offer), shots[arm])
        tasks = [
            (self._entry(arm, offer), shots[arm], n)
            for arm in self.arms
            for n in self._checkpoints(arm)
            if n <= self.trials
        ]
        found = dict(each(_promising, tasks, jobs=self.jobs))
        return {(entry.arm, n): found[entry.arm, n] for entry, _, n in tasks}

    def winners(self, offer: Offer, finalists: "Finalists", picked: Picked) -> "Winners":
        """The best of the finalists of each."""
        return {
            (arm, n): TUNERS[arm.method].winner(self._entry(arm, offer), n, those, picked)
            for (arm, n), those in finalists.items()
        }

    def _entry(self, arm: Arm, offer: Offer) -> Entry:
        return Entry(arm, offer, self.trials, self.schedule.first, self.folder)

    def _trials(self, arm: Arm) -> int:
        return self.trials if arm.trials is None else arm.trials

    def _checkpoints(self, arm: Arm) -> tuple[int, ...]:
        if arm.trials is not None:
            return (arm.trials,)
        return self.schedule.checkpoints if arm.method in OFTEN else EVERYBODYS

    def _shared(self, arm: Arm) -> tuple[Arm, int]:
        method, count = BEGUN.get(arm.method, ("", 0))
        other = Arm(method, arm.seed)
        count = self.schedule.first if count is None else count
        return other, count if other in self.arms else 0


def arms_of(
    methods: Sequence[str], seeds: Sequence[int], trials: int, schedule: Schedule
) -> tuple[Arm, ...]:
    """A tuner with each seed. A tuner in SEVERAL also has an arm for each number of trials."""
    return tuple(
        Arm(method, seed, n)
        for seed in seeds
        for method in methods
        for n in (schedule.checkpoints if method in SEVERAL else (None,))
        if n is None or n <= trials
    )


Finalists = Mapping[tuple[Arm, int], Sequence[Configuration]]
Winners = Mapping[tuple[Arm, int], Configuration]


def _asked(entry: Entry, shots: Shots, count: int) -> tuple[Arm, list[Configuration]]:
    return entry.arm, TUNERS[entry.arm.method].ask(entry, shots, count)


def _promising(entry: Entry, shots: Shots, n: int) -> tuple[tuple[Arm, int], list[Configuration]]:
    return (entry.arm, n), TUNERS[entry.arm.method].finalists(entry, shots, n)


# What it came to ----------------------------------------------------------------------------------

Gains = Mapping[tuple[str, int], Mapping[int, float]]
"""Log gains by seed, of a method after so many trials."""


def gains_of(winners: Winners, verified: Mapping[str, ByRound]) -> Gains:
    """The log gain of each winner over the rounds that it has in common with the default."""
    found: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for (arm, n), configuration in winners.items():
        if interval := gain(configuration, verified):
            found[arm.method, n][arm.seed] = math.log(interval[0])
    return found


def stored_gains(paths: Sequence[Path]) -> Gains:
    """The log gains of several races together, of other seeds each, from what they left."""
    found: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for path in paths:
        for winner in json.loads(path.read_text())["winners"]:
            if winner["gain"] is not None:
                log_gain = math.log(winner["gain"][0])
                found[winner["method"], winner["after"]][winner["seed"]] = log_gain
    return found


def gain(
    configuration: Configuration, verified: Mapping[str, ByRound]
) -> tuple[float, float, float] | None:
    """P99 of the default / that of the configuration, with its interval; None if never measured."""
    default, own = verified[HOST], verified.get(configuration.digest, {})
    common = [number for number in default if number in own]
    if len(common) < 2:
        return None
    found = paired_ratio([default[n] for n in common], [own[n] for n in common], level=LEVEL)
    return found.value, found.low, found.high


def mean_gain(gains: Gains, method: str, n: int) -> float | None:
    """The mean log gain over seeds."""
    seeds = gains.get((method, n))
    return fmean(seeds.values()) if seeds else None


def needed(gains: Gains, method: str, target: float) -> int | None:
    """The first checkpoint at which a method's mean log gain reaches the target."""
    for n in sorted({n for who, n in gains if who == method}):
        found = mean_gain(gains, method, n)
        if found is not None and found >= target:
            return n
    return None


def markdown(gains: Gains, where: str) -> Iterator[str]:
    """A row for each tuner, and what became of the claim."""
    checkpoints = sorted({n for _, n in gains})
    yield "| tuner | " + " | ".join(f"after {n}" for n in checkpoints) + " |"
    yield "|---|" + "---:|" * len(checkpoints)
    for method in [m for m in TUNERS if any(m == who for who, _ in gains)]:
        cells = []
        for n in checkpoints:
            seeds = gains.get((method, n))
            if not seeds:
                cells.append("")
                continue
            mean = math.exp(fmean(seeds.values()))
            low, high = math.exp(min(seeds.values())), math.exp(max(seeds.values()))
            cells.append(f"{mean:.2f} ({low:.2f} to {high:.2f})")
        yield f"| {method} | " + " | ".join(cells) + " |"
    if all(any(who == method for method, _ in gains) for who in CLAIMED):
        yield ""
        yield claim(gains, where)


def claim(gains: Gains, where: str) -> str:
    """Whether ours gets as far as offline with half of its trials, in a sentence."""
    means = {key: fmean(seeds.values()) for key, seeds in gains.items() if seeds}
    (method, n), best = max(means.items(), key=lambda item: item[1])
    target = SHARE * best
    mine, theirs = (needed(gains, who, target) for who in CLAIMED)
    most = max(n for _, n in means)
    limit = theirs if theirs is not None else most + 1
    holds = mine is not None and 2 * mine <= limit
    return (
        f"The best gain {where} is that of {method} after {n} trials, {math.exp(best):.2f}; "
        f"{SHARE:.0%} of its logarithm is a gain of {math.exp(target):.2f}. Ours reaches that "
        f"{_after(mine, most)}, offline {_after(theirs, most)}: the claim "
        f"{'holds' if holds else 'does not hold'}."
    )


def _after(n: int | None, most: int) -> str:
    return f"not within {most} trials" if n is None else f"after {n} trials"


@dataclass(frozen=True)
class Outcome:
    """What was measured in the race, of finalists, and of winners."""

    measured: Shared
    finalists: Finalists
    picked: Picked
    winners: Winners
    verified: Mapping[str, ByRound]


def as_json(race: Race, outcome: Outcome) -> dict[str, object]:
    """Everything that was measured."""
    return {
        "trials": race.trials,
        "measured": {
            arm.name: [
                {"configuration": s.configuration.digest, "p99_ms": round(s.p99_ms, 3)}
                for s in race.shots(arm, outcome.measured)
            ]
            for arm in race.arms
        },
        "winners": [
            {
                "method": arm.method,
                "seed": arm.seed,
                "after": n,
                "configuration": configuration.digest,
                "values": dict(configuration.values),
                "gain": gain(configuration, outcome.verified),
                "finalists": [c.digest for c in outcome.finalists[arm, n]],
            }
            for (arm, n), configuration in outcome.winners.items()
        ],
        "picked_p99_ms": {
            digest: [shot.p99_ms for shot in shots] for digest, shots in outcome.picked.items()
        },
        "verified_p99_ms": {
            name: {number: p99_ms for (_, number), p99_ms in found.items()}
            for name, found in outcome.verified.items()
        },
    }


def run(bed: Bed, race: Race, rounds: int) -> Outcome:
    """The race, its winners, and their verification; how long what took is told."""
    spent = 0.0

    def following(offer: Offer, so_far: Shared) -> list[tuple[Arm, Configuration]]:
        nonlocal spent
        began = time.perf_counter()
        places = race.round(offer, so_far)
        spent += time.perf_counter() - began
        return places

    began = time.perf_counter()
    measured = bed.race(following)
    raced = time.perf_counter()
    finalists = race.finalists(bed.offer, measured)
    found = time.perf_counter()
    promising = different(c for those in finalists.values() for c in those)
    picked = bed.pick([*promising, DEFAULT], bed.offer.study.budget.pick_rounds)
    winners = race.winners(bed.offer, finalists, picked)
    won = time.perf_counter()
    distinct = different(winners.values())
    verified = bed.verify(distinct, rounds)
    print(
        f"{raced - began:.0f} s for the race, {spent:.0f} s of them for choosing; "
        f"{found - raced:.0f} s for finalists, {won - found:.0f} s to pick among "
        f"{len(promising)}, {time.perf_counter() - won:.0f} s to verify {len(distinct)} winners",
        file=sys.stderr,
    )
    return Outcome(measured, finalists, picked, winners, verified)


class Tuners(Question[str, Outcome]):
    """Does ours need at most half of the trials of the offline pipeline?"""

    seeds = 3
    has_store = True

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        everybody = [name for name in TUNERS if name not in ASIDE]
        add = parser.add_argument
        add("--dry", action="store_true", help="on an emulator of the lab")
        add("--tuners", nargs="+", choices=list(TUNERS), default=everybody, help="(all but p99)")
        add("--trials", type=int, default=100, help="for each tuner and seed (100)")
        add("--first", type=int, default=Schedule.first, help="that ours begins with (20)")
        add(
            "--checkpoints",
            nargs="+",
            type=int,
            metavar="N",
            default=list(Schedule.checkpoints),
            help="trials after which winners of ours and offline are judged (20 40 50 100)",
        )
        add("--rounds", type=int, default=6, help="of verification (6)")
        add("--jobs", type=int, help="processes for models (one a processor)")
        add("--replicas", type=int, default=2, help="of the lab (2)")
        add("--buffer", type=int, metavar="KB", help="of the lab's link (as in bbr-backends)")
        add("--table", type=Path, metavar="FILE", help="keep all trials there (.csv.gz)")
        guests = "of its packets (0); its load balancers are virtual machines then"
        add("--delay", type=float, default=0.0, metavar="MS", help=guests)
        add("--keys", nargs="+", default=(), metavar="KEY", help="to tune (those of the table)")
        add("--out", type=Path, default=Path("build/tuners.json"), help="(build/tuners.json)")

    def cells(self) -> dict[str, str]:
        check(self.given)
        return {"race": ""}

    def measure(self, cell: str) -> Outcome:  # noqa: ARG002
        given = self.given
        schedule = Schedule(given.first, tuple(given.checkpoints))
        arms = arms_of(given.tuners, self.seed_range(), given.trials, schedule)
        with TemporaryDirectory() as folder:
            race = Race(arms, given.trials, Path(folder), given.jobs, schedule)
            if given.dry:
                outcome = run(Emulator(BUFFERS[given.buffer]), race, given.rounds)
            else:
                given.store.mkdir(parents=True, exist_ok=True)
                with the_lab(
                    given.store / "tuners.db",
                    given.replicas,
                    buffer_kb=given.buffer,
                    delay_ms=given.delay,
                    keys=given.keys,
                ) as bed:
                    outcome = run(bed, race, given.rounds)
                    if given.table is not None:
                        bed.keep(given.table)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(as_json(race, outcome), indent=1) + "\n")
        return outcome

    def table(self, results: Mapping[str, Outcome]) -> Iterator[str]:
        where = "on the emulator" if self.given.dry else "on the lab"
        outcome = results["race"]
        return markdown(gains_of(outcome.winners, outcome.verified), where)


class Pool(Question[str, None]):
    """What do races with other seeds come to together?"""

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        races = "what races with other seeds left (--out)"
        parser.add_argument("races", nargs="+", type=Path, metavar="FILE", help=races)

    def cells(self) -> dict[str, str]:
        return {}

    def table(self, results: Mapping[str, None]) -> Iterator[str]:  # noqa: ARG002
        return markdown(stored_gains(self.given.races), "in these races")


def check(given: argparse.Namespace) -> None:
    """Raise UnusableError for options that don't fit."""
    lacking = [
        name for name in given.tuners if name in NEEDS and not importlib.util.find_spec(NEEDS[name])
    ]
    if lacking:
        packages = " ".join(NEEDS[name] for name in lacking)
        others = " ".join(name for name in given.tuners if name not in lacking)
        raise UnusableError(
            f"{', '.join(lacking)}: pip install {packages}, or leave these tuners out: "
            f"--tuners {others}"
        )
    if not min(EVERYBODYS) <= given.trials <= MOST:
        raise UnusableError(f"--trials must be from {min(EVERYBODYS)} to {MOST}")
    if not 2 <= given.first <= min(given.checkpoints):
        raise UnusableError("--first must be at least 2 and at most the first of --checkpoints")
    if given.dry and (given.buffer not in BUFFERS or given.delay or given.keys):
        known = ", ".join(f"--buffer {kb}" for kb in BUFFERS if kb is not None)
        raise UnusableError(f"there is no table to emulate that with, only for {known} or none")
    if given.rounds < 2:
        raise UnusableError("--rounds must be at least 2: an interval needs two rounds")
