"""What fits on Dask cost over fits in processes here: the same training by both, in turns.

Terms: a table of 40 random configurations of 10 numbers (seed 1), SVR and LightGBM in 5
folds with 5 tries each, in 2 processes here and on 2 workers of a Dask cluster on the loopback.
All processes are warm: each way trains once before. The error tables must be equal to the last
digit, times apart. Prints a table in Markdown. Needs the tests' packages.
"""

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from dask_cluster import dask_cluster
from intop.domain.training import FittedFamily, ModelError
from intop.learn.tuning import train_all
from samples import table
from studies import wait_for

FAMILIES, FOLDS, TRIES, WORKERS, TURNS = ("SVR", "LightGBM"), 5, 5, 2, 3


def main() -> None:
    print("| turn | processes here (s) | Dask (s) | Dask / here | same table |", flush=True)
    print("|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder, dask_cluster(Path(folder), WORKERS) as cluster:
        wait_for(lambda: cluster.log().count("Registered to") == WORKERS, "the workers")
        for turn in range(TURNS + 1):
            here, local_s = trained(None)
            there, dask_s = trained(cluster.address)
            if here != there:
                sys.exit("the tables differ")
            if turn:
                print(
                    f"| {turn} | {local_s:.2f} | {dask_s:.2f} | {dask_s / local_s:.2f} | yes |",
                    flush=True,
                )


def trained(dask: str | None) -> tuple[list[tuple[FittedFamily, ModelError]], float]:
    rng = np.random.default_rng(1)
    samples = table(rng.random((40, 10)), rng.normal(4, 1, 40))
    started = time.monotonic()
    found = train_all(
        FAMILIES,
        samples,
        folds=FOLDS,
        trials=TRIES,
        timeout_s=None,
        seed=1,
        jobs=WORKERS,
        dask=dask,
    )
    seconds = time.monotonic() - started
    return [(fitted, replace(error, seconds=0.0)) for fitted, error in found], seconds


if __name__ == "__main__":
    main()
