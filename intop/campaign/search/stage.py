"""search: the candidates that the models promise most of."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from intop.campaign.collected import learned_samples
from intop.campaign.train.stage import required_training
from intop.domain.ranking import Ranking
from intop.domain.search import Candidate, Convergence, Search
from intop.domain.space import Space
from intop.domain.trial import Trial
from intop.run import effort
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.stage import Expected, Stage

if TYPE_CHECKING:
    from intop.domain.encoding import Matrix
    from intop.learn.samples import Samples
    from intop.learn.surrogate import Predictor

ENSEMBLE = "ensemble"
PROMISING, KEPT_CANDIDATES = 2_000, 20
"""The number of candidates, and of the different ones among them that are kept."""


class GlobalSearch(Stage[Search]):
    """The configurations with the lowest predicted latency, by STM or DTM.

    The four tree models are searched one by one, as in the paper, and together. The candidates are
    from the search of all four, with a penalty where they are not sure. Each model's own best is
    kept beside them, so that `verify` can measure it. None of them changes what its models promise
    nothing of. The models are fitted again from the stored trials and hyper-parameters, which takes
    a second or two, unless there is a folder `models` of saved ones.
    """

    name = "search"
    description = "configurations that the models promise most of"
    command = "search"
    finds = "search"
    hands_on = ("winners",)
    result_type = Search
    needs = ("train",)

    def __init__(self, task: Task, models: Path | None = None, algorithm: str = "genetic") -> None:
        super().__init__(task)
        self.models = models
        self.algorithm = algorithm

    def result(self, trials: Sequence[Trial]) -> Search:  # noqa: ARG002
        import numpy as np

        space, samples, predictor = self._models()
        own = samples.own
        start = space.genes(own.values[np.argsort(own.log_target)[:10]])
        runs: dict[str, tuple[Convergence, list[Candidate]]] = {}
        progress = self.task.context.progress
        progress.begin(f"{self.task.title}: search", len(predictor.models) + 1)
        try:
            for name in (*predictor.models, ENSEMBLE):
                runs[name] = self._run(name, space, predictor, start)
                progress.step(name)
        finally:
            progress.end()
        *alone, (_, candidates) = runs.values()
        return Search(
            candidates=tuple({c.configuration.digest: c for c in candidates}.values()),
            convergences=tuple(convergence for convergence, _ in runs.values()),
            objective=self.task.context.study.objective,
            winners=tuple(best for _, winners in alone for best in winners),
        )

    def _run(
        self, name: str, space: Space, predictor: "Predictor", start: "Matrix"
    ) -> tuple[Convergence, list[Candidate]]:
        """Search one model, or all of them as the ensemble."""
        from intop.learn.candidates import diverse, simpler
        from intop.learn.fitness import Fitness
        from intop.learn.searching.search import search as global_search

        is_ensemble = name == ENSEMBLE
        predict = Fitness(predictor) if is_ensemble else predictor.only(name)
        run = global_search(
            space,
            predict,
            algorithm=self.algorithm,
            model=name,
            seed=self.task.seed("search", name),
            population=self.budget.population,
            generations=self.budget.generations,
            patience=self.budget.patience,
            keep=PROMISING if is_ensemble else 1,
            start=start,
        )
        candidates = list(run.candidates)
        if is_ensemble:
            ranking = self.task.store.get(self.task.subject, Ranking)
            weights = {i.key: i.mean for i in ranking.importances} if ranking else None
            candidates = diverse(space, candidates, KEPT_CANDIDATES, weights=weights)
        return run.convergence, [simpler(space, candidate, predict) for candidate in candidates]

    def _models(self) -> "tuple[Space, Samples, Predictor]":
        """Return the space, the collected samples, and the models to search."""
        from intop import artefacts
        from intop.campaign.models import path_of, usable_trees
        from intop.learn.surrogate import fit_trees

        if self.models is None:
            training = required_training(self.task)
            space, samples, _ = learned_samples(self.task, training)
            return space, samples, fit_trees(training.fitted, samples, self.task.seed("search"))
        saved = artefacts.read(path_of(self.models, self.task))
        space, samples, _ = learned_samples(self.task)
        return space, samples, usable_trees(saved, self.task, space, samples)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        return Expected(time=effort.search(prospect.budget))


def search(task: Task, models: Path | None = None, algorithm: str = "genetic") -> Search:
    """Search the models. Raises what `required_training` and `learned_samples` do."""
    return execute(GlobalSearch(task, models, algorithm))
