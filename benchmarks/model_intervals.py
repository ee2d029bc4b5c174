"""Which intervals of a model's prediction hold what they say: ways to make them, compared.

On public tables (a folder with Apache.csv, LLVM.csv and x264.csv), on the lab's own ones, and on
simulated ones whose noise differs from place to place. Each of the six families, without a
search, is fitted to some rows and judged by the others. Prints for each way how many of them lie in
their interval at 80 and 95 %, the least of all tables and families, and the interval score of
Gneiting and Raftery (Journal of the American Statistical Association 102, 2007, 359-378; lower is
better) as a ratio to that of CV+. The last way is the one of `intop.learn.surrogate`.
"""

import argparse
import math
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import NormalDist, fmean

import numpy as np

from intop.config.table import Roles, read_table
from intop.domain.encoding import Matrix, Variable
from intop.learn.families import FAMILIES, INTOP_FAMILIES
from intop.learn.folds import split
from intop.learn.parallel import each, one_thread
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import (
    INTERVAL_FOLDS,
    INTERVAL_REPEATS,
    Surrogate,
    fit,
    predicted,
    surrogate,
)

TRAINING = {
    "Apache": 27,
    "LLVM": 33,
    "x264": 48,
    "lab slt": 130,
    "lab dlt": 130,
    "simulated, 40 rows": 40,
    "simulated": 120,
}
"""Rows that are trained on. Of the published ones, the size in the middle."""
LAB = Path(__file__).parent / "data"
MOST_JUDGED = 500
LEVELS = (0.8, 0.95)
BAGS, FOLDS = 20, 5
SEED = 1

Interval = tuple[Vector, Vector]


class Fits:
    """One family, fitted to the same rows in all the ways that intervals are made of."""

    def __init__(self, family: str, training: Samples, values: Matrix) -> None:
        self.family, self.training, self.values = family, training, values
        self.settings = {"early_stopping": False, **FAMILIES[family].defaults}
        self.ours: Surrogate = surrogate(family, self.settings, training, SEED)
        self.here = self.ours(values)
        self.folds = split(len(training), FOLDS, SEED)
        self.others = [self.fitted(training.rows(fold.training)) for fold in self.folds]
        rng = np.random.default_rng(SEED)
        count = len(training)
        drawn = rng.integers(count, size=(BAGS, count))
        # How often each row is in each bag, and what each bag says of all rows.
        self.inside = np.array([np.bincount(bag, minlength=count) for bag in drawn])
        bags = [self.fitted(training.rows(bag)) for bag in drawn]
        self.bags = np.array([predicted(bag, values) for bag in bags])
        self.bags_before = np.array([predicted(bag, training.values) for bag in bags])
        out = self.inside == 0
        # A row that is in all bags has no error to tell; with 20 bags there is hardly one.
        self.told = out.sum(axis=0) > 1
        outside = np.where(out, self.bags_before, np.nan)[:, self.told]
        self.misses = np.abs(np.nanmean(outside, axis=0) - training.log_target[self.told])
        self.spreads = np.nanstd(outside, axis=0, ddof=1)

    def fitted(self, training: Samples) -> object:
        return fit(FAMILIES[self.family].build(training.variables, self.settings, SEED), training)

    @property
    def fold_misses(self) -> tuple[Vector, Vector]:
        """The errors of the rows when their fold was held out, and which fold that was."""
        errors, numbers = np.empty(len(self.training)), np.empty(len(self.training), dtype=int)
        for number, (fold, other) in enumerate(zip(self.folds, self.others, strict=True)):
            rows = self.training.rows(fold.held_out)
            errors[fold.held_out] = np.abs(predicted(other, rows.values) - rows.log_target)
            numbers[fold.held_out] = number
        return errors, numbers


def rank(count: int, level: float) -> int:
    """The place of the order statistic that holds `level`, with the finite sample's correction."""
    return min(math.ceil(level * (count + 1) - 1e-9), count) - 1


def plus(centres: Matrix, misses: Matrix, level: float) -> Interval:
    """Of centres and misses (rows, values): the order statistics of their differences and sums."""
    place = rank(len(centres), level)
    low = np.sort(centres - misses, axis=0)[len(centres) - 1 - place]
    return low, np.sort(centres + misses, axis=0)[place]


def spread_alone(fits: Fits, level: float) -> Interval:
    half = NormalDist().inv_cdf((1 + level) / 2) * fits.bags.std(axis=0, ddof=1)
    return fits.bags.mean(axis=0) - half, fits.bags.mean(axis=0) + half


def spread_and_noise(fits: Fits, level: float) -> Interval:
    """Heskes (Advances in Neural Information Processing Systems 9, 1997); one noise for all."""
    noise = np.mean(fits.misses**2)
    sd = np.sqrt(fits.bags.var(axis=0, ddof=1) + noise)
    half = NormalDist().inv_cdf((1 + level) / 2) * sd
    return fits.bags.mean(axis=0) - half, fits.bags.mean(axis=0) + half


def residuals(fits: Fits, level: float) -> Interval:
    """The held-out errors of the folds about the model of all rows."""
    errors, _ = fits.fold_misses
    half = np.sort(errors)[rank(len(errors), level)]
    return fits.here - half, fits.here + half


def normal(fits: Fits, level: float) -> Interval:
    """The same errors, taken as normal: their root mean square."""
    errors, _ = fits.fold_misses
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(np.mean(errors**2))
    return fits.here - half, fits.here + half


def normal_and_spread(fits: Fits, level: float) -> Interval:
    """As of bags: the spread of the folds' models, which is the value's own, and the errors."""
    errors, _ = fits.fold_misses
    spread = np.var([predicted(other, fits.values) for other in fits.others], axis=0, ddof=1)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(spread + np.mean(errors**2))
    return fits.here - half, fits.here + half


def cv_plus(fits: Fits, level: float) -> Interval:
    """Barber, Candès, Ramdas and Tibshirani (Annals of Statistics 49, 2021, 486-507)."""
    errors, numbers = fits.fold_misses
    centres = np.array([predicted(other, fits.values) for other in fits.others])[numbers]
    return plus(centres, np.repeat(errors[:, None], len(fits.values), axis=1), level)


def ours(fits: Fits, level: float) -> Interval:
    return fits.ours.interval(fits.values, level)


def cv_plus_by_bags(fits: Fits, level: float) -> Interval:
    """CV+ whose misses are in units of the bags' spread, as in normalised conformal prediction."""
    before = np.full(len(fits.training), fits.spreads.mean())
    before[fits.told] = fits.spreads
    return scaled_plus(fits, before, fits.bags.std(axis=0, ddof=1), level)


def cv_plus_by_folds(fits: Fits, level: float) -> Interval:
    """The same with the spread of the folds' models, all but one of which know the row."""
    before, here = (
        np.std([predicted(other, values) for other in fits.others], axis=0, ddof=1)
        for values in (fits.training.values, fits.values)
    )
    return scaled_plus(fits, before, here, level)


def scaled_plus(fits: Fits, before: Vector, here: Vector, level: float) -> Interval:
    """CV+ in units of the spread of the row that was missed, and of the one that is predicted.

    The mean is added to both: where models agree, they are not certain.
    """
    errors, numbers = fits.fold_misses
    centres = np.array([predicted(other, fits.values) for other in fits.others])[numbers]
    floor = before.mean() or 1.0
    return plus(centres, (errors / (before + floor))[:, None] * (here + floor)[None, :], level)


def after_bootstrap(fits: Fits, level: float, *, scaled: bool = False) -> Interval:
    """Jackknife+ after bootstrap of Kim, Xu and Barber (NeurIPS 33, 2020)."""
    out = (fits.inside == 0)[:, fits.told].T
    centres = (out @ fits.bags) / out.sum(axis=1, keepdims=True)
    if not scaled:
        return plus(centres, np.repeat(fits.misses[:, None], len(fits.values), axis=1), level)
    floor = fits.spreads.mean()
    squares = (out @ fits.bags**2) / out.sum(axis=1, keepdims=True) - centres**2
    here = np.sqrt(np.maximum(squares, 0) * BAGS / (BAGS - 1)) + floor
    return plus(centres, (fits.misses / (fits.spreads + floor))[:, None] * here, level)


def after_bootstrap_scaled(fits: Fits, level: float) -> Interval:
    return after_bootstrap(fits, level, scaled=True)


QUANTILE_SETTINGS: dict[str, Callable[[float], dict[str, object]]] = {
    "CatBoost": lambda share: {"loss_function": f"Quantile:alpha={share}"},
    "LightGBM": lambda share: {"objective": "quantile", "alpha": share},
    "XGBoost": lambda share: {"objective": "reg:quantileerror", "quantile_alpha": share},
}


def quantiles(fits: Fits, level: float) -> Interval | None:
    """Models of both ends: of boosted trees by their loss, of a forest by its leaves."""
    training = fits.training
    shares = ((1 - level) / 2, (1 + level) / 2)
    if fits.family == "RFR":
        return _leaves(fits, shares)
    if fits.family not in QUANTILE_SETTINGS:
        return None
    ends = []
    for share in shares:
        model = FAMILIES[fits.family].build(training.variables, fits.settings, SEED)
        model.named_steps["model"].set_params(**QUANTILE_SETTINGS[fits.family](share))
        ends.append(predicted(fit(model, training), fits.values))
    return np.minimum(*ends), np.maximum(*ends)


def _leaves(fits: Fits, shares: Sequence[float]) -> Interval:
    """Meinshausen (Journal of Machine Learning Research 7, 2006, 983-999)."""
    *_, forest = fits.ours.model.named_steps.values()
    before = fits.ours.model[:-1]
    known = forest.apply(before.transform(fits.training.values))
    asked = forest.apply(before.transform(fits.values))
    same = asked[:, None, :] == known[None, :, :]
    weights = (same / np.maximum(same.sum(axis=1, keepdims=True), 1)).mean(axis=2)
    order = np.argsort(fits.training.log_target)
    summed = np.cumsum(weights[:, order], axis=1)
    summed /= summed[:, -1:]
    low, high = (
        fits.training.log_target[order][(summed < share - 1e-9).sum(axis=1)] for share in shares
    )
    return low, high


METHODS: dict[str, Callable[[Fits, float], Interval | None]] = {
    "quantile models": quantiles,
    "20 bags: spread": spread_alone,
    "20 bags: spread and noise": spread_and_noise,
    "20 bags: jackknife+": after_bootstrap,
    "20 bags: jackknife+, scaled": after_bootstrap_scaled,
    "5 folds: errors": residuals,
    "5 folds: errors, as normal": normal,
    "5 folds: spread and errors": normal_and_spread,
    "5 folds: CV+": cv_plus,
    "5 folds: CV+, scaled by folds": cv_plus_by_folds,
    "5 folds: CV+, scaled by 20 bags": cv_plus_by_bags,
    f"{INTERVAL_REPEATS} times {INTERVAL_FOLDS} folds, scaled": ours,
}


def interval_score(truth: Vector, interval: Interval, level: float) -> float:
    low, high = interval
    outside = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return float(np.mean(high - low + 2 / (1 - level) * outside))


def simulated(rows: int, rng: np.random.Generator) -> Samples:
    """Ten numbers, of which five matter: four to the target, one to its noise."""
    values = rng.random((rows, 10))
    truth = 3 + np.sin(3 * values[:, 0]) + values[:, 1] * values[:, 2] + (values[:, 3] > 0.7)
    noise = rng.normal(0, 0.05 + 0.4 * values[:, 4])
    return Samples(
        variables=tuple(Variable(name=f"x{n}", key=f"x{n}") for n in range(10)),
        values=values,
        measured=tuple((value,) for value in np.exp(0.5 * (truth + noise)).tolist()),
    )


def of_file(path: Path, roles: Roles) -> Samples:
    found = read_table(path, roles)
    return Samples(variables=found.variables, values=found.values, measured=found.measured)


def table(name: str, folder: Path, rng: np.random.Generator) -> tuple[Samples, Samples]:
    """The rows to train on and to judge by, drawn anew."""
    if name.startswith("simulated"):
        samples = simulated(TRAINING[name] + MOST_JUDGED, rng)
    elif name.startswith("lab "):
        path = LAB / f"{name.removeprefix('lab ')}-collect.csv.gz"
        roles = Roles(target="p99_ms", group=("configuration",), ignored=("arm",))
        samples = of_file(path, roles)
    else:
        samples = of_file(folder / f"{name}.csv", Roles(target="PERF"))
    order = rng.permutation(len(samples))
    count = TRAINING[name]
    return samples.rows(order[:count]), samples.rows(order[count : count + MOST_JUDGED])


Cell = tuple[str, str, str, float, float, float]
"""Table, family, method, level, coverage and interval score."""


def judged(name: str, family: str, run: int, folder: Path) -> list[Cell]:
    training, held_out = table(name, folder, np.random.default_rng([SEED, run]))
    cells: list[Cell] = []
    with one_thread():
        fits = Fits(family, training, held_out.values)
        for method, interval_of in METHODS.items():
            for level in LEVELS:
                found = interval_of(fits, level)
                if found is not None:
                    inside = (found[0] <= held_out.log_target) & (held_out.log_target <= found[1])
                    score = interval_score(held_out.log_target, found, level)
                    cells.append((name, family, method, level, float(inside.mean()), score))
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=os.environ.get("DATA"))
    parser.add_argument("--runs", type=int, default=3, help="draws of rows for each table (3)")
    parser.add_argument("--tables", nargs="+", choices=list(TRAINING), default=list(TRAINING))
    arguments = parser.parse_args()
    if arguments.folder is None:
        parser.error("name the folder of the tables, or set DATA")
    tasks = [
        (name, family.name, run, Path(arguments.folder))
        for name in arguments.tables
        for family in INTOP_FAMILIES
        for run in range(arguments.runs)
    ]
    found = [cell for cells in each(judged, tasks) for cell in cells]
    for name in [*arguments.tables, "all"]:
        print(f"\n{name}")
        show([cell for cell in found if name in ("all", cell[0])])


def show(found: Sequence[Cell]) -> None:
    """Means over the runs, then over tables and families."""
    by_cell: dict[tuple[str, str, str, float], list[tuple[float, float]]] = defaultdict(list)
    for *place, coverage, score in found:
        by_cell[tuple(place)].append((coverage, score))
    means = {place: np.mean(pairs, axis=0) for place, pairs in by_cell.items()}
    header = "".join(f" | {level:.0%}: held, least, score" for level in LEVELS)
    print(f"{'':32}{header}")
    for method in METHODS:
        line = f"{method:32}"
        for level in LEVELS:
            places = [p for p in means if p[2:] == (method, level)]
            if not places:
                break
            held = [means[p][0] for p in places]
            ratio = [means[p][1] / means[*p[:2], "5 folds: CV+", level][1] for p in places]
            line += f" | {fmean(held):.3f}  {min(held):.3f}  {np.exp(np.mean(np.log(ratio))):.2f}"
        print(line)


if __name__ == "__main__":
    main()
