"""Folds: which rows a model is trained on, and which ones it is judged by."""

from dataclasses import dataclass

import numpy as np

from intop.learn.samples import Rows


@dataclass(frozen=True)
class Fold:
    """One split of the rows; in the one that is for use rather than judged, none is held out."""

    training: Rows
    held_out: Rows


def split(count: int, folds: int, seed: int) -> list[Fold]:
    """At most `folds` of them, each of which holds out about as many rows as the others."""
    from sklearn.model_selection import KFold

    splitter = KFold(n_splits=min(folds, count), shuffle=True, random_state=seed % 2**32)
    return [Fold(train, test) for train, test in splitter.split(np.empty(count))]


def everything(count: int) -> Fold:
    """All rows, and none held out."""
    rows = np.arange(count)
    return Fold(rows, rows[:0])
