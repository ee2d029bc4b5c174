"""Two architectures side by side, from measured trials only."""

from collections.abc import Sequence
from dataclasses import dataclass

from intop.domain.results import Ranking, Training, Verdict
from intop.domain.stats import geometric_mean
from intop.domain.trial import Conditions, Trial

EXPECTED_DIFFERENCES = ("arch", "machine", "cpu")
"""What may differ between architectures: the thing that is compared."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """What one architecture's campaign measured under one workload.

    `default_p99_ms` is the geometric mean over all trials of the default.
    """

    arch: str
    conditions: Conditions
    trials: int
    default_p99_ms: float
    best_p99_ms: float
    verdict: Verdict | None
    ranking: Ranking | None
    training: Training | None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One workload on two architectures.

    `rank_agreement` is Spearman's correlation of the importances of the parameters that both
    rank. `warnings` name the conditions that differ though they should not.
    """

    workload: str
    sides: tuple[Side, Side]
    rank_agreement: float | None
    warnings: tuple[str, ...]


def side(
    arch: str,
    trials: Sequence[Trial],
    verdict: Verdict | None,
    ranking: Ranking | None,
    training: Training | None,
) -> Side:
    """One side from its usable trials. Raises ValueError without a default or a design."""
    defaults = [t.p99_ms for t in trials if t.configuration.is_default]
    others = [t.p99_ms for t in trials if not t.configuration.is_default]
    if not defaults or not others:
        raise ValueError(f"{len(defaults)} trials of the default, {len(others)} of others")
    return Side(
        arch=arch,
        conditions=trials[-1].conditions,
        trials=len(trials),
        default_p99_ms=geometric_mean(defaults),
        best_p99_ms=min(others),
        verdict=verdict,
        ranking=ranking,
        training=training,
    )


def compared(workload: str, one: Side, other: Side) -> Comparison:
    """The two sides, with what speaks against comparing them."""
    warnings = [
        difference
        for difference in one.conditions.differences(other.conditions)
        if difference.partition(":")[0] not in EXPECTED_DIFFERENCES
    ]
    for s in (one, other):
        if s.conditions.machine == (one if s is other else other).conditions.machine:
            warnings.append(f"machine: both are {s.conditions.machine}")
            break
    return Comparison(
        workload=workload,
        sides=(one, other),
        rank_agreement=_agreement(one.ranking, other.ranking),
        warnings=tuple(warnings),
    )


def _agreement(one: Ranking | None, other: Ranking | None) -> float | None:
    """Spearman's rank correlation over the common parameters; None for fewer than three."""
    if one is None or other is None:
        return None
    left = {i.key: i.mean for i in one.importances}
    right = {i.key: i.mean for i in other.importances}
    common = sorted(left.keys() & right.keys())
    if len(common) < 3:
        return None
    from scipy import stats

    result = stats.spearmanr([left[k] for k in common], [right[k] for k in common])
    return float(result.statistic)
