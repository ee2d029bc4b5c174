"""What the models cost: a search for hyper-parameters, and how a fit grows with its rows.

search   All families (`--families`), 30 hyper-parameter trials each, in 5 folds, on 500 rows with
         30 features, by two processes. `--nested` also finds the error to expect, by a search
         inside each of 5 outer folds, as `intop train` does.
growth   Fit and prediction of each family with its own defaults, by one process, from 500 to
         50,000 rows. A family is not asked for more rows once it took `--limit` seconds. One that
         learns from a part of many rows is measured without that, too.

Times are of the processor, so that a machine which others use, too, changes them little; the
total is also given as it passed. The data are made here: a surface with bows and interactions,
10 % noise. Prints Markdown; progress is on stderr.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from intop.domain.encoding import Variable
from intop.learn.families import FAMILIES, INTOP_FAMILIES
from intop.learn.families.family import Family
from intop.learn.hyperparameters import tune
from intop.learn.parallel import each, one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import fit, predicted
from intop.learn.tuning import train_all

SEED = 7
FEATURES = 30
SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
SHORT_S = 1.0
"""What takes less is done three times, and the shortest counts."""


def main() -> None:
    arguments = parsed()
    if arguments.mode == "search":
        lines = search(arguments)
    else:
        lines = growth([FAMILIES[name] for name in arguments.families], arguments.limit)
    print("\n".join(lines))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    searching = modes.add_parser("search", help="hyper-parameters of all families")
    searching.add_argument("--rows", type=int, default=500, help="(500)")
    searching.add_argument("--trials", type=int, default=30, help="of each family (30)")
    searching.add_argument("--folds", type=int, default=5, help="outer ones, of --nested (5)")
    searching.add_argument("--jobs", type=int, default=2, help="processes (2)")
    searching.add_argument("--nested", action="store_true", help="the error to expect as well")
    growing = modes.add_parser("growth", help="a fit and a prediction, by the number of rows")
    growing.add_argument("--limit", type=float, default=60, help="seconds (60)")
    for mode, families in ((searching, [f.name for f in INTOP_FAMILIES]), (growing, [*FAMILIES])):
        mode.add_argument(
            "--families", nargs="+", choices=[*FAMILIES], default=families, metavar="FAMILY"
        )
    return parser.parse_args()


def surface(rows: int, seed: int = SEED) -> Samples:
    """Configurations of 30 numbers and switches, of which ten act on the target."""
    rng = np.random.default_rng(seed)
    values = rng.random((rows, FEATURES))
    values[:, FEATURES // 2 :] = values[:, FEATURES // 2 :] > 0.5
    v = values.T
    log_target = (
        3
        + 2 * np.sin(np.pi * v[0] * v[1])
        + 4 * (v[2] - 0.5) ** 2
        + v[3] * v[15]
        + 0.8 * v[16] * v[17]
        + 0.5 * (v[4] + v[5] - v[18])
        + rng.normal(0, 0.1, rows)
    )
    return Samples(
        variables=tuple(Variable(name=f"v{n}", key=f"v{n}") for n in range(FEATURES)),
        values=values,
        measured=tuple((float(value),) for value in np.exp(log_target)),
    )


def search(arguments: argparse.Namespace) -> list[str]:
    """A table of the processor's seconds by family."""
    samples = surface(arguments.rows)
    began = time.perf_counter()
    seconds = searched(arguments.families, samples, arguments.trials, arguments.jobs)
    passed = time.perf_counter() - began
    task = f"{arguments.trials} trials, {arguments.rows} rows"
    idle = sum(seconds.values()) / arguments.jobs
    lines = [
        f"{task}, {arguments.jobs} processes:",
        "",
        "| family | seconds of a processor | per fit |",
        "|---|---:|---:|",
        *(
            f"| {name} | {of:.1f} | {1000 * of / (5 * arguments.trials):.0f} ms |"
            for name, of in seconds.items()
        ),
        f"| all | {sum(seconds.values()):.0f} | |",
        "",
        f"{passed:.0f} s passed; {idle:.0f} s where nothing else uses the processors.",
    ]
    if arguments.nested:
        began = time.perf_counter()
        train_all(
            arguments.families,
            samples,
            folds=arguments.folds,
            trials=arguments.trials,
            timeout_s=None,
            seed=SEED,
            jobs=arguments.jobs,
            progress=tell,
        )
        passed = time.perf_counter() - began
        lines.append(f"With the error to expect, in {arguments.folds} outer folds: {passed:.0f} s.")
    return lines


def searched(families: Sequence[str], samples: Samples, trials: int, jobs: int) -> dict[str, float]:
    """The processor's seconds by family."""
    tasks = [(name, samples, trials) for name in families]
    seconds = {}
    for name, of in each(timed_search, tasks, jobs=jobs):
        seconds[name] = of
        tell(f"{name}: {of:.1f} s")
    return {name: seconds[name] for name in families}


def timed_search(name: str, samples: Samples, trials: int) -> tuple[str, float]:
    began = time.process_time()
    tune(name, samples, trials=trials, timeout_s=None, seed=SEED)
    return name, time.process_time() - began


def growth(families: Sequence[Family], limit_s: float) -> list[str]:
    """A table of the processor's seconds by family and rows, with the exponents of their growth."""
    titles = [f"{size:,}" for size in SIZES]
    lines = [
        f"| family | {' | '.join(titles)} | exponent | last step |",
        "|---|" + "---:|" * (len(SIZES) + 2),
    ]
    for title, family in asked(families):
        cost(family, surface(50))  # which loads the libraries
        seconds: list[float] = []
        for size in SIZES:
            seconds.append(cost(family, surface(size)))
            tell(f"{title}, {size} rows: {seconds[-1]:.2f} s")
            if seconds[-1] > limit_s:
                break
        lines.append(row(title, seconds))
    unit = [size * math.log(size) for size in SIZES]
    lines.append(row("n·log n", [one / unit[0] for one in unit]))
    lines += ["", f"Empty: not tried, since fewer rows took more than {limit_s:g} s."]
    return lines


def asked(families: Sequence[Family]) -> Iterator[tuple[str, Family]]:
    """The families as they are used, and without their limits."""
    for family in families:
        yield family.name, family
        if family.most_rows is not None:
            yield f"{family.name}, all rows", replace(family, most_rows=None)


def row(title: str, seconds: Sequence[float]) -> str:
    """One line of the table, with the slope of log time on log rows, over all and at the end."""
    cells = [f"{value:.2f}" if value < 10 else f"{value:.0f}" for value in seconds]
    cells += [""] * (len(SIZES) - len(cells))
    sizes = SIZES[: len(seconds)]
    cells += [f"{exponent(sizes, seconds):.2f}", f"{exponent(sizes[-2:], seconds[-2:]):.2f}"]
    return f"| {title} | {' | '.join(cells)} |"


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The power of the rows that the time grows with; NaN for a single size."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def cost(family: Family, samples: Samples) -> float:
    """The processor's seconds of a fit to all rows and a prediction of as many."""
    shortest = math.inf
    for _ in range(3):
        began = time.process_time()
        with one_thread():
            model = family.build(samples.variables, dict(family.defaults), SEED)
            predicted(fit(model, samples), samples.values)
        shortest = min(shortest, time.process_time() - began)
        if shortest > SHORT_S:
            break
    return shortest


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
