"""What a screening has found: which parameters act, and by how much models need them."""

from dataclasses import dataclass
from typing import Literal

from intop.domain.drift import Drift


@dataclass(frozen=True, kw_only=True)
class Importance:
    """How much one parameter explains of log P99, by the models of a screening.

    `mean` and `sd` are of its share of what the splits of a model explain; the shares of all
    parameters add up to 1 with those of the probes. `permutation` is what it is ranked by: how
    much worse a model predicts configurations that it has not seen when this parameter's values
    are shuffled among them. By so much of the variance of log P99 does its squared error grow, on
    average, with a standard deviation over the models. `above` is the share of the sets of probes
    all of which it beats, `passes` whether the screening takes it for more than noise.
    """

    key: str
    mean: float
    sd: float
    permutation: float
    permutation_sd: float
    above: float
    passes: bool


SHARP = 1.3
"""Effects that a screening has to be able to find before it may end early."""

State = Literal["chosen", "open", "frozen"]
"""What a screening says of a parameter: it acts; it can't be told; it does not matter."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What one parameter does to P99 from its best value to its worst, others being anything.

    `ratio` is how many times P99 changes by the shape that fits best, `high` the upper limit of
    that, None where there is none. `p_value` is of the test that it does nothing, `probability` how
    likely it acts, at most.
    """

    key: str
    ratio: float
    high: float | None
    p_value: float
    probability: float
    state: State


@dataclass(frozen=True, kw_only=True)
class Screening:
    """What a screening found to act, the surest first, and how sure it is of that.

    Of the chosen ones a share of `discovery_rate` at most is expected to do nothing. Frozen is what
    changes P99 by less than `matters` times, with a confidence of `level` for each. An effect of
    `detectable` times would have been found with the probability `power` (None: of no size).
    `responses` names what was looked at. The `hinted` parameters were expected to act, and held to
    a lower bar than all others.
    """

    effects: tuple[Effect, ...]
    configurations: int
    responses: tuple[str, ...]
    discovery_rate: float
    matters: float
    level: float
    power: float
    detectable: float | None
    hinted: tuple[str, ...] = ()

    @property
    def is_sharp(self) -> bool:
        """Whether it would have found what matters."""
        return self.detectable is not None and self.detectable <= SHARP

    def keys(self, *states: State) -> tuple[str, ...]:
        """The parameters in these states, the surest first."""
        return tuple(e.key for e in self.effects if e.state in states)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Parameters by importance, the most important first, and what the screening says of them.

    The chosen ones are the SRP (workload slt) or DRP (workload dlt): those that act. What else is
    not frozen is open, and stays in the space; at most `keep` parameters are varied at once.
    `probe_level` is what a permutation importance has to be above to pass; where none has an
    effect, any passes with a chance of `error_rate` at most. `saved` trials were planned and not
    measured, since the choice had become stable. `drift` is that of the default among its trials,
    None as long as the screening is under way.

    A ranking of an earlier intop has no `screening`: it chose by rank, and froze all others.
    """

    importances: tuple[Importance, ...]
    chosen: tuple[str, ...]
    trials: int
    probe_level: float
    error_rate: float
    keep: int
    drift: Drift | None = None
    saved: int = 0
    screening: Screening | None = None

    @property
    def passing(self) -> tuple[str, ...]:
        """What is more than noise, the most important first."""
        return tuple(i.key for i in self.importances if i.passes)

    @property
    def space(self) -> tuple[str, ...]:
        """What stays in the space: the chosen ones, then the open ones."""
        return self.chosen if self.screening is None else self.screening.keys("chosen", "open")

    @property
    def priors(self) -> dict[str, float]:
        """How likely each of the open parameters acts."""
        effects = self.screening.effects if self.screening else ()
        return {e.key: e.probability for e in effects if e.state == "open"}
