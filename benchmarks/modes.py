"""Do the models and the search hold where the target has modes? On made-up tables.

    python -m benchmarks.modes models       the selected model beside XGBoost, 100 draws
    python -m benchmarks.modes search       the refinement beside random search, 30 runs a table

A table has two or three modes, a factor of 3 to 200 apart. One or two pairs of switches decide
which mode a row is in. All other options change the target smoothly, and there is no noise. Issue
24 asks for this. Tables, draws and terms were committed before anything was measured (ac05814):

models   draws of 40 to 100 rows; each family is tuned as `intop train` does it, and one is
         selected, all on the drawn rows alone. The error (MRE, in percent) is of all other rows.
         The selected model's worst draw must be no worse than XGBoost's worst.
search   10 random rows first, then up to 100 different ones by `intop refine`, one at a time and
         four at once. Random search has the same first rows. After 25, 50, 75 and 100 rows the
         mean best value of `intop refine` must not be above the mean of random search.

Each draw and each run is kept in a file when it ends: the same command goes on where it stopped.
Ends with a message and exit code 1 where a term is not met.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks import models, search
from benchmarks.mode_tables import SEED, made_up
from benchmarks.models import UnusableError, interval, of_selected, positive, selected
from benchmarks.search import COUNTS, FIRST, Table, runs_of
from intop.learn.families import FAMILIES
from intop.learn.parallel import each

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


def draws(count: int) -> list[models.Job]:
    """The draws: the rows grow from FEWEST to MOST, the tables take turns."""
    found = []
    for draw in range(count):
        rng = np.random.default_rng([SEED, TABLES, draw])
        number = draw % TABLES
        size = FEWEST + round((MOST - FEWEST) * draw / (DRAWS - 1))
        rows = rng.permutation(len(made_up(number)))[:size]
        found.append(models.Job(f"modes {number}", size, draw, tuple(rows.tolist())))
    return found


def one_draw(job: models.Job) -> tuple[models.Job, dict[str, models.Outcome]]:
    """All families on the rows of a draw; the table is made where it is needed."""
    return models.done(job, made_up(job.run % TABLES))


def of_models(arguments: argparse.Namespace) -> str | None:
    """Makes what draws are missing and prints the table. What was missed, or None."""
    plan, path = draws(arguments.draws), arguments.results
    results = models.kept(path)
    lacking = [(job,) for job in plan if job.name not in results]
    for number, (job, outcomes) in enumerate(each(one_draw, lacking, jobs=arguments.jobs), 1):
        results[job.name] = outcomes
        models.keep(path, results)
        best = selected(outcomes)
        print(
            f"[{number}/{len(lacking)}] {job.name}: {best} {outcomes[best].mre:.3g} %,"
            f" XGBoost {outcomes['XGBoost'].mre:.3g} %",
            file=sys.stderr,
        )
    found = [results[job.name] for job in plan]
    print("\n".join(report_models(found)))
    ours, xgboost = max(of_selected(found)), max(of_family(found, "XGBoost"))
    if ours > xgboost:
        return f"the selected model's worst draw has {ours:.4g} %, XGBoost's {xgboost:.4g} %"
    return None


def of_family(found: Sequence[dict[str, models.Outcome]], family: str) -> list[float]:
    return [outcomes[family].mre for outcomes in found]


def report_models(found: Sequence[dict[str, models.Outcome]]) -> Iterator[str]:
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


def one_run(job: search.Job, number: int, at_once: int) -> tuple[search.Job, search.Outcome]:
    """One search; the table is made where it is needed."""
    return search.done(job, searched(number, at_once))


def of_search(arguments: argparse.Namespace) -> str | None:
    """Makes what runs are missing and prints the tables. What was missed, or None."""
    places = [(number, at_once) for at_once in AT_ONCE for number in range(SEARCHED)]
    tables = [searched(*place) for place in places]
    results = search.kept(arguments.results)
    plan = [
        (search.Job(table.name, kind, run), *place)
        for run in range(arguments.runs)
        for table, place in zip(tables, places, strict=True)
        for kind in SEARCHES
    ]
    lacking = [task for task in plan if task[0].name not in results]
    for number, (job, outcome) in enumerate(each(one_run, lacking, jobs=arguments.jobs), 1):
        results[job.name] = outcome
        search.keep(arguments.results, results)
        print(f"[{number}/{len(lacking)}] {job.name}: {outcome.best[-1]:.4g}", file=sys.stderr)
    problems: list[str] = []
    print("\n".join(report_search(tables, results, arguments.runs, problems)))
    return "; ".join(problems) or None


def report_search(
    tables: Sequence[Table], results: search.Results, runs: int, problems: list[str]
) -> Iterator[str]:
    """The best value after so many rows; `problems` gets where it is behind random."""
    yield f"| table | search | {' | '.join(f'after {count}' for count in COUNTS)} |"
    yield f"|---|---|{'---:|' * len(COUNTS)}"
    for table in tables:
        best = {kind: runs_of(results, table, kind, runs) for kind in SEARCHES}
        for kind, values in best.items():
            cells = [interval(values[:, count - 1].tolist()) for count in COUNTS]
            yield f"| {table.name} | {kind} | {' | '.join(cells)} |"
        for count in COUNTS:
            ours, chance = (float(best[kind][:, count - 1].mean()) for kind in SEARCHES)
            # Means of equal values differ in their last digits.
            if ours > chance * (1 + 1e-12):
                problems.append(f"{table.name} after {count}: {ours:.4g}, random {chance:.4g}")


# --------------------------------------------------------------------------------------------------


def main() -> None:
    arguments = parsed()
    try:
        missed = {"models": of_models, "search": of_search}[arguments.question](arguments)
    except UnusableError as error:
        sys.exit(str(error))
    sys.exit(f"not as it should be: {missed}" if missed else None)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    questions = parser.add_subparsers(dest="question", required=True)
    for name, option, count in (("models", "--draws", DRAWS), ("search", "--runs", RUNS)):
        question = questions.add_parser(name)
        question.add_argument(option, type=positive, default=count, help=f"({count})")
        question.add_argument("--jobs", type=positive, help="processes (one a processor)")
        default = Path(f"build/bench-modes-{name}.json")
        question.add_argument(
            "--results", type=Path, default=default, help=f"where they are kept ({default})"
        )
    return parser.parse_args()


if __name__ == "__main__":
    main()
