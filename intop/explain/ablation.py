"""Ablation: which of a winner's changes earn its gain, and what to measure next to learn that.

A set of changes stands for a configuration: the empty one is the default, all of them are the
winner. `ablate` asks for rounds in which some of these sets meet, receives log latency of each, and
goes on from there. It depends only on these results, so stored rounds lead to the same question
again. docs/method.md describes the method.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from intop.campaign.verify.change_rounds import (
    Asking,
    Changes,
    Effect,
    NextRounds,
    Rounds,
    kept_share,
    without,
)
from intop.domain.explanation import KEPT

T = TypeVar("T")

PROMISED = (1, 2, 4, 7)
"""Sizes of the sets that hold the changes of which the models expect most."""

PROMISED_ROUNDS = 4

NESTED = (3, 5, 8)
"""Sizes of the sets that hold the strongest changes."""

NESTED_ROUNDS = 6
DROP_ROUNDS = 6
BACK_ROUNDS = 8
INTERACTION_ROUNDS = 4
LOOKS = (4, 6, 8, 12, 16)
"""Rounds after which the search asks whether leaving a change out hurts."""

CLEARLY = 2
"""Standard errors by which a set has to fall short before more is done about it. With fewer, noise
alone would bring changes without effect back (benchmarks/results/screening.md)."""

PATIENT = 6
"""Rounds after which a change that hurts by less than a standard error is measured no more."""

FEWEST_CANDIDATES = 6
TOP = 3
"""Changes whose pairs are measured for interactions, and that are tried at once to take back."""

NOTHING: Changes = frozenset()


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """The changes by evidence, and the smallest set. Effects are above 0 where a change helps."""

    order: tuple[str, ...]
    """All changes, the strongest first. By the models where a few of their first changes kept the
    gain: then the others were not measured one by one."""
    minimal: tuple[str, ...]
    """The smallest set, the strongest first."""
    left_out: Mapping[str, Effect]
    """Log latency of the winner without a change less that of the winner."""
    alone: Mapping[str, Effect]
    """Log latency of the default less that of the default with a change."""
    missed: Mapping[str, Effect]
    """Log latency of the smallest set without a change less that of the smallest set."""
    interactions: Mapping[tuple[str, str], Effect]
    """The effect of two changes together beyond the sum of both alone."""
    dropped: Mapping[str, str]
    """The reason for each change that is not in the smallest set."""
    keeps_gain: bool
    """Whether the smallest set was seen to keep the share KEPT. Otherwise it falls short, but no
    dropped change is seen to help, and no larger set that was tried is seen to keep it."""


def ablate(
    names: Sequence[str], *, rounds: int, level: float, promised: Sequence[str] = ()
) -> Asking[Ablation]:
    """Ask for rounds until the smallest set is known.

    `promised` are the same names, those first of which the models expect most. A few of these are
    tried before all changes are ranked by measurement, which is most of a search's price. The
    others are measured one by one only where these few lose part of the gain.

    `rounds` are measured of each of the first half of the changes, about half of them of the
    others. Intervals have `level`. A change is kept when the low end of what leaving it out costs
    is above 0; the error rate is shared among the set's changes and all looks.
    """
    search = _Search(names, level)
    if not (yield from search.try_promised(promised)):
        yield from search.rank(rounds)
        yield from search.nest()
        yield from search.prune()
        yield from search.take_back()
        yield from search.fall_back()
    interactions = yield from search.interact()
    return search.result(interactions)


class _Search:
    """The state of a search. What it asks for is measured, and then known in `rounds`."""

    def __init__(self, names: Sequence[str], level: float) -> None:
        self.names = tuple(names)
        self.whole: Changes = frozenset(names)
        self.level = level
        self.rounds = Rounds()
        self.order = self.names
        self.current = self.whole
        self.larger: list[Changes] = []  # tried before `current` and larger, the smallest last
        self.missed: dict[str, Effect] = {}
        self.dropped: dict[str, str] = {}

    def ask(self, sets: Iterable[Changes], rounds: int) -> Asking[None]:
        """Measure these sets together in so many further rounds."""
        self.rounds.add((yield NextRounds(tuple(dict.fromkeys(sets)), rounds)))

    def ask_up_to(self, rounds: int, sets: Iterable[Changes], have: int) -> Asking[None]:
        """Measure what lacks of so many rounds: an even number, so that replicas share them."""
        if have < rounds:
            yield from self.ask(sets, 2 * -(-(rounds - have) // 2))

    # By promise -----------------------------------------------------------------------------------

    def try_promised(self, promised: Sequence[str]) -> Asking[bool]:
        """Return whether a few of the most promising changes keep the gain, now in `current`."""
        sizes = [size for size in PROMISED if size < len(self.names)]
        if not (promised and sizes):
            return False
        nested = [frozenset(promised[:size]) for size in sizes]
        yield from self.ask([NOTHING, self.whole, *nested], PROMISED_ROUNDS)
        # The largest may fall short by chance; `take_back` looks at it again.
        chosen = self._smallest(nested, errors=0) or self._smallest(nested[-1:], errors=1)
        if chosen is None:
            return False
        self.order, self.current = tuple(promised), chosen
        few = "one change" if len(chosen) == 1 else f"{len(chosen)} changes"
        keep = "keeps" if len(chosen) == 1 else "keep"
        why = f"the {few} of which the models expect most {keep} the gain"
        self._drop(self.whole - chosen, why)
        yield from self.prune()
        yield from self.take_back()
        if not (yield from self._falls_short(self.current, CLEARLY)):
            return True
        self.current, self.larger, self.missed, self.dropped = self.whole, [], {}, {}
        return False

    # By evidence ----------------------------------------------------------------------------------

    def rank(self, rounds: int) -> Asking[None]:
        """Leave each change out, and try it alone; the weaker half in fewer rounds."""
        first = max(2, -(-rounds // 2))  # one round alone has no scatter
        yield from self.ask(self._single(self.names), first)
        self._sort()
        if rounds > first:
            better = self.order[: max(FEWEST_CANDIDATES, -(-len(self.order) // 2))]
            yield from self.ask(self._single(better), rounds - first)
            self._sort()

    def _single(self, names: Sequence[str]) -> list[Changes]:
        left_out = [self.whole - {n} for n in names]
        return [NOTHING, self.whole, *left_out, *(frozenset({n}) for n in names)]

    def _sort(self) -> None:
        """Sort by the sum of both effects: of two changes that do the same, only `alone` shows."""
        effects = self.left_out(), self.alone()

        def score(name: str) -> float:
            return sum(by_name[name].mean for by_name in effects if name in by_name)

        self.order = tuple(sorted(self.names, key=lambda name: (-score(name), name)))

    def left_out(self) -> dict[str, Effect]:
        """Return the effect of each change in the winner."""
        return self.rounds.effects({n: without(self.whole, n) for n in self.names}, self.level)

    def alone(self) -> dict[str, Effect]:
        """Return the effect of each change beside the default."""
        contrasts = {n: {NOTHING: 1, frozenset({n}): -1} for n in self.names}
        return self.rounds.effects(contrasts, self.level)

    # Nested sets ----------------------------------------------------------------------------------

    def nest(self) -> Asking[None]:
        """Choose the fewest of the strongest that keep the gain, by point estimate."""
        sizes = [size for size in NESTED if size < len(self.names)]
        if not sizes:
            return
        nested = [frozenset(self.order[:size]) for size in sizes]
        yield from self.ask([self.whole, *nested], NESTED_ROUNDS)
        chosen = self._smallest(nested, errors=0)
        if chosen is None:
            # To go on from all of them is dear, so a second look at the largest comes first.
            yield from self.ask([self.whole, *nested[-2:]], NESTED_ROUNDS)
            chosen = self._smallest(nested[-2:], errors=CLEARLY)
        if chosen is not None:
            self.current = chosen
            self.larger = [changes for changes in reversed(nested) if changes > chosen]
            self._drop(self.whole - chosen, f"the {len(chosen)} strongest keep the gain")

    def _smallest(self, sets: Iterable[Changes], *, errors: float) -> Changes | None:
        """Return the first set that keeps the gain, or loses less than so many standard errors."""
        for chosen in sets:
            loss = self._loss(chosen, self.whole)
            if loss is not None and (loss.mean < errors * loss.error or self._is_kept(loss)):
                return chosen
        return None

    def _loss(self, smaller: Changes, larger: Changes) -> Effect | None:
        contrast = {smaller: 1, larger: -1}
        return self.rounds.effects({"loss": contrast}, self.level).get("loss")

    def _is_kept(self, loss: Effect) -> bool:
        gain = self._loss(NOTHING, self.whole)
        return gain is not None and gain.mean > 0 and kept_share(gain.mean, loss.mean) >= KEPT

    # Backward elimination -------------------------------------------------------------------------

    def prune(self) -> Asking[None]:
        """Leave out what does not measurably hurt, several at once where that loses nothing."""
        while len(self.current) > 1:
            undecided = yield from self._undecided()
            if not undecided:
                return
            yield from self._drop_most(undecided)
        # The last one is the gain itself, which a verdict has shown.
        yield from self._undecided()

    def _undecided(self) -> Asking[list[str]]:
        """Return the changes that are not shown to be needed, the weakest first."""
        level = self._shared_level(len(self.current))
        contrasts = {n: without(self.current, n) for n in sorted(self.current)}
        undecided = measured = list(contrasts)
        for look in LOOKS:
            have = min((self.rounds.count(*contrasts[n]) for n in measured), default=look)
            sets = [self.current, *(self.current - {n} for n in measured)]
            yield from self.ask_up_to(look, sets, have)
            self.missed = self.rounds.effects(contrasts, level)
            undecided = [n for n in contrasts if not self._is_above_0(n)]
            measured = _worth_measuring(undecided, self.missed, look)
        return sorted(undecided, key=lambda n: self.missed[n].mean if n in self.missed else 0.0)

    def _is_above_0(self, name: str) -> bool:
        return name in self.missed and self.missed[name].low > 0

    def _shared_level(self, changes: int) -> float:
        """Return the level of one interval among those of so many changes at all looks."""
        return 1 - 2 * (1 - self.level) / (changes * len(LOOKS))

    def _drop_most(self, undecided: Sequence[str]) -> Asking[None]:
        """Drop all of them, or else the weaker half, and so on; the weakest in any case.

        Changes that do the same are all undecided: without one of them, the other shows.
        """
        count = min(len(undecided), len(self.current) - 1)
        while count > 1:
            rest = self.current - set(undecided[:count])
            have = self.rounds.count(rest, self.current)
            yield from self.ask_up_to(DROP_ROUNDS, [self.current, rest], have)
            loss = self._loss(rest, self.current)
            if loss is not None and (loss.mean < loss.error or self._is_kept(loss)):
                break
            count //= 2
        self.larger.append(self.current)
        self._drop(undecided[:count], "leaving it out does not measurably hurt")
        self.current -= set(undecided[:count])

    def _drop(self, names: Collection[str], why: str) -> None:
        self.dropped |= dict.fromkeys(names, why)

    # Where too much was dropped -------------------------------------------------------------------

    def take_back(self) -> Asking[None]:
        """Take dropped changes back, one by one, while the set falls short of the gain.

        Many small effects are each too small to show in a large set, but not all of them together.
        Beside the smallest set, whose latency scatters less, and over more rounds, they can.
        """
        has_taken = False
        while self.dropped and (yield from self._falls_short(self.current)):
            name = yield from self._most_helpful()
            if name is None:
                break
            has_taken = True
            self.current |= {name}
            del self.dropped[name]
        if has_taken:
            yield from self._undecided()

    def _falls_short(self, chosen: Changes, errors: float = 0) -> Asking[bool]:
        """Return whether a set loses the gain, and at least so many standard errors."""
        sets: list[Changes] = [NOTHING, self.whole, chosen]
        yield from self.ask_up_to(BACK_ROUNDS, sets, self.rounds.count(*sets))
        loss = self._loss(chosen, self.whole)
        if loss is None or self._is_kept(loss):
            return False
        return loss.mean >= errors * loss.error

    def fall_back(self) -> Asking[None]:
        """Return to the smallest larger set where this one clearly falls short.

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

    def _most_helpful(self) -> Asking[str | None]:
        """Return the dropped change that measurably helps most, of the few most likely to."""
        level = self._shared_level(len(self.dropped))
        likely = [name for name in self.order if name in self.dropped][:TOP]
        contrasts = {n: without(self.current | {n}, n) for n in likely}
        for look in LOOKS:
            have = min(self.rounds.count(*contrasts[n]) for n in likely)
            sets = [self.current, *(self.current | {n} for n in likely)]
            yield from self.ask_up_to(look, sets, have)
            effects = self.rounds.effects(contrasts, level)
            helpful = [n for n, effect in effects.items() if effect.low > 0]
            if helpful:
                return max(helpful, key=lambda n: effects[n].mean)
            likely = _worth_measuring(likely, effects, look)
            if not likely:
                break
        return None

    # Interactions ---------------------------------------------------------------------------------

    def interact(self) -> Asking[dict[tuple[str, str], Effect]]:
        """Measure two by two: the default, each change alone, and both."""
        pairs = list(combinations(self.ranked()[:TOP], 2))
        if not pairs:
            return {}
        single = [frozenset({n}) for n in dict.fromkeys(n for pair in pairs for n in pair)]
        yield from self.ask([NOTHING, *single, *map(frozenset, pairs)], INTERACTION_ROUNDS)
        contrasts: dict[str, dict[Changes, int]] = {
            f"{a} {b}": {NOTHING: -1, frozenset({a}): 1, frozenset({b}): 1, frozenset({a, b}): -1}
            for a, b in pairs
        }
        effects = self.rounds.effects(contrasts, self.level)
        return {pair: effects[" ".join(pair)] for pair in pairs if " ".join(pair) in effects}

    def ranked(self) -> tuple[str, ...]:
        """Return the smallest set by what is lost without each change, the most first."""

        def lost(name: str) -> float:
            return self.missed[name].mean if name in self.missed else 0.0

        return tuple(sorted(self.current, key=lambda name: (-lost(name), name)))

    def result(self, interactions: Mapping[tuple[str, str], Effect]) -> Ablation:
        """Return all that is known at the end."""
        loss = self._loss(self.current, self.whole)
        ranked = self.ranked()
        # By all rounds, and each at its own level.
        missed = {n: without(self.current, n) for n in ranked if n in self.missed}
        return Ablation(
            order=self.order,
            minimal=ranked,
            left_out=self.left_out(),
            alone=self.alone(),
            missed=self.rounds.effects(missed, self.level),
            interactions=interactions,
            dropped=self.dropped,
            keeps_gain=not self.dropped or (loss is not None and self._is_kept(loss)),
        )


def _worth_measuring(names: Iterable[str], effects: Mapping[str, Effect], look: int) -> list[str]:
    """Return the names without those that hurt by less than a standard error after PATIENT."""
    return [
        n
        for n in names
        if n not in effects or look < PATIENT or effects[n].mean >= effects[n].error
    ]
