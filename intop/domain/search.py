"""What a search of the models has found."""

from dataclasses import dataclass

from intop.domain.configuration import Configuration
from intop.domain.training import Objective


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """How a search of one model went: the predicted P99 (ms) of the best after each generation.

    `converged_at` is the generation after which the best improved no more. A generation is as many
    predictions as the population has individuals, whatever the `algorithm`; `predictions` is how
    many were made in all. After `restarts` of them the search began anew, where nothing got better.
    Where uncertainty has a penalty, what is best has it, and the P99 shown has not.
    """

    model: str
    best_ms: tuple[float, ...]
    converged_at: int
    seconds: float
    algorithm: str
    predictions: int
    restarts: int


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A configuration that was predicted, not measured.

    `spread` is the standard deviation of log P99 among what the models say, 0 where none is known;
    `penalised_p99_ms` is the prediction with the penalty for it, None where there is none.
    """

    configuration: Configuration
    predicted_p99_ms: float
    model: str
    spread: float = 0.0
    penalised_p99_ms: float | None = None

    @property
    def rank_ms(self) -> float:
        """What it is ranked by."""
        return self.predicted_p99_ms if self.penalised_p99_ms is None else self.penalised_p99_ms


@dataclass(frozen=True, kw_only=True)
class Search:
    """What the search found: candidates in order of promise, and how each run of it went.

    `objective` is what was searched for the lowest of. `winners` are the best candidate of each
    tree model by itself.
    """

    candidates: tuple[Candidate, ...]
    convergences: tuple[Convergence, ...]
    winners: tuple[Candidate, ...]
    objective: Objective = "p99"

    @property
    def quantity(self) -> str:
        """What its predictions in ms are of: P99, or what a component is on the scale of P99."""
        return "P99" if self.objective == "p99" else "P99 equivalent"
