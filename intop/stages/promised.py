"""What the models promise of each of a winner's changes: an explanation tries a few first."""

import numpy as np

from intop.domain.ablation import Changes
from intop.domain.training import Training
from intop.errors import ResultMissingError
from intop.learn.families import FAMILIES
from intop.learn.surrogate import fit_trees
from intop.run.context import Task
from intop.stages.collected import learned_samples
from intop.stages.winner import Winner


def promised(task: Task, winner: Winner) -> tuple[str, ...]:
    """The winner's changes, ranked by the effect that the models predict, largest first.

    The effect is log P99 without a change less that with it, in the winner and beside the default
    together. An explanation ranks by the same sum when it measures all changes. Empty where there
    are no models of P99 by trees. Raises what `learned_samples` does but ResultMissingError.
    """
    training = task.store.get(task.subject, Training)
    if training is None or training.objective != "p99":
        return ()
    if not any(FAMILIES[one.family].is_tree for one in training.fitted):
        return ()
    try:
        space, samples, _ = learned_samples(task, training)
    except ResultMissingError:
        return ()  # a training that was stored without its trials
    predictor = fit_trees(training.fitted, samples, task.seed("explain"))
    names, whole = winner.names, frozenset(winner.names)
    nothing: Changes = frozenset()
    sets = [nothing, whole, *(whole - {n} for n in names), *(frozenset({n}) for n in names)]
    log_p99 = predictor(space.values([winner.made(one) for one in sets]))
    default, full = log_p99[:2]
    left_out, alone = np.split(log_p99[2:], 2)
    brings = (left_out - full) + (default - alone)
    return tuple(names[n] for n in np.argsort(-brings, kind="stable"))
