"""Ablation: which of a winner's changes earn its gain, and what to measure next to find that out.

A set of changes stands for a configuration: the empty one is the default, all of them are the
winner. `ablate` asks for rounds in which some of these sets meet, is told log P99 of each of
them, and goes on from there. It depends only on these results, so that the stored rounds lead
to the same question again. docs/method.md describes the method.
"""

import math
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from intop.domain.replicates import PRIOR_WEIGHT, RESOLUTION
from intop.domain.stats import student_quantile

Changes = frozenset[str]
"""Changes by name. A name stands for a key, or for several that only go together."""

Round = Mapping[Changes, float]
"""Log P99 of the sets that met in one round; what could not be measured is missing."""

KEPT = 0.9
"""The share of the gain that a smaller set has to keep."""

PROMISED = (1, 2, 4, 7)
"""How many of the changes of which models expect most are tried as a set."""

PROMISED_ROUNDS = 4

NESTED = (3, 5, 8)
"""How many of the strongest changes are tried as a set."""

NESTED_ROUNDS = 6
DROP_ROUNDS = 6
BACK_ROUNDS = 8
INTERACTION_ROUNDS = 4
LOOKS = (4, 6, 8, 12, 16)
"""Rounds after which it is asked whether leaving a change out hurts."""

CLEARLY = 2
"""Standard errors by which a set has to fall short before more is done about it. With fewer, noise
alone would bring changes without effect back (benchmarks/results/ablation.md)."""

PATIENT = 6
"""Rounds after which what hurts by less than a standard error is measured no more."""

FEWEST_CANDIDATES = 6
TOP = 3
"""Changes among whose pairs interactions are measured, and that are tried at once to give back."""


@dataclass(frozen=True)
class Asked:
    """Sets that are to meet in so many further rounds."""

    sets: tuple[Changes, ...]
    rounds: int


@dataclass(frozen=True)
class Effect:
    """A difference of log P99 over `rounds` rounds, its standard error, and an interval."""

    mean: float
    error: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """What was found: the changes by evidence, and the smallest set, the strongest first.

    Where a few changes kept the gain that the models had ranked first, `order` is the models'
    ranking. The other changes were then not measured one by one.

    Effects are log P99 without a change less that with it, so that above 0 it helps: `left_out` of
    the winner, `alone` beside the default, `missed` in the smallest set. `interactions` are by
    pairs: how much more the two do together than the sum of both alone. `dropped` has a reason
    for each change that is not in the smallest set. `keeps_gain` says whether the smallest set was
    seen to keep the share that is wanted (KEPT); the search also ends where it falls short, no
    change that was dropped is seen to help, and no larger set that was tried is seen to keep it.
    """

    order: tuple[str, ...]
    minimal: tuple[str, ...]
    left_out: Mapping[str, Effect]
    alone: Mapping[str, Effect]
    missed: Mapping[str, Effect]
    interactions: Mapping[tuple[str, str], Effect]
    dropped: Mapping[str, str]
    keeps_gain: bool


class Evidence:
    """The rounds so far, and the differences between sets that they show."""

    def __init__(self, rounds: Iterable[Round] = ()) -> None:
        self._rounds = list(rounds)

    def add(self, rounds: Iterable[Round]) -> None:
        """Further rounds."""
        self._rounds.extend(rounds)

    def met(self, *sets: Changes) -> int:
        """How many rounds have all of these sets."""
        return sum(all(one in r for one in sets) for r in self._rounds)

    def effects(
        self, contrasts: Mapping[str, Mapping[Changes, int]], level: float
    ) -> dict[str, Effect]:
        """Contrasts of log P99, with weights by set, over the rounds that have all of its sets.

        Variances are drawn to that of all these contrasts together, as in domain/replicates.py:
        a few rounds have none of their own. Student's t has the degrees of freedom of both. What
        has no round, or no other with a second one, is left out.
        """
        values = {
            name: [
                sum(weight * r[one] for one, weight in weights.items())
                for r in self._rounds
                if all(one in r for one in weights)
            ]
            for name, weights in contrasts.items()
        }
        values = {name: found for name, found in values.items() if found}
        squares = {
            n: math.fsum((v - fmean(found)) ** 2 for v in found) for n, found in values.items()
        }
        freedom = sum(len(found) - 1 for found in values.values())
        if not freedom:
            return {}
        pooled = max(sum(squares.values()) / freedom, RESOLUTION**2)
        made: dict[str, Effect] = {}
        for name, found in values.items():
            own = len(found) - 1
            weight = min(PRIOR_WEIGHT, freedom - own)
            degrees = weight + own
            error = math.sqrt((weight * pooled + squares[name]) / degrees / len(found))
            error = max(error, RESOLUTION / math.sqrt(len(found)))
            half = student_quantile(level, degrees) * error
            mean = fmean(found)
            made[name] = Effect(mean, error, mean - half, mean + half, len(found))
        return made


def kept_share(gain: float, loss: float) -> float:
    """The share of a gain (log ratio) that is left when so much of the log ratio is lost.

    Gains count as ratio less 1. Raises ValueError where there is no gain.
    """
    if gain <= 0:
        raise ValueError("there is no gain to keep")
    return math.expm1(gain - loss) / math.expm1(gain)


def without(whole: Changes, name: str) -> dict[Changes, int]:
    """The contrast of leaving a change out of a set."""
    return {whole - {name}: 1, whole: -1}


def ablate(
    names: Sequence[str], *, rounds: int, level: float, promised: Sequence[str] = ()
) -> Generator[Asked, Sequence[Round], Ablation]:
    """Ask for rounds until the smallest set is known.

    `promised` are the names again, that which models promise most of first. A few of these are
    tried before all changes are ranked by measurement, which is most of a search's price. The
    others are measured one by one only where these few lose part of the gain.

    `rounds` are measured of each of the first half of the changes, about half of them of the
    others. `level` is that of intervals; a change is kept when the low end of what leaving it out
    costs is above 0, where the error rate is shared among the set's changes and all looks.
    """
    search = _Search(names, level)
    if not (yield from search.try_promised(promised)):
        yield from search.rank(rounds)
        yield from search.nest()
        yield from search.prune()
        yield from search.give_back()
        yield from search.go_back()
    interactions = yield from search.interact()
    return search.found(interactions)


Asking = Generator[Asked, Sequence[Round], None]


class _Search:
    """The state of a search. What is asked for is measured, and then known as evidence."""

    def __init__(self, names: Sequence[str], level: float) -> None:
        self.names = tuple(names)
        self.whole: Changes = frozenset(names)
        self.level = level
        self.evidence = Evidence()
        self.order = self.names
        self.current = self.whole
        self.larger: list[Changes] = []  # tried before `current` and larger, the smallest last
        self.missed: dict[str, Effect] = {}
        self.dropped: dict[str, str] = {}

    def ask(self, sets: Iterable[Changes], rounds: int) -> Asking:
        told = yield Asked(tuple(dict.fromkeys(sets)), rounds)
        self.evidence.add(told)

    def ask_up_to(self, rounds: int, sets: Iterable[Changes], have: int) -> Asking:
        """What is missing of so many rounds; an even number, so that replicas are busy alike."""
        if have < rounds:
            yield from self.ask(sets, 2 * -(-(rounds - have) // 2))

    # By promise -----------------------------------------------------------------------------------

    def try_promised(self, promised: Sequence[str]) -> Generator[Asked, Sequence[Round], bool]:
        """Whether a few of the most promising changes keep the gain; then `current` are these."""
        sizes = [size for size in PROMISED if size < len(self.names)]
        if not (promised and sizes):
            return False
        nested = [frozenset(promised[:size]) for size in sizes]
        yield from self.ask([frozenset(), self.whole, *nested], PROMISED_ROUNDS)
        # The largest may fall short by chance; `give_back` looks at it again.
        chosen = self._smallest(nested, errors=0) or self._smallest(nested[-1:], errors=1)
        if chosen is None:
            return False
        self.order, self.current = tuple(promised), chosen
        few = "one change" if len(chosen) == 1 else f"{len(chosen)} changes"
        keep = "keeps" if len(chosen) == 1 else "keep"
        why = f"the {few} of which the models expect most {keep} the gain"
        self._drop(self.whole - chosen, why)
        yield from self.prune()
        yield from self.give_back()
        if not (yield from self._falls_short(self.current, CLEARLY)):
            return True
        self.current, self.larger, self.missed, self.dropped = self.whole, [], {}, {}
        return False

    # By evidence ----------------------------------------------------------------------------------

    def rank(self, rounds: int) -> Asking:
        """Each change left out of the winner and alone; the weaker half in half of the rounds."""
        first = max(2, -(-rounds // 2))  # one round alone has no scatter
        yield from self.ask(self._single(self.names), first)
        self._sort()
        if rounds > first:
            better = self.order[: max(FEWEST_CANDIDATES, -(-len(self.order) // 2))]
            yield from self.ask(self._single(better), rounds - first)
            self._sort()

    def _single(self, names: Iterable[str]) -> list[Changes]:
        names = list(names)
        left_out = [self.whole - {n} for n in names]
        return [frozenset(), self.whole, *left_out, *(frozenset({n}) for n in names)]

    def _sort(self) -> None:
        """By the sum of both effects: of two changes that do the same, only `alone` shows any."""
        left_out, alone = self.left_out(), self.alone()

        def score(name: str) -> float:
            return sum(found[name].mean for found in (left_out, alone) if name in found)

        self.order = tuple(sorted(self.names, key=lambda name: (-score(name), name)))

    def left_out(self) -> dict[str, Effect]:
        return self.evidence.effects({n: without(self.whole, n) for n in self.names}, self.level)

    def alone(self) -> dict[str, Effect]:
        nothing: Changes = frozenset()
        alone = {n: {nothing: 1, frozenset({n}): -1} for n in self.names}
        return self.evidence.effects(alone, self.level)

    # Nested sets ----------------------------------------------------------------------------------

    def nest(self) -> Asking:
        """The fewest of the strongest that keep the gain, by point estimate."""
        sizes = [size for size in NESTED if size < len(self.names)]
        if not sizes:
            return
        nested = {size: frozenset(self.order[:size]) for size in sizes}
        yield from self.ask([self.whole, *nested.values()], NESTED_ROUNDS)
        chosen = self._smallest(nested.values(), errors=0)
        if chosen is None:
            # To go on from all of them is dear, so a second look at the largest comes first.
            largest = list(nested.values())[-2:]
            yield from self.ask([self.whole, *largest], NESTED_ROUNDS)
            chosen = self._smallest(largest, errors=CLEARLY)
        if chosen is not None:
            self.current = chosen
            self.larger = [one for one in reversed(nested.values()) if one > chosen]
            self._drop(self.whole - chosen, f"the {len(chosen)} strongest keep the gain")

    def _smallest(self, sets: Iterable[Changes], *, errors: float) -> Changes | None:
        """The first set that keeps the gain, or loses less than so many standard errors."""
        for chosen in sets:
            lost = self._lost(chosen, self.whole)
            if lost is not None and (lost.mean < errors * lost.error or self._is_kept(lost)):
                return chosen
        return None

    def _lost(self, smaller: Changes, larger: Changes) -> Effect | None:
        contrast = {smaller: 1, larger: -1}
        return self.evidence.effects({"lost": contrast}, self.level).get("lost")

    def _is_kept(self, lost: Effect) -> bool:
        nothing: Changes = frozenset()
        gain = self._lost(nothing, self.whole)
        return gain is not None and gain.mean > 0 and kept_share(gain.mean, lost.mean) >= KEPT

    # Backward elimination -------------------------------------------------------------------------

    def prune(self) -> Asking:
        """Leave out what does not measurably hurt, several at once where that loses nothing."""
        while len(self.current) > 1:
            undecided = yield from self._undecided()
            if not undecided:
                return
            yield from self._drop_most(undecided)
        # The last one is the gain itself, which a verdict has shown.
        yield from self._undecided()

    def _undecided(self) -> Generator[Asked, Sequence[Round], list[str]]:
        """Those of which it doesn't show that they are needed, the weakest first."""
        level = 1 - 2 * (1 - self.level) / (len(self.current) * len(LOOKS))
        contrasts = {n: without(self.current, n) for n in sorted(self.current)}
        undecided = list(contrasts)
        measured = undecided
        for look in LOOKS:
            have = min((self.evidence.met(*contrasts[n]) for n in measured), default=look)
            sets = [self.current, *(self.current - {n} for n in measured)]
            yield from self.ask_up_to(look, sets, have)
            self.missed = self.evidence.effects(contrasts, level)
            found = self.missed
            undecided = [n for n in contrasts if n not in found or found[n].low <= 0]
            measured = [
                n
                for n in undecided
                if n not in found or look < PATIENT or found[n].mean >= found[n].error
            ]
        return sorted(undecided, key=lambda n: found[n].mean if n in found else 0.0)

    def _drop_most(self, undecided: Sequence[str]) -> Asking:
        """Drop all of them, or else the weaker half, and so on; the weakest in any case.

        Changes that do the same are all undecided: without one of them, the other shows.
        """
        count = min(len(undecided), len(self.current) - 1)
        while count > 1:
            rest = self.current - set(undecided[:count])
            have = self.evidence.met(rest, self.current)
            yield from self.ask_up_to(DROP_ROUNDS, [self.current, rest], have)
            lost = self._lost(rest, self.current)
            if lost is not None and (lost.mean < lost.error or self._is_kept(lost)):
                break
            count //= 2
        self.larger.append(self.current)
        self._drop(undecided[:count], "leaving it out does not measurably hurt")
        self.current -= set(undecided[:count])

    def _drop(self, names: Collection[str], why: str) -> None:
        self.dropped |= dict.fromkeys(names, why)

    # Where too much was dropped -------------------------------------------------------------------

    def give_back(self) -> Asking:
        """Take dropped changes back, one by one, while the set falls short of the gain.

        Many small effects are each too small to show in a large set, but not all of them together.
        Beside the smallest set, whose P99 scatters less, and over more rounds, they can.
        """
        given = False
        while self.dropped and (yield from self._falls_short(self.current)):
            name = yield from self._most_helpful()
            if name is None:
                break
            given = True
            self.current |= {name}
            del self.dropped[name]
        if given:
            yield from self._undecided()

    def _falls_short(
        self, chosen: Changes, errors: float = 0
    ) -> Generator[Asked, Sequence[Round], bool]:
        """Whether a set does not keep the gain, and loses at least so many standard errors."""
        sets: list[Changes] = [frozenset(), self.whole, chosen]
        yield from self.ask_up_to(BACK_ROUNDS, sets, self.evidence.met(*sets))
        lost = self._lost(chosen, self.whole)
        if lost is None or self._is_kept(lost):
            return False
        return lost.mean >= errors * lost.error

    def go_back(self) -> Asking:
        """Where the set clearly falls short: to the smallest larger one tried that does not.

        Each step of an elimination may lose less than can be measured, and all together too much.
        """
        if not (self.dropped and (yield from self._falls_short(self.current, CLEARLY))):
            return
        for chosen in [larger | self.current for larger in reversed(self.larger)]:
            if chosen == self.whole:
                return
            if not (yield from self._falls_short(chosen)):
                self.current = chosen
                self.dropped = {n: why for n, why in self.dropped.items() if n not in chosen}
                yield from self._undecided()
                return

    def _most_helpful(self) -> Generator[Asked, Sequence[Round], str | None]:
        """The dropped change that measurably helps the set most, of the few most likely to."""
        level = 1 - 2 * (1 - self.level) / (len(self.dropped) * len(LOOKS))
        likely = [name for name in self.order if name in self.dropped][:TOP]
        contrasts = {n: without(self.current | {n}, n) for n in likely}
        for look in LOOKS:
            have = min(self.evidence.met(*contrasts[n]) for n in likely)
            sets = [self.current, *(self.current | {n} for n in likely)]
            yield from self.ask_up_to(look, sets, have)
            found = self.evidence.effects(contrasts, level)
            shown = [n for n, effect in found.items() if effect.low > 0]
            if shown:
                return max(shown, key=lambda n: found[n].mean)
            likely = [
                n
                for n in likely
                if n not in found or look < PATIENT or found[n].mean >= found[n].error
            ]
            if not likely:
                break
        return None

    # Interactions ---------------------------------------------------------------------------------

    def interact(self) -> Generator[Asked, Sequence[Round], dict[tuple[str, str], Effect]]:
        """Two by two: default, one, the other, both."""
        pairs = list(combinations(self.ranked()[:TOP], 2))
        if not pairs:
            return {}
        nothing: Changes = frozenset()
        single = [frozenset({n}) for n in dict.fromkeys(n for pair in pairs for n in pair)]
        yield from self.ask([nothing, *single, *map(frozenset, pairs)], INTERACTION_ROUNDS)
        contrasts = {
            " ".join(pair): {
                nothing: -1,
                frozenset({pair[0]}): 1,
                frozenset({pair[1]}): 1,
                frozenset(pair): -1,
            }
            for pair in pairs
        }
        found = self.evidence.effects(contrasts, self.level)
        return {pair: found[" ".join(pair)] for pair in pairs if " ".join(pair) in found}

    def ranked(self) -> tuple[str, ...]:
        """The smallest set, by what is lost without each, the most first."""

        def lost(name: str) -> float:
            return self.missed[name].mean if name in self.missed else 0.0

        return tuple(sorted(self.current, key=lambda name: (-lost(name), name)))

    def _missed_each(self) -> dict[str, Effect]:
        """What is lost without each of the smallest set, by all rounds and at their level."""
        contrasts = {n: without(self.current, n) for n in self.ranked() if n in self.missed}
        return self.evidence.effects(contrasts, self.level)

    def found(self, interactions: Mapping[tuple[str, str], Effect]) -> Ablation:
        """All that is known in the end."""
        lost = self._lost(self.current, self.whole)
        return Ablation(
            order=self.order,
            minimal=self.ranked(),
            left_out=self.left_out(),
            alone=self.alone(),
            missed=self._missed_each(),
            interactions=interactions,
            dropped=self.dropped,
            keeps_gain=not self.dropped or (lost is not None and self._is_kept(lost)),
        )
