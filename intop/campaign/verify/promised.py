"""The order in which a winner's changes are tried: those that most speaks for come first."""

from intop.campaign.collected import learned_samples
from intop.campaign.verify.change_rounds import Changes
from intop.campaign.verify.winner import Winner
from intop.domain.ranking import Ranking
from intop.domain.training import Training
from intop.errors import ResultMissingError
from intop.run.context import Task


def promised(task: Task, winner: Winner, purpose: str) -> tuple[str, ...]:
    """Return the winner's changes, ranked by the effect that the models predict, largest first.

    The effect is log latency without a change less that with it, in the winner and beside the
    default together. An explanation ranks by the same sum when it measures all changes. Empty where
    there are no models of latency by trees. `purpose` seeds the fit. Raises what `learned_samples`
    does but ResultMissingError.
    """
    import numpy as np

    from intop.learn.families import FAMILIES
    from intop.learn.surrogate import fit_trees

    training = task.store.get(task.subject, Training)
    if training is None or training.objective == "component":
        return ()
    if not any(FAMILIES[fitted.family].is_tree for fitted in training.fitted):
        return ()
    try:
        space, samples, _ = learned_samples(task, training)
    except ResultMissingError:
        return ()  # a training that was stored without its trials
    predictor = fit_trees(training.fitted, samples, task.seed(purpose))
    names, whole = winner.names, frozenset(winner.names)
    nothing: Changes = frozenset()
    sets = [nothing, whole, *(whole - {n} for n in names), *(frozenset({n}) for n in names)]
    log_latency = predictor(space.values([winner.with_only(changes) for changes in sets]))
    default, full = log_latency[:2]
    left_out, alone = np.split(log_latency[2:], 2)
    effects = (left_out - full) + (default - alone)
    return tuple(names[n] for n in np.argsort(-effects, kind="stable"))


def by_evidence(task: Task, winner: Winner) -> tuple[str, ...]:
    """Return all of the winner's changes: first those that the screening found to act.

    Then come hinted ones, then the others. Within each of these the models' order stands, or, where
    there are no models, the screening's.
    """
    ranking = task.store.get(task.subject, Ranking)
    screening = ranking.screening if ranking else None
    acting = screening.keys("chosen") if screening else ()
    hinted = screening.hinted if screening else ()
    by_importance = [i.key for i in ranking.importances] if ranking else []
    order = promised(task, winner, "trim")

    def place(name: str) -> tuple[int, int]:
        keys = winner.changes[name]
        tier = 0 if {*keys} & {*acting} else 1 if {*keys} & {*hinted} else 2
        if order:
            return tier, order.index(name)
        ranks = [by_importance.index(key) for key in keys if key in by_importance]
        return tier, min(ranks, default=len(by_importance))

    return tuple(sorted(winner.names, key=place))
