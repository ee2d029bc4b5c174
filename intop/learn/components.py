"""Components: which performance metrics move together, by principal component analysis.

Of the metrics of trials, not of the parameters: what was measured, not what was set.
"""

from dataclasses import dataclass, replace

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.performance import P99, Performance
from intop.domain.training import Components
from intop.learn.samples import Vector

FEWEST_TRIALS = 10
FEWEST_METRICS = 2
TOGETHER = 0.8
"""The correlation (either sign) from which on two metrics count as moving together."""
MOST = 0.9
"""The share of the variance that the components that are `needed` reach."""
LEAST_CORRELATION = 0.5
"""The correlation with log P99 of a component that may stand for it: a quarter of its variance."""


def components(table: Performance) -> Components:
    """Return the principal components of the metrics that vary, each of them standardised.

    There are none of fewer than FEWEST_TRIALS trials or FEWEST_METRICS metrics.
    """
    return _analysed(table).components


def p99_equivalent(table: Performance) -> list[float]:
    """Return the first component of each trial on P99's scale, in "P99 equivalent" ms.

    It has the sign with which P99 grows, and the mean and standard deviation of log P99, so that
    lower is better and differences are of the size that P99's are. Raises ValueError where there
    are no components, or the first one has little to do with P99.
    """
    analysed = _analysed(table)
    if not analysed.components.loadings:
        raise ValueError(
            f"it takes {FEWEST_TRIALS} trials and {FEWEST_METRICS} metrics that vary, there are "
            f"{analysed.components.trials} and {len(analysed.components.metrics)}"
        )
    correlation = analysed.components.loading(0, P99)
    if correlation < LEAST_CORRELATION:
        raise ValueError(
            f"the first component has little to do with P99: their correlation is "
            f"{correlation:.2f}, and {LEAST_CORRELATION:g} is the least"
        )
    log_latency = np.array(table.column(P99))
    return np.exp(log_latency.mean() + log_latency.std() * analysed.first).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Analysed:
    """Components, with the first one's standardised scores (trials,)."""

    components: Components
    first: Vector


def _analysed(table: Performance) -> _Analysed:
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    rows = np.array(table.rows, dtype=np.float64).reshape(len(table.rows), len(table.metrics))
    varies = [_varies(column) for column in rows.T]
    metrics = tuple(m for m, v in zip(table.metrics, varies, strict=True) if v)
    none = Components(
        trials=len(rows),
        metrics=metrics,
        constant=tuple(m for m in table.metrics if m not in metrics),
    )
    if len(rows) < FEWEST_TRIALS or len(metrics) < FEWEST_METRICS:
        return _Analysed(none, np.empty(0))
    standard = StandardScaler().fit_transform(rows[:, varies])
    pca = PCA(svd_solver="full").fit(standard)
    # Metrics that say the same leave components with nothing but rounding errors in them.
    kept = pca.explained_variance_ratio_ > 1e-9
    explained = pca.explained_variance_ratio_[kept]
    scores = pca.transform(standard)[:, kept]
    scores = scores / scores.std(axis=0)
    loadings = scores.T @ standard / len(rows)
    signs = _signs(loadings, metrics)
    loadings = np.clip(signs[:, None] * loadings, -1.0, 1.0)
    components = replace(
        none,
        loadings=tuple(tuple(map(float, row)) for row in loadings),
        explained=tuple(map(float, explained)),
        needed=int(np.searchsorted(np.cumsum(explained), MOST - 1e-9)) + 1,
        groups=_groups(metrics, np.abs(np.corrcoef(standard, rowvar=False)) > TOGETHER),
        together=TOGETHER,
    )
    return _Analysed(components, signs[0] * scores[:, 0])


def _varies(column: Vector) -> bool:
    """Whether a metric is more than one value and its rounding errors."""
    return column.size > 0 and bool(np.ptp(column) > 1e-9 * max(1.0, float(np.abs(column).max())))


def _signs(loadings: Matrix, metrics: tuple[str, ...]) -> Vector:
    """Return 1 or -1 for each component, so that P99 grows with it, or its main metric."""
    leading = np.abs(loadings).argmax(axis=1)
    if P99 in metrics:
        leading = np.full(len(loadings), metrics.index(P99))
    return np.where(loadings[np.arange(len(loadings)), leading] < 0, -1.0, 1.0)


def _groups(metrics: tuple[str, ...], together: Matrix) -> tuple[tuple[str, ...], ...]:
    """Single linkage: whatever a chain of pairs that move together connects; alone is no group."""
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(together, directed=False)
    groups = (
        tuple(m for m, of in zip(metrics, label, strict=True) if of == n) for n in range(count)
    )
    return tuple(group for group in groups if len(group) > 1)
