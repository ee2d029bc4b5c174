"""What the models promise of each of a winner's changes: an explanation tries a few first."""

import numpy as np

from intop.domain.ablation import Changes
from intop.domain.training import Training
from intop.errors import ResultMissingError
from intop.learn.surrogate import fit_trees
from intop.run.context import Task
from intop.stages.collected import learned_samples
from intop.stages.winner import Winner


def promised(task: Task, winner: Winner) -> tuple[str, ...]:
    """The winner's changes, that of which the models promise most first.

    By log P99 without a change less that with it, in the winner and beside the default together, as
    an explanation ranks them by measurement. Empty where there are no models of P99.
    """
    training = task.store.get(task.subject, Training)
    if training is None or training.objective != "p99":
        return ()
    try:
        space, samples, _ = learned_samples(task, training)
        predictor = fit_trees(training.fitted, samples, task.seed("explain"))
    except (ResultMissingError, ValueError):
        return ()  # of an earlier campaign's models, or none of trees
    names, whole = winner.names, frozenset(winner.names)
    nothing: Changes = frozenset()
    sets = [nothing, whole, *(whole - {n} for n in names), *(frozenset({n}) for n in names)]
    log_p99 = predictor(space.values([winner.made(one) for one in sets]))
    default, full = log_p99[:2]
    left_out, alone = np.split(log_p99[2:], 2)
    brings = (left_out - full) + (default - alone)
    return tuple(names[n] for n in np.argsort(-brings, kind="stable"))
