"""The study's baselines, as the stages use them."""

from collections.abc import Iterable, Sequence

from intop.config.study import Study
from intop.domain.baseline import HOST, NONE_REFUSED, TUNED, Baseline, Fitted, Refusals, fitted
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.verdict import Verdict
from intop.errors import ResultMissingError, UsageError
from intop.run.available_space import stored_probed
from intop.run.context import Task
from intop.run.testbed import Testbed


def chosen_baselines(study: Study, names: Sequence[str]) -> tuple[Baseline, ...]:
    """Return the named baselines, all of them for no names. Raises UsageError for others."""
    for name in names:
        if name not in study.baselines:
            raise UsageError(
                f"there is no baseline {name}; there are {', '.join(study.baselines)}. "
                f"Another is a file NAME.toml in a folder that [study] baselines names"
            )
    return tuple(study.baselines[name] for name in dict.fromkeys(names or study.baselines))


def fit(task: Task, baseline: Baseline) -> Fitted:
    """Return a baseline on the task's host as probed. Raises ResultMissingError before that."""
    probed = stored_probed(task)
    if probed is None:
        raise ResultMissingError(f"{task.title}: the host was not looked at yet")
    former = task.context.study.catalogue.former
    return fitted(baseline, probed, _refusals(task), former)


def base_of(task: Task, against: str) -> Configuration:
    """Return what a verdict's default applied, by the name that it is `against`, if any.

    Raises what `chosen_baselines` and `fit` do.
    """
    if not against:
        return DEFAULT
    (baseline,) = chosen_baselines(task.context.study, (against,))
    return fit(task, baseline).configuration


def both_sides(task: Task, verdict: Verdict | None) -> dict[str, Configuration]:
    """Return the arms of a verdict: its default, and its winner. Raises what `base_of` does.

    Without a verdict there are the host's own values alone.
    """
    if verdict is None:
        return {HOST: DEFAULT}
    default = base_of(task, verdict.against)
    return {verdict.against or HOST: default, TUNED: verdict.configuration}


def try_out(task: Task, testbed: Testbed, baselines: Iterable[Baseline]) -> None:
    """Find out, and store, which of their values the kernel does not take.

    Which they are can't be known before: a kernel's own limits are in no file below /proc/sys.
    """
    for baseline in baselines:
        while (refusal := testbed.refusal(fit(task, baseline).configuration)) is not None:
            known = _refusals(task).with_one(refusal.key, refusal.value, refusal.got or "")
            task.store.put(task.subject, known)


def _refusals(task: Task) -> Refusals:
    return task.store.get(task.subject, Refusals) or NONE_REFUSED
