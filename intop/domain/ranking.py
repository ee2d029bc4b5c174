"""What a screening has found."""

from dataclasses import dataclass

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


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Parameters by importance, the most important first, and the ones chosen for collection.

    The chosen ones are the SRP (workload slt) or DRP (workload dlt): those that pass, and where
    these are few, the next by rank, at most `keep` of them. `probe_level` is what a
    permutation importance has to be above; where none has an effect, any passes with a chance of
    `error_rate` at most. `saved` trials were planned and not measured, since the choice
    had become stable. `drift` is that of the default among its trials, None as long as the
    screening is under way.
    """

    importances: tuple[Importance, ...]
    chosen: tuple[str, ...]
    trials: int
    probe_level: float
    error_rate: float
    keep: int
    drift: Drift | None = None
    saved: int = 0

    @property
    def passing(self) -> tuple[str, ...]:
        """What is more than noise, the most important first."""
        return tuple(i.key for i in self.importances if i.passes)
