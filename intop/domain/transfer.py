"""Transfer: what one machine's measurements are worth on another."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from intop.domain.configuration import Configuration
from intop.domain.multi_arm import Contest, Contestant
from intop.domain.parameter import Component, Parameter
from intop.domain.stats import Interval

COMPROMISE = "compromise"
"""The arm that is to be good on both machines."""


def winner(arch: str) -> str:
    """What the configuration of an architecture's verdict is called, wherever it is measured."""
    return f"{arch} winner"


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The held-out error (MAPE, percent) of models of so many configurations.

    `scratch` knows these alone, `warm` the other machine's trials, too. `worth` is how many from
    scratch have the error of the warm one; None where that is more than were tried.
    """

    configurations: int
    scratch: float
    warm: float
    worth: float | None


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """What the trials of `source` are worth for models of `target`.

    `common` are the parameters that both know, and `own` those that only the target's
    configurations vary. `configurations` are what the target and the source have measured. The
    errors are means over `repeats`, with other rows held out in each. `shares` says how much of
    the warm predictions, at the most rows, came from each of the ways to make them.
    """

    source: str
    target: str
    family: str
    common: tuple[str, ...]
    own: tuple[str, ...]
    configurations: tuple[int, int]
    repeats: int
    curve: tuple[CurvePoint, ...]
    shares: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Compromise:
    """A configuration that is to be good on both machines. Predicted, not measured.

    `ratios` has the predicted P99 of the default / its own by architecture. The `left_out` keys
    are known to the models of one machine, and not offered by both, for the reason given.
    """

    configuration: Configuration
    ratios: dict[str, float]
    left_out: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Crosswise:
    """One machine's measurements of its own winner, the other's, and the compromise.

    `emulation` says what carries the machine out where that is no hardware.
    """

    arch: str
    emulation: str
    contest: Contest


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """A configuration on all machines: its ratios to the default of each, as measured.

    `arch` is where it gains least, None where it could not be measured on each of them.
    """

    name: str
    ratios: dict[str, Interval | None]
    arch: str | None


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Two architectures under one workload.

    `warm_starts` are from stored trials; `crosswise` is measured, one of each architecture, or
    empty; so are `worst_cases`. `missing` says what could not be done, and what to do about it.
    """

    workload: str
    warm_starts: tuple[WarmStart, ...]
    crosswise: tuple[Crosswise, ...]
    worst_cases: tuple[WorstCase, ...]
    compromise: Compromise | None
    missing: tuple[str, ...]


def worst_cases(measured: Sequence[Crosswise]) -> tuple[WorstCase, ...]:
    """What was measured, by its least ratio over all machines; the default is not among it."""
    found = [
        (one.arch, {c.name: _ratio(one.contest, c) for c in one.contest.contestants})
        for one in measured
    ]
    cases: list[WorstCase] = []
    for name in dict.fromkeys(name for _, by_name in found for name in by_name):
        ratios = {arch: by_name.get(name) for arch, by_name in found}
        known = {arch: ratio.value for arch, ratio in ratios.items() if ratio is not None}
        if known:
            least = min(known, key=lambda arch: known[arch]) if len(known) == len(found) else None
            cases.append(WorstCase(name=name, ratios=ratios, arch=least))
    return tuple(cases)


def _ratio(contest: Contest, one: Contestant) -> Interval | None:
    """The ratio of a contestant, or of the one that was measured in its place.

    One that changes nothing is the default: 1, for certain.
    """
    if one.same_as:
        one = next(c for c in contest.contestants if c.name == one.same_as)
        if one.is_reference:
            return Interval(1.0, 1.0, 1.0)
    return one.ratio


def worth(sizes: Sequence[int], errors: Sequence[float], error: float) -> float | None:
    """How many rows from scratch have this error, by a learning curve of `sizes` (ascending).

    An error that grows with the rows is noise, so each counts as the least up to there; between
    two sizes the error goes with the logarithm of the rows. None where no size is so good, the
    least size where all are. Raises ValueError for no sizes, or lists of different lengths.
    """
    if not sizes or len(sizes) != len(errors):
        raise ValueError(f"{len(sizes)} sizes and {len(errors)} errors make no learning curve")
    if errors[0] <= error:
        return float(sizes[0])
    least = errors[0]
    for number in range(1, len(sizes)):
        before, least = least, min(least, errors[number])
        if least <= error:
            low, high = math.log(sizes[number - 1]), math.log(sizes[number])
            share = (before - error) / (before - least)
            return math.exp(low + share * (high - low))
    return None


def common_parameters(
    wanted: Sequence[str], offers: Sequence[Mapping[str, Parameter]]
) -> tuple[dict[str, Parameter], dict[str, str]]:
    """The wanted keys as all machines offer them, and the reason for each of the others.

    A range is what all of them have in common, choices are those of all.
    """
    found: dict[str, Parameter] = {}
    left_out: dict[str, str] = {}
    for key in wanted:
        offered = [offer[key] for offer in offers if key in offer]
        if len(offered) < len(offers):
            left_out[key] = "not offered by both"
            continue
        both = offered[0]
        for other in offered[1:]:
            narrowed = _narrowed(both, other)
            if narrowed is None:
                left_out[key] = "no value in common"
                break
            both = narrowed
        else:
            found[key] = both
    return found, left_out


def _narrowed(one: Parameter, other: Parameter) -> Parameter | None:
    """What both can be, or None."""
    if one.is_numeric != other.is_numeric or one.scale != other.scale:
        return None
    if not one.is_numeric:
        choices = tuple(c for c in one.choices if c in other.choices)
        return replace(one, choices=choices) if len(choices) > 1 else None
    if len(one.components) != len(other.components):
        return None
    components: list[Component] = []
    for a, b in zip(one.components, other.components, strict=True):
        low, high = max(a.low, b.low), min(a.high, b.high)
        if low >= high:
            return None
        components.append(replace(a, low=low, high=high))
    return replace(one, components=tuple(components))
