"""EZR and SMAC by their own packages, which nothing else needs: pip install ezr smac.

Both are asked for what to measure. EZR chooses among the rows of a table, SMAC in ranges from 0
to 1.
"""

import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from intop.domain.encoding import Matrix

MOST_TRIALS = 10_000
"""More trials than any benchmark has: the end is the benchmark's."""


def label_with_ezr(
    values: Matrix, label: Callable[[int], float], *, first: int, budget: int, seed: int
) -> None:
    """Have EZR label `budget` rows of a table (rows, columns), one after the other.

    It begins with the `first` rows of the table. `label` gives a row's value to minimise, by its
    number. What it raises ends the search.
    """
    from ezr import ezr as package

    names = [f"N{n}" for n in range(values.shape[1])] + ["Target-"]
    # EZR's word for a value that nobody knows.
    table: list[list[float | str]] = [[*row, "?"] for row in values.tolist()]
    number_of = {id(row): n for n, row in enumerate(table)}

    def labelled(row: list[float | str]) -> list[float | str]:
        row[-1] = label(number_of[id(row)])
        return row

    # It takes its first rows from the end of what it has shuffled.
    shuffled = table[::-1]
    random.seed(seed)
    with (
        mock.patch.object(package, "label", labelled),
        mock.patch.object(package, "shuffle", return_value=shuffled),
        mock.patch.multiple(package.the, Any=first, Budget=budget),
    ):
        package.likely(package.Data([names, *table]))


class Smac:
    """SMAC's hyper-parameter facade: a random forest and expected improvement, its defaults."""

    def __init__(self, places: Matrix, costs: Sequence[float], seed: int, folder: Path) -> None:
        from ConfigSpace import Configuration, ConfigurationSpace
        from smac import HyperparameterOptimizationFacade, Scenario

        self._names = [f"x{n}" for n in range(places.shape[1])]
        self._space = ConfigurationSpace(seed=seed, space=dict.fromkeys(self._names, (0.0, 1.0)))
        scenario = Scenario(
            self._space,
            deterministic=True,
            n_trials=MOST_TRIALS,
            seed=seed,
            output_directory=folder,
        )
        # What is measured is its initial design, so it has none of its own.
        measured = [
            Configuration(self._space, values=self._values(place)) for place in places.tolist()
        ]
        self._tuner = HyperparameterOptimizationFacade(
            scenario,
            lambda _configuration, seed=0: 0.0,  # noqa: ARG005
            initial_design=HyperparameterOptimizationFacade.get_initial_design(
                scenario, n_configs=0, additional_configs=measured
            ),
            logging_level=False,
            overwrite=True,
        )
        for place, cost in zip(places.tolist(), costs, strict=True):
            self.tell(place, cost)

    def tell(self, place: Sequence[float], cost: float) -> None:
        """Take note of what was measured at a place (columns,) from 0 to 1."""
        from ConfigSpace import Configuration
        from smac.runhistory.dataclasses import TrialInfo, TrialValue

        info = TrialInfo(Configuration(self._space, values=self._values(place)), seed=0)
        self._tuner.tell(info, TrialValue(cost=cost), save=False)

    def ask(self) -> list[float]:
        """Return the place (columns,) to measure next."""
        configuration = dict(self._tuner.ask().config)
        return [float(configuration[name]) for name in self._names]

    def _values(self, place: Sequence[float]) -> dict[str, float]:
        return dict(zip(self._names, place, strict=True))


@contextmanager
def smac_tuner(places: Matrix, costs: Sequence[float], seed: int) -> Iterator[Smac]:
    """Provide SMAC with what was measured at places (rows, columns) from 0 to 1."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Smac(places, costs, seed, Path(folder))
