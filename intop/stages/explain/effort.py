"""The number of trials that an explanation takes, estimated before it begins."""

from intop.domain.workload import Budget
from intop.stages.explain.ablation import (
    FEWEST_CANDIDATES,
    NESTED,
    NESTED_ROUNDS,
    PROMISED,
    PROMISED_ROUNDS,
    ablate,
)

FURTHER, FURTHER_AT_MOST = 125, 340
"""Trials after the first sets, for many changes, by `tests/stages/test_expected.py`. Half of its
searches take about FURTHER where models know something. Nineteen of twenty take no more than
FURTHER_AT_MOST after all changes are ranked."""


def explained(budget: Budget, keys: int) -> int:
    """Return the trials for so many changes, a few of which keep the gain as the models promised.

    These few are tried. Then there are elimination, taking back and interactions, and the rounds
    that judge the smallest set.
    """
    count = max(2, keys)
    return _tried(count) + min(FURTHER, 30 * (count - 1)) + 3 * budget.explain_pairs


def explained_at_most(budget: Budget, keys: int) -> int:
    """Return the same where the models promised wrongly: all changes are ranked by measurement."""
    count = max(2, keys)
    rounds = max(2, budget.explain_rounds)
    names = [str(n) for n in range(count)]
    first = next(ablate(names, rounds=rounds, level=budget.level))
    better = min(count, max(FEWEST_CANDIDATES, -(-count // 2)))
    ranked = len(first.sets) * first.rounds + (2 + 2 * better) * (rounds - first.rounds)
    sizes = sum(size < count for size in NESTED)
    nested = (1 + sizes) * NESTED_ROUNDS if sizes else 0
    # Few changes have little to be eliminated; of many, the nested sets leave a few.
    further = min(FURTHER_AT_MOST, 100 * (count - 1) - 60)
    return _tried(count) + ranked + nested + further + 3 * budget.explain_pairs


def _tried(count: int) -> int:
    return (2 + sum(size < count for size in PROMISED)) * PROMISED_ROUNDS
