"""Is it worth anything to distrust a prediction that the models aren't sure of?

    python -m benchmarks.penalty ../shared/bench --size 60

On the lab's own table and on measured tables with known optima (the folder's search/): the four
tree models, with their own defaults, learn from `--size` random rows and rank all others, by the
mean of their predictions and a penalty of so many standard deviations (`intop.learn.fitness`).
What was measured of the first in that order is held against the best of those rows: how much
higher it is, in percent, mean over `--runs`. Throughput in wc*-obj1 is minimised, too, as in
FLASH's protocol. The last line is the mean over tables of log ratios to weight 0, with the standard
error over tables. Prints Markdown; everything follows from the seeds.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from benchmarks.models import UnusableError, table
from benchmarks.screening import as_samples, read
from intop.domain.training import FittedFamily
from intop.learn.families import FAMILIES
from intop.learn.fitness import Fitness
from intop.learn.samples import Samples
from intop.learn.surrogate import Predictor, fit_trees

LAB = Path(__file__).parent / "data" / "slt-collect.csv.gz"
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
SEED = 11


def main() -> None:
    arguments = parsed()
    print(f"| table, {arguments.size} of its rows | {' | '.join(map(str, WEIGHTS))} |")
    print(f"|---|{'---:|' * len(WEIGHTS)}")
    found = []
    for name, samples in tables(arguments.data):
        above = np.array([run(samples, arguments.size, n) for n in range(arguments.runs)])
        found.append(above.mean(axis=0))
        cells = " | ".join(f"{100 * (math.exp(v) - 1):.1f} %" for v in found[-1])
        print(f"| {name} ({len(samples)}) | {cells} |", flush=True)
    against = np.array(found) - np.array(found)[:, :1]
    errors = against.std(axis=0, ddof=1) / math.sqrt(len(found)) if len(found) > 1 else against[0]
    means = [
        f"{100 * mean:+.1f} ± {100 * error:.1f} %"
        for mean, error in zip(against.mean(axis=0), errors, strict=True)
    ]
    print(f"| mean difference to 0 | {' | '.join(means)} |")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="?", help="folder with search/ (the lab's alone)")
    parser.add_argument("--size", type=int, default=60, help="rows to learn from (60)")
    parser.add_argument("--runs", type=int, default=20, help="(20)")
    return parser.parse_args()


def tables(folder: Path | None) -> list[tuple[str, Samples]]:
    """The lab's table, and all in the folder that are no published results."""
    found = [("lab slt", as_samples(read(LAB)))]
    if folder is not None:
        paths = sorted((folder / "search").glob("*.csv"))
        names = [path.stem for path in paths if not path.stem.startswith("published")]
        if not names:
            raise UnusableError(f"{folder}: no tables in search/")
        found += [(name, table(folder / "search", name)) for name in names]
    return found


def run(samples: Samples, size: int, number: int) -> list[float]:
    """By weight, the log ratio of what was measured of the pick to the best of the other rows."""
    order = np.random.default_rng([SEED, number]).permutation(len(samples))
    models = trees(samples.rows(order[:size]), number)
    values, log_target = samples.values[order[size:]], samples.log_target[order[size:]]
    picks = [int(np.argmin(Fitness(models, weight)(values).score)) for weight in WEIGHTS]
    return [float(log_target[pick] - log_target.min()) for pick in picks]


def trees(samples: Samples, seed: int) -> Predictor:
    """The four tree families with their own defaults, fitted to all rows."""
    fitted = [
        FittedFamily(family=f.name, hyperparameters=dict(f.defaults), inner_score=0.0)
        for f in FAMILIES.values()
        if f.is_tree
    ]
    return fit_trees(fitted, samples, seed)


if __name__ == "__main__":
    main()
