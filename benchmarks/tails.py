"""What the tail of a trial says that its P99 does not, behind a short buffer.

    python -m benchmarks.tails

Of the trials in benchmarks/data/slt-buffer-40.csv.gz that filled the space (those of random search
and of the offline pipeline's design), some are drawn, and a random forest with the defaults of RFR
learns the logarithm of their P99, or of their tail (Trial.tail_ms). By what it expects of the other
configurations, in order, it finds the good ones or it does not:

area      under the ROC curve: the probability that of a good and a bad one, the good one is
          expected lower; one half is chance
of ten    the share of good ones among the ten that are expected lowest

Good is a P99 below GOOD_MS. Where none of the drawn ones is good, is where a tuner begins that has
had no luck. Means over REPEATS draws.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.beds import BUFFERS
from benchmarks.screening import as_samples, read
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import Predictor, fit

GOOD_MS = 50.0
REPEATS = 100
DRAWN = (20, 40)
FILLING = ("random", "offline")
TARGETS = {"P99": "p99_ms", "tail": "tail_ms"}


def main() -> None:
    rows = [r for r in read(BUFFERS[40]) if r["arm"].partition(" ")[0] in FILLING]
    samples = {name: as_samples(rows, target) for name, target in TARGETS.items()}
    good = np.exp(samples["P99"].log_target) < GOOD_MS
    print(f"{len(good)} configurations, {good.mean():.0%} of them good\n")
    print("| drawn | learned | area | of ten |\n|---|---|---:|---:|")
    print("\n".join(table(samples, good)))


def table(samples: dict[str, Samples], good: NDArray[np.bool_]) -> Iterator[str]:
    for luck, source in (
        ("none of them good", np.flatnonzero(~good)),
        ("any", np.arange(len(good))),
    ):
        for count in DRAWN:
            for name, learned in samples.items():
                found = []
                for repeat in range(REPEATS):
                    drawn = np.random.default_rng(repeat).permutation(source)[:count]
                    others = np.setdiff1d(np.arange(len(good)), drawn)
                    found.append(ranked(expected(learned, drawn, others, repeat), good[others]))
                area, of_ten = np.mean(found, axis=0)
                yield f"| {count}, {luck} | {name} | {area:.2f} | {of_ten:.0%} |"


def expected(
    samples: Samples, drawn: NDArray[np.intp], others: NDArray[np.intp], seed: int
) -> Vector:
    """What a forest that knows the drawn rows says of the others (n,)."""
    forest = FAMILIES["RFR"]
    model = fit(forest.build(samples.variables, dict(forest.defaults), seed), samples.rows(drawn))
    return Predictor({forest.name: model})(samples.values[others])


def ranked(order: Vector, good: NDArray[np.bool_]) -> tuple[float, float]:
    """The area and the share of ten, for what comes first by an order."""
    return float(roc_auc_score(good, -order)), float(good[np.argsort(order)[:10]].mean())


if __name__ == "__main__":
    main()
