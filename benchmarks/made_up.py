"""Made-up clusters for benchmarks/screening.py: parameters of which eight act, and noisy trials."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.recorded import LONGEST_US, Answer, Offer, Shot, offer
from intop.config.catalogue import Catalogue
from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix
from intop.domain.parameter import Component, Kind, Parameter, Scale
from intop.domain.trial import PlannedTrial

BASE_MS = 50.0
"""P99 before anything acts."""

MIDDLE, HIGHEST = 500, 1_000
LOW_END = 16
"""Of a range on a logarithmic scale."""

Effect = Callable[[Matrix], Matrix]
"""What the values of a column add to log P99. Numbers come by their place in the range (0 to 1),
choices by their index."""


@dataclass(frozen=True)
class MadeUp:
    """Parameters, and what a trial of them comes to. `matter` are the keys that act.

    `truth` is what log P99 is without noise, up to a constant.
    """

    offer: Offer
    matter: frozenset[str]
    answer: Answer
    truth: Callable[[Configuration], float]


# The issue's terms --------------------------------------------------------------------------------

NUMBERS, VECTORS, SWITCHES, CHOICES = 70, 5, 20, 5
MATTER = frozenset({"n0", "n1", "n2", "n3", "n4", "v0", "s0", "c0"})


def issue(seed: int, *, noise: float = 0.1, flat: bool = False) -> MadeUp:
    """100 parameters of which 8 act on log P99, with normal noise of this standard deviation.

    Two steps, two bows, a slope, a choice, and a number that acts where a switch is on. From the
    best to the worst value of each, P99 grows by 30 to 100 %. The tail has the same noise as P99.
    On a flat surface nothing acts.
    """
    rng = np.random.default_rng([1, seed])
    parameters = [number(f"n{n}") for n in range(NUMBERS)]
    parameters += [number(f"v{n}", components=tuple("abc")) for n in range(VECTORS)]
    parameters += [choice(f"s{n}", "01") for n in range(SWITCHES)]
    parameters += [choice(f"c{n}", "abcd") for n in range(CHOICES)]
    parameters = [parameters[n] for n in rng.permutation(len(parameters))]
    steps, bows = rng.uniform(0.3, 0.7, 2), rng.uniform(0.4, 0.6, 2)
    slow = int(rng.integers(4))
    offered = offered_by(parameters, {}, seed)

    def log_p99(configuration: Configuration) -> float:
        if flat:
            return 0.0
        of = places(offered, configuration)
        return float(
            0.5 * (of["n0"] > steps[0])
            + 0.3 * (of["n1"] > steps[1])
            + 1.2 * (of["n2"] - bows[0]) ** 2
            + 2.0 * (of["n3"] - bows[1]) ** 2
            + 0.4 * of["v0[b]"]
            + 0.4 * (of["c0"] == slow)
            + 0.6 * of["n4"] * of["s0"]
        )

    def answer(planned: PlannedTrial, stage: str) -> Shot:
        drawn = drawn_for(seed, planned, stage)
        p99_ms = BASE_MS * math.exp(log_p99(planned.configuration) + drawn.normal(0, noise))
        return Shot(planned.configuration, p99_ms=p99_ms, tail_ms=0.8 * p99_ms)

    return MadeUp(offered, frozenset() if flat else MATTER, answer, log_p99)


# The lab's shape ----------------------------------------------------------------------------------

LAB_KINDS = {"switch": 24, "three": 16, "linear": 20, "log": 20}
WEAKEST, STRONGEST = 1.2, 2.0
P99_NOISE, TAIL_NOISE = 0.12, 0.06
"""Scales of Student's t with 3 degrees of freedom, of log P99 and of the log tail: half of all
trials of a configuration are within 0.09 of the middle, and the standard deviation is 0.21."""
OVERLOADED = 0.03
"""How many of the trials are overloaded, whatever their configuration."""


def like_lab(seed: int) -> MadeUp:
    """80 parameters of which 8 act, by factors from WEAKEST to STRONGEST of P99.

    Two switches, two choices of three (one of which is slow or fast), two slopes, a step and a bow.
    Trials have heavy-tailed noise; the tail has half as much of it as P99. Some trials are
    overloaded, with a P99 5 to 20 times as high.
    """
    rng = np.random.default_rng([2, seed])
    made: dict[str, Parameter] = {}
    for kind, count in LAB_KINDS.items():
        for n in range(count):
            key = f"{kind}{n}"
            if kind in ("switch", "three"):
                made[key] = choice(key, "01" if kind == "switch" else "abc")
            else:
                made[key] = number(key, scale="log" if kind == "log" else "linear")
    effects: dict[str, Effect] = {
        "switch0": _level(0),
        "switch1": _level(1),
        "three0": _level(int(rng.integers(3))),
        "three1": _level(int(rng.integers(3))),
        "linear0": _slope(up=True),
        "log0": _slope(up=False),
        "log1": _step(rng.uniform(0.25, 0.75)),
        "linear1": _bow(rng.uniform(0.3, 0.7)),
    }
    sizes = dict(
        zip(effects, rng.uniform(math.log(WEAKEST), math.log(STRONGEST), 8).tolist(), strict=True)
    )
    signs = dict(zip(effects, rng.choice([-1.0, 1.0], 8).tolist(), strict=True))
    order = rng.permutation(list(made)).tolist()
    # A host's own values are good or bad: anywhere in the range.
    defaults = {
        key: str(rng.choice(p.choices))
        if p.choices
        else str(int(rng.integers(p.components[0].low, p.components[0].high)))
        for key, p in made.items()
    }
    offered = offered_by([made[key] for key in order], defaults, seed)

    def log_p99(configuration: Configuration) -> float:
        of = places(offered, configuration)
        return sum(signs[k] * sizes[k] * float(effect(of[k])) for k, effect in effects.items())

    def answer(planned: PlannedTrial, stage: str) -> Shot:
        drawn = drawn_for(seed, planned, stage)
        log = log_p99(planned.configuration)
        own, shared = drawn.standard_t(3, 2)
        overloaded = planned.role == "design" and drawn.random() < OVERLOADED
        more = math.log(drawn.uniform(5, 20)) if overloaded else 0.0
        tail = log + TAIL_NOISE * shared + more
        p99 = log + TAIL_NOISE * shared + math.sqrt(P99_NOISE**2 - TAIL_NOISE**2) * own + more
        return Shot(
            planned.configuration,
            p99_ms=min(LONGEST_US / 1_000, BASE_MS * math.exp(p99)),
            tail_ms=min(LONGEST_US / 1_000, 0.8 * BASE_MS * math.exp(tail)),
            status="overloaded" if overloaded else "ok",
        )

    return MadeUp(offered, frozenset(effects), answer, log_p99)


# A strong effect that hides others ----------------------------------------------------------------

HIDDEN_TRUE = ("cc", "s0", "n0")
HIDDEN_ACTS = frozenset({*HIDDEN_TRUE, "s1", "s2", "s3", "n1", "n2", "c0"})
HIDDEN_SWITCHES, HIDDEN_CHOICES, HIDDEN_NUMBERS = 34, 5, 62


def hidden(seed: int, *, noise: float) -> MadeUp:
    """102 parameters in the shape of static-wan's truth: a strong one hides the others' effects.

    `cc` = b (as bbr) takes P99 down 1.97 times, and what `s0` = 0 (1.33 times) and a high `n0`
    (1.35 times, less with the former) do is seen without it only. `s1` = 0 does harm, and five
    others do little, more together. Trials have heavy-tailed noise of this standard deviation, of
    which the tail has half. Some are overloaded.
    """
    rng = np.random.default_rng([9, seed])
    parameters = [choice(f"s{n}", "01") for n in range(HIDDEN_SWITCHES)]
    parameters += [choice("cc", "abc")]
    parameters += [choice(f"c{n}", "abc") for n in range(HIDDEN_CHOICES)]
    parameters += [number(f"n{n}") for n in range(HIDDEN_NUMBERS)]
    order = rng.permutation(len(parameters)).tolist()
    defaults = {"n0": "700", "s0": "1", "s1": "1", "cc": "a"}
    offered = offered_by([parameters[n] for n in order], defaults, seed)

    def log_p99(configuration: Configuration) -> float:
        of = places(offered, configuration)
        is_harmed = of["s1"] == 0
        weak = sum((of["s2"] == 1, of["s3"] == 1, of["n1"] > 0.75, of["n2"] < 0.25, of["c0"] == 1))
        log = 0.065 * (of["n0"] < 0.3)
        log += (0.03 * weak + 0.05 * max(0, weak - 1)) * (1.6 if is_harmed else 1.0)
        if of["cc"] == 1:
            return float(log - 0.68)
        is_awake = of["s0"] == 0
        log -= 0.285 * is_awake + 0.3 * (of["n0"] > 0.85) * (0.55 if is_awake else 1.0)
        return float(log + 0.2 * is_harmed)

    def answer(planned: PlannedTrial, stage: str) -> Shot:
        drawn = drawn_for(seed, planned, stage)
        log = log_p99(planned.configuration)
        own, shared = noise / math.sqrt(3) * drawn.standard_t(3, 2)
        is_overloaded = planned.role == "design" and drawn.random() < OVERLOADED
        more = math.log(drawn.uniform(5, 20)) if is_overloaded else 0.0
        tail = 0.8 * log + 0.5 * shared + more
        p99 = log + 0.5 * shared + math.sqrt(0.75) * own + more
        return Shot(
            planned.configuration,
            p99_ms=min(LONGEST_US / 1_000, BASE_MS * math.exp(p99)),
            tail_ms=min(LONGEST_US / 1_000, 0.8 * BASE_MS * math.exp(tail)),
            status="overloaded" if is_overloaded else "ok",
        )

    return MadeUp(offered, HIDDEN_ACTS, answer, log_p99)


def _level(which: int) -> Effect:
    return lambda x: np.asarray(x == which, dtype=np.float64)


def _slope(*, up: bool) -> Effect:
    return lambda x: x if up else 1 - x


def _step(at: float) -> Effect:
    return lambda x: np.asarray(x > at, dtype=np.float64)


def _bow(at: float) -> Effect:
    """From 0 at the turn to 1 at the end that is farther from it."""
    return lambda x: np.asarray(((x - at) / max(at, 1 - at)) ** 2, dtype=np.float64)


# Parameters ---------------------------------------------------------------------------------------


def number(key: str, *, components: Sequence[str] = ("",), scale: Scale = "linear") -> Parameter:
    """A number, or a vector of them, from 0 (or LOW_END) to HIGHEST, or to the square of that."""
    low, high = (LOW_END, HIGHEST**2) if scale == "log" else (0, HIGHEST)
    return _parameter(
        key,
        "vector" if len(components) > 1 else "integer",
        components=tuple(Component(name=name, low=low, high=high) for name in components),
        scale=scale,
    )


def choice(key: str, names: Sequence[str]) -> Parameter:
    """A switch or a choice."""
    kind: Kind = "boolean" if tuple(names) == ("0", "1") else "choice"
    return _parameter(key, kind, choices=tuple(names))


def _parameter(
    key: str,
    kind: Kind,
    components: tuple[Component, ...] = (),
    choices: tuple[str, ...] = (),
    scale: Scale = "linear",
) -> Parameter:
    return Parameter(
        key=key,
        kind=kind,
        unit="",
        scope="machine",
        risk="low",
        mechanism="made up",
        document="",
        components=components,
        choices=choices,
        scale=scale,
    )


def offered_by(parameters: Sequence[Parameter], defaults: dict[str, str], seed: int) -> Offer:
    """What a host with these values offers; of the others the middle, or the first choice."""
    own = {
        p.key: p.choices[0] if p.choices else " ".join([str(MIDDLE)] * len(p.components))
        for p in parameters
    }
    found = offer(Catalogue(tuple(parameters), ()), own | defaults)
    return replace(found, study=replace(found.study, seed=seed))


def places(offered: Offer, configuration: Configuration) -> dict[str, Matrix]:
    """A configuration's values by the names of the columns, as `Effect` takes them."""
    space = offered.space
    row = space.values([configuration])[0]
    return {
        c.name: value if c.component is None else c.variable.place(value)
        for c, value in zip(space.columns, row, strict=True)
    }


def drawn_for(seed: int, planned: PlannedTrial, stage: str) -> np.random.Generator:
    """The chance of one trial: the same at every run, and whatever is measured before it."""
    return np.random.default_rng([seed, planned.index, *stage.encode()])
