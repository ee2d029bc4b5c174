"""Do the models and the search hold where the target has modes? On made-up tables.

    python -m benchmarks modes-models       the selected model beside XGBoost, 100 draws
    python -m benchmarks modes-search       the refinement beside random search, 30 runs a table

A table has two or three modes, a factor of 3 to 200 apart. One or two pairs of switches decide
which mode a row is in. All other options change the target smoothly, and there is no noise. Issue
24 asks for this. Tables, draws and terms were committed before anything was measured (ac05814):

models   draws of 40 to 100 rows, from draw 100 on once more; each family is tuned as `intop train`
         does it, and one is selected, all on the drawn rows alone. The error (MRE, in percent) is
         of all other rows. The selected model's worst draw must be no worse than XGBoost's worst.
search   10 random rows first, then up to 100 different ones by `intop refine`, one at a time and
         four at once. Random search has the same first rows. After 25, 50, 75 and 100 rows the
         mean best value of `intop refine` must not be above the mean of random search.

A seed is a draw, or a run on each table.

Terms for the guard of Blend, fixed on 28 November 2026. It was chosen on draws 200 to 299 and on
ten of the first hundred. In draws 0 to 99 and in draws 100 to 199, which nobody has looked at, the
selected model's worst draw is no worse than XGBoost's worst.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import models, search
from benchmarks.harness import Question
from benchmarks.mode_tables import SEED, made_up
from benchmarks.models import interval, of_selected, selected
from benchmarks.search import COUNTS, FIRST, Table, runs_of
from intop.learn.code_fingerprint import code_fingerprint
from intop.learn.families import FAMILIES

TABLES = 20
"""Of the draws of models: five draws each."""
SEARCHED = 6
"""The first of them, which are searched, too."""
DRAWS, RUNS = 100, 30
FEWEST, MOST = 40, 100
"""Rows of the first draw, and of the last."""

AT_ONCE = (1, 4)
SEARCHES = ("ours", "random")


# Models -------------------------------------------------------------------------------------------


def draws(numbers: range) -> list[models.Job]:
    """The draws: the rows grow from FEWEST to MOST, the tables take turns."""
    found = []
    for draw in numbers:
        rng = np.random.default_rng([SEED, TABLES, draw])
        number = draw % TABLES
        size = FEWEST + round((MOST - FEWEST) * (draw % DRAWS) / (DRAWS - 1))
        rows = rng.permutation(len(made_up(number)))[:size]
        found.append(models.Job(f"modes {number}", size, draw, tuple(rows.tolist())))
    return found


class DrawnModels(Question[models.Job, dict[str, models.Outcome]]):
    """Is the selected model's worst draw no worse than XGBoost's?"""

    seeds = DRAWS
    first_seed = 0
    result = dict[str, models.Outcome]
    is_parallel = True

    def settings(self) -> dict[str, Any]:
        return {"code": code_fingerprint(), "tries": models.TRIES}

    def cells(self) -> dict[str, models.Job]:
        return {job.name: job for job in draws(self.seed_range())}

    def measure(self, cell: models.Job) -> dict[str, models.Outcome]:
        # The table is made where it is needed.
        return models.done(cell, made_up(cell.run % TABLES))

    def progress(self, name: str, result: dict[str, models.Outcome]) -> str:
        best = selected(result)
        return f"{name}: {best} {result[best].mre:.3g} %, XGBoost {result['XGBoost'].mre:.3g} %"

    def table(self, results: models.Results) -> Iterator[str]:
        return report_models(list(results.values()))

    def missed(self, results: models.Results) -> list[str]:
        found = list(results.values())
        ours, xgboost = max(of_selected(found)), max(of_family(found, "XGBoost"))
        if ours > xgboost:
            return [f"the selected model's worst draw has {ours:.4g} %, XGBoost's {xgboost:.4g} %"]
        return []


def of_family(found: Sequence[Mapping[str, models.Outcome]], family: str) -> list[float]:
    return [outcomes[family].mre for outcomes in found]


def report_models(found: Sequence[Mapping[str, models.Outcome]]) -> Iterator[str]:
    """The errors of the selected model and of each family over all draws."""
    yield "| model | median MRE | 90 % of draws below | worst | selected |"
    yield "|---|---:|---:|---:|---:|"
    often = Counter(map(selected, found))
    rows = {"selected": of_selected(found)} | {f: of_family(found, f) for f in FAMILIES}
    for name, errors in rows.items():
        middle, high, worst = np.quantile(errors, (0.5, 0.9, 1.0))
        yield f"| {name} | {middle:.3g} % | {high:.3g} % | {worst:.4g} % | {often.get(name, '')} |"


# Search -------------------------------------------------------------------------------------------


def searched(number: int, at_once: int) -> Table:
    """A table as a search sees it."""
    name = f"modes {number}, {at_once} at a time"
    return Table(name, made_up(number), FIRST, COUNTS[-1], different=True, at_once=at_once)


class ModeSearch(search.Searched):
    """Is the refinement's mean best value never above that of random search?"""

    seeds = RUNS

    @property
    def tables(self) -> list[Table]:
        """The tables, each for one row at a time and for several at once."""
        return [searched(number, at_once) for at_once in AT_ONCE for number in range(SEARCHED)]

    def cells(self) -> dict[str, tuple[search.Job, Table]]:
        places = [
            (run, table, kind)
            for run in self.seed_range()
            for table in self.tables
            for kind in SEARCHES
        ]
        return {
            job.name: (job, table)
            for run, table, kind in places
            for job in [search.Job(table.name, kind, run)]
        }

    def table(self, results: search.Results) -> Iterator[str]:
        return report_search(self.tables, results, self.seed_range())

    def missed(self, results: search.Results) -> list[str]:
        return missed_by_search(self.tables, results, self.seed_range())


def report_search(tables: Sequence[Table], results: search.Results, runs: range) -> Iterator[str]:
    """The best value after so many rows."""
    yield f"| table | search | {' | '.join(f'after {count}' for count in COUNTS)} |"
    yield f"|---|---|{'---:|' * len(COUNTS)}"
    for table in tables:
        for kind in SEARCHES:
            values = runs_of(results, table, kind, runs)
            cells = [interval(values[:, count - 1].tolist()) for count in COUNTS]
            yield f"| {table.name} | {kind} | {' | '.join(cells)} |"


def missed_by_search(tables: Sequence[Table], results: search.Results, runs: range) -> list[str]:
    """Where the refinement is behind random search."""
    problems = []
    for table in tables:
        best = {kind: runs_of(results, table, kind, runs) for kind in SEARCHES}
        for count in COUNTS:
            ours, chance = (float(best[kind][:, count - 1].mean()) for kind in SEARCHES)
            # Means of equal values differ in their last digits.
            if ours > chance * (1 + 1e-12):
                problems.append(f"{table.name} after {count}: {ours:.4g}, random {chance:.4g}")
    return problems
