"""Effects of parameters: a conditional randomisation test of each, and the size it can have.

Where the configurations were drawn so that each parameter's values don't depend on the others', a
parameter that does not act might as well have any other order of its values. So it is tested by
such orders, given what the others explain (Candès, Fan, Janson and Lv, Journal of the Royal
Statistical Society B 80, 2018, 551-577; the form used here: Liu, Katsevich, Janson and Ramdas,
Biometrika 109, 2022, 277-293). The p-values hold for any noise, however heavy its tails, and for
any number of parameters and configurations. docs/method.md describes the method.
"""

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from intop.domain.encoding import Matrix, Variable
from intop.domain.further import MATTERS
from intop.domain.ranking import Effect, Screening, State
from intop.domain.stats import student_quantile
from intop.learn.samples import Rows, Vector
from intop.learn.shapes import Fit, Shapes, explained, scaled

FEWEST_ROWS = 8
"""The fewest configurations from which effects can be estimated."""

LEAST_LEFT = 8
"""Parameters that stay in the space, chosen or open, even where nothing matters."""

DISCOVERY_RATE = 0.1
"""The share of the chosen parameters that is expected to have no effect, at most."""

HINTED_SHARE = 0.5
"""The part of the discoveries without effect (DISCOVERY_RATE) that is reserved for parameters that
are expected to act. Half: if all of these do nothing, others have half the chance they had."""

LEVEL = 0.95
"""The level of the upper limit of an effect."""

POWER = 0.9
"""The probability of finding an effect of the detectable size."""

ORDERS = 10_000
"""Other orders of a parameter's values. Of 250 parameters one that acts can still be told, also
where others are expected to act."""

FREEZES = 30
"""Configurations from which on a parameter may be frozen. Of fewer, a few of all those shapes fit
nearly anything, and what they leave says nothing of the noise."""

NO_LIMIT = 1_000.0
"""A limit beyond is none."""

LEAST_APART = 20
"""Configurations on one side of the dominant parameter from which on they are tested apart."""

PLANTS = 20
"""Effects that are planted to know the power."""

PLANTED_RATIOS = (
    1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0
)  # fmt: skip
"""The sizes that are tried."""


def screening(
    variables: Sequence[Variable],
    values: Matrix,
    responses: Mapping[str, Vector],
    *,
    seed: int,
    hinted: Collection[str] = (),
) -> Screening:
    """Return which parameters act on the responses, by configurations drawn at random.

    `values` (n, variables) as in `Samples`, each response (n,) the logarithm of a latency. A
    parameter's p-value is that of the strongest correlation of any of its shapes (slope, bow,
    steps, choices) with what the other parameters leave of any response. Each response counts once
    more on either side of the dominant parameter, since one of its values may hide what a weaker
    one does. Chosen are those that pass Benjamini's and Hochberg's procedure at DISCOVERY_RATE
    (Journal of the Royal Statistical Society B 57, 1995, 289-300). The keys that are `hinted` were
    expected to act before anybody looked at these responses. So they get HINTED_SHARE of what that
    allows: it is carried out on p-values divided by weights whose mean is 1 (Genovese, Roeder and
    Wasserman, Biometrika 93, 2006, 509-524). Of the others those are frozen whose effect is below
    MATTERS with a confidence of LEVEL, whatever shape it has, by every response, given FREEZES
    configurations; the rest stays open, and at least LEAST_LEFT parameters are chosen or open.
    Those with a larger weight for being hinted are not frozen: where two of them hide each other,
    few configurations of a design ease both, and their trials look like bad luck.

    Raises ValueError for fewer configurations than FEWEST_ROWS, and for no response.
    """
    if len(values) < FEWEST_ROWS:
        raise ValueError(
            f"{len(values)} configurations are too few to tell effects; at least {FEWEST_ROWS}"
        )
    if not responses:
        raise ValueError("effects need a response at least")
    shapes = Shapes.of(variables, values)
    fits = [explained(shapes, response) for response in responses.values()]
    rng = np.random.default_rng(seed)
    measured = _Measured(shapes, tuple(responses.values()), _Apart.of(shapes, fits))
    tested = _tested(measured, fits, rng)
    weights = _weights(shapes.keys, hinted)
    chosen = _discoveries(tested.p_values / weights)
    unchosen = [n for n in range(len(shapes.keys)) if n not in chosen]
    limits = _Limits.of(shapes, fits)
    # As strict as the least of the discoveries, or as the first would have to be.
    cut = DISCOVERY_RATE * max(1, len(chosen)) / len(shapes.keys)
    # Laplace's rule of succession, which also holds where all are chosen.
    odds = (len(chosen) + 1) / (len(unchosen) + 1) * weights
    high = limits.high if len(values) >= FREEZES else limits.high + math.inf
    states = _states(chosen, np.where(weights > 1, math.inf, high))
    effects = [
        Effect(
            key=key,
            ratio=math.exp(min(float(limits.estimate[n]), math.log(NO_LIMIT))),
            high=_ratio(float(limits.high[n])),
            p_value=float(tested.p_values[n]),
            probability=_probability(float(tested.p_values[n]), float(odds[n])),
            state=states[n],
        )
        for n, key in enumerate(shapes.keys)
    ]
    order = np.lexsort((-limits.estimate, tested.p_values))
    return Screening(
        effects=tuple(effects[n] for n in order),
        configurations=len(values),
        responses=tuple(responses),
        discovery_rate=DISCOVERY_RATE,
        matters=MATTERS,
        level=LEVEL,
        power=POWER,
        detectable=_detectable(measured, unchosen, tested.thresholds(cut * weights), rng),
        hinted=tuple(key for key, w in zip(shapes.keys, weights, strict=True) if w > 1),
    )


# -- the test ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Apart:
    """The configurations on one side of the dominant parameter, where it hides nothing."""

    key: int
    """The dominant parameter's index."""
    rows: Rows
    shapes: Shapes
    """The shapes in these rows."""

    @classmethod
    def of(cls, shapes: Shapes, fits: Sequence[Fit]) -> "tuple[_Apart, ...]":
        """Return those on either side of the shape that explains most, where they are enough."""
        shares = {fit.picked[0]: fit.first_share(shapes) for fit in fits if fit.picked}
        if not shares:
            return ()
        shape = max(shares, key=lambda shape: shares[shape])
        is_beyond = shapes.columns[:, shape] > 0.5
        sides = [np.flatnonzero(side) for side in (~is_beyond, is_beyond)]
        return tuple(
            cls(
                int(shapes.owner[shape]),
                rows,
                Shapes(shapes.keys, shapes.columns[rows], shapes.owner),
            )
            for rows in sides
            if LEAST_APART <= len(rows) < len(is_beyond)
        )

    def fit(self, response: Vector, without: int | None = None) -> Fit:
        """Return the part of a response (n,) that shapes explain in these rows."""
        return explained(self.shapes, response[self.rows], without=without)

    def rest(self, response: Vector, without: int | None) -> Vector:
        """Return the residuals (n,), which are 0 in all other rows."""
        rest = self.fit(response, without).rest
        whole = np.zeros(len(response))
        whole[self.rows] = rest - rest.mean()
        return whole


@dataclass(frozen=True)
class _Measured:
    """The responses, and the shapes that may explain them."""

    shapes: Shapes
    responses: tuple[Vector, ...]
    apart: tuple[_Apart, ...]

    def rests(self, without: int | None = None) -> list[Vector]:
        """Return what is left of the responses (n,), which one parameter may not explain."""
        rests = [explained(self.shapes, r, without=without).rest for r in self.responses]
        # Its own effect says which rows are apart, so these rows can't test it.
        sides = [side for side in self.apart if side.key != without]
        return rests + [side.rest(r, without) for side in sides for r in self.responses]

    def picked(self, fits: Sequence[Fit]) -> set[int]:
        """Return the parameters that explain a part of any response."""
        picked = {int(self.shapes.owner[shape]) for fit in fits for shape in fit.picked}
        apart = [side.fit(response) for side in self.apart for response in self.responses]
        return picked | {int(self.shapes.owner[shape]) for fit in apart for shape in fit.picked}


@dataclass(frozen=True)
class _Tested:
    """The test of each parameter."""

    p_values: Vector
    by_chance: Matrix
    """The strongest correlation in each of the other orders (orders, parameters)."""

    def thresholds(self, levels: Vector) -> Vector:
        """Return the correlations above which p-values (parameters,) are as small as these."""
        columns = zip(self.by_chance.T, levels.tolist(), strict=True)
        return np.array([np.quantile(column, 1 - min(level, 1.0)) for column, level in columns])


def _tested(measured: _Measured, fits: Sequence[Fit], rng: np.random.Generator) -> _Tested:
    shapes, count = measured.shapes, len(measured.responses[0])
    orders = rng.permuted(np.tile(np.arange(count), (ORDERS, 1)), axis=1)
    p_values = np.ones(len(shapes.keys))
    by_chance = np.ones((ORDERS, len(shapes.keys)))

    def test(keys: Sequence[int], rests: Sequence[Vector]) -> None:
        those = np.flatnonzero(np.isin(shapes.owner, keys))
        columns = shapes.standard[:, those]
        observed = np.zeros(len(those))
        chance = np.zeros((ORDERS, len(those)), dtype=np.float32)
        for rest in rests:
            unit = scaled((rest - rest.mean())[:, None])[:, 0]
            np.maximum(observed, np.abs(unit @ columns), out=observed)
            np.maximum(chance, np.abs(unit[orders] @ columns), out=chance)
        for key in keys:
            own = shapes.owner[those] == key
            by_chance[:, key] = chance[:, own].max(axis=1)
            # Equal but for rounding counts as reached.
            reached = np.count_nonzero(by_chance[:, key] >= observed[own].max() - 1e-6)
            p_values[key] = (1 + reached) / (1 + ORDERS)

    picked = sorted(measured.picked(fits))
    # What was never picked has not changed what the others explain: one fit is right for all.
    unpicked = sorted({int(n) for n in shapes.owner} - set(picked))
    if unpicked:
        test(unpicked, measured.rests())
    for key in picked:
        test([key], measured.rests(without=key))
    return _Tested(p_values, by_chance)


def _weights(keys: Sequence[str], hinted: Collection[str]) -> Vector:
    """Return the divisors of the p-values (parameters,), with mean 1.

    All alike where HINTED_SHARE of them or more are hinted: that says next to nothing.
    """
    is_hinted = np.array([key in hinted for key in keys])
    share = float(np.mean(is_hinted))
    if not 0 < share < HINTED_SHARE:
        return np.ones(len(keys))
    return np.where(is_hinted, HINTED_SHARE / share, (1 - HINTED_SHARE) / (1 - share))


def _discoveries(p_values: Vector) -> frozenset[int]:
    """Return the parameters that pass Benjamini's and Hochberg's procedure."""
    order = np.argsort(p_values, kind="stable")
    bounds = DISCOVERY_RATE * np.arange(1, len(order) + 1) / len(order)
    below = np.flatnonzero(p_values[order] <= bounds)
    return frozenset(order[: below[-1] + 1].tolist() if len(below) else ())


def _ratio(log: float) -> float | None:
    return math.exp(log) if log < math.log(NO_LIMIT) else None


def _states(chosen: frozenset[int], high: Vector) -> list[State]:
    """Return each parameter's state, by the upper limits (parameters,) of their effects."""
    likely = np.argsort(-high, kind="stable").tolist()
    # Chosen ones first: what they leave of LEAST_LEFT, stays open in any case.
    left = sorted(likely, key=lambda n: n not in chosen)[:LEAST_LEFT]
    open_ = {n for n in likely if high[n] >= math.log(MATTERS)} | set(left)
    return [
        "chosen" if n in chosen else "open" if n in open_ else "frozen" for n in range(len(high))
    ]


def _probability(p_value: float, odds: float) -> float:
    """Return how likely the parameter acts at most, given the odds of that before the test.

    By the bound of Sellke, Bayarri and Berger (The American Statistician 55, 2001, 62-71) on what
    a p-value says for an effect.
    """
    if p_value < 1 / math.e:
        odds /= -math.e * p_value * math.log(p_value)
    return odds / (1 + odds)


# -- sizes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Limits:
    """Sizes of effects, as logarithms of ratios."""

    estimate: Vector
    """The effect of the shape that fits best (parameters,)."""
    high: Vector
    """The upper limit over all shapes and responses (parameters,)."""

    @classmethod
    def of(cls, shapes: Shapes, fits: Sequence[Fit]) -> "_Limits":
        estimate, high = np.zeros(len(shapes.keys)), np.zeros(len(shapes.keys))
        for fit in fits:
            count, used = fit.basis.shape
            # The variance of Huber's estimator: clipping takes from the noise and from effects.
            sd = math.sqrt(float(fit.rest @ fit.rest) / (count - used)) / fit.inside
            factor = student_quantile(2 * LEVEL - 1, count - used)
            for key in range(len(shapes.keys)):
                own = np.flatnonzero(shapes.owner == key)
                basis = fit.without(shapes, key)
                columns = shapes.columns[:, own]
                left = columns - basis @ (basis.T @ columns)
                squares = np.sum(left**2, axis=0)
                # What is the same in all configurations is no effect that it could have here.
                varied = np.any(shapes.standard[:, own], axis=0)
                known = squares > 1e-6 * count
                sizes = np.abs(fit.clipped @ left) / np.where(known, squares, np.inf)
                if basis is fit.basis:
                    sizes /= fit.inside  # what was picked is in the fit, and not clipped
                errors = np.where(known, sd / np.sqrt(np.where(known, squares, 1.0)), np.inf)
                estimate[key] = max(estimate[key], float(sizes.max(initial=0.0)))
                highest = (sizes + factor * errors)[varied].max(initial=0.0)
                high[key] = max(high[key], float(highest) if varied.any() else math.inf)
        return cls(estimate, high)


def _detectable(
    measured: _Measured, candidates: Sequence[int], thresholds: Vector, rng: np.random.Generator
) -> float | None:
    """Return the ratio of effects that this screening would detect with POWER; None for none.

    Effects are planted in what was measured, one at a time: of a parameter that was not chosen
    (`candidates`), in any of its shapes and either direction. The least of PLANTED_RATIOS at which
    each of them is found is looked for by bisection.
    """
    shapes = measured.shapes
    varied = [n for n in candidates if np.any(shapes.standard[:, shapes.owner == n])]
    if not varied:
        return 1.0
    least: list[float] = []
    for key in rng.choice(varied, PLANTS).tolist():
        own = np.flatnonzero(shapes.owner == key)
        own = own[np.any(shapes.standard[:, own], axis=0)]
        column = shapes.columns[:, int(rng.choice(own))] * rng.choice([-1.0, 1.0])

        def is_detected(ratio: float, key: int = key, column: Vector = column) -> bool:
            planted = tuple(r + math.log(ratio) * column for r in measured.responses)
            rests = replace(measured, responses=planted).rests(without=key)
            correlations = scaled(np.column_stack(rests)).T @ shapes.standard
            return bool(np.abs(correlations[:, shapes.owner == key]).max() > thresholds[key])

        place = bisect_left(PLANTED_RATIOS, True, key=is_detected)
        least.append(PLANTED_RATIOS[place] if place < len(PLANTED_RATIOS) else math.inf)
    ratio = sorted(least)[math.ceil(POWER * PLANTS) - 1]
    return ratio if math.isfinite(ratio) else None
