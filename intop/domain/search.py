"""Searches of the models, and their candidates."""

from dataclasses import dataclass

from intop.domain.configuration import Configuration
from intop.domain.training import Objective, quantity


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """The course of a search of one model."""

    model: str
    best_ms: tuple[float, ...]
    """The predicted latency of the best after each generation, without a penalty."""
    converged_at: int
    """The generation after which the best improved no more."""
    seconds: float
    algorithm: str
    predictions: int
    """All predictions. A generation is as many as the population has individuals, whatever the
    algorithm."""
    restarts: int
    """The number of new beginnings of the search, where nothing got better."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A configuration that was predicted, not measured."""

    configuration: Configuration
    predicted_ms: float
    model: str
    spread: float = 0.0
    """The standard deviation of log latency among the models, 0 where none is known."""
    penalised_ms: float | None = None
    """The prediction with the penalty for its spread, None where there is none."""

    @property
    def rank_ms(self) -> float:
        """The value that it is ranked by."""
        return self.predicted_ms if self.penalised_ms is None else self.penalised_ms


@dataclass(frozen=True, kw_only=True)
class Search:
    """Candidates in order of promise, and how each run of the search went."""

    candidates: tuple[Candidate, ...]
    convergences: tuple[Convergence, ...]
    winners: tuple[Candidate, ...]
    """The best candidate of each tree model by itself."""
    objective: Objective = "p99"
    """The target whose lowest value was searched."""

    @property
    def quantity(self) -> str:
        """The name of its predictions in ms: a latency, or a component on the scale of P99."""
        return quantity(self.objective)
