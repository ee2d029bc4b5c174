"""Warm start: trials of earlier campaigns that also say something of this one's space."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from intop.domain.probing import Probe
from intop.domain.ranking import Ranking
from intop.domain.space import Space
from intop.domain.trial import Trial
from intop.run.comparability import COMMON, defaults_changed, nginx_changed
from intop.run.context import Task

SHOWN = 3
"""Reasons in one line; a study that was moved to other hosts has dozens."""


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """Trials of earlier campaigns, and remarks on them and on those that are left out."""

    trials: tuple[Trial, ...] = ()
    """The trials that are taken into account."""
    remarks: tuple[str, ...] = ()

    @property
    def usable(self) -> list[Trial]:
        """The trials that models learn from; the others failed, and are known to."""
        return [t for t in self.trials if t.usable]


def warm_start(task: Task, space: Space, last: Trial) -> WarmStart:
    """Return what earlier campaigns measured of this space under the last trial's conditions.

    Only campaigns that began before this one count, so that it is the same however often this one
    is resumed. A campaign is left out where its conditions or the default's values were others, or
    where it varied other parameters.
    """
    if not task.context.study.warm_start:
        return WarmStart()
    kept: list[Trial] = []
    remarks: list[str] = []
    for campaign in task.store.earlier(task.subject.campaign):
        then = replace(task, subject=replace(task.subject, campaign=campaign))
        trials = [t for t in then.trials("collect", "refine") if t.usable or t.status == "failed"]
        if not any(t.usable for t in trials):
            continue
        name = f"campaign {campaign.id} of {campaign.started_at}"
        if why := _obstacles(task, then, space, last, trials):
            more = f" and {len(why) - SHOWN} more" if len(why) > SHOWN else ""
            remarks.append(
                f"{len(trials)} trials of {name} are left out (then against now): "
                f"{', '.join(why[:SHOWN])}{more}"
            )
            continue
        inside = _inside(space, trials)
        beyond = len(trials) - len(inside)
        remarks.append(
            f"{len(inside)} trials of {name} are taken into account"
            + (f", {beyond} are left out, which the space does not have by now" if beyond else "")
        )
        kept += inside
    return WarmStart(trials=tuple(kept), remarks=tuple(remarks))


def _obstacles(
    task: Task, then: Task, space: Space, last: Trial, trials: Sequence[Trial]
) -> list[str]:
    """Return why the trials of then can't be mixed with those of now, a phrase each."""
    reasons = trials[-1].conditions.differences(last.conditions, COMMON)
    reasons += nginx_changed(trials, last.conditions, last.replica)
    before, now = (t.store.get(t.subject, Probe) for t in (then, task))
    if before is not None and now is not None:
        reasons += defaults_changed(task, before, now)
    # Each trial leaves most of the open parameters at their defaults.
    ranking = then.store.get(then.subject, Ranking)
    varied = {key for t in trials for key in t.configuration.values}
    varied |= set(ranking.space if ranking else ())
    wanted = {p.key for p in space.parameters}
    reasons += [f"{key}: varied against not varied" for key in sorted(varied - wanted)]
    reasons += [f"{key}: not varied against varied" for key in sorted(wanted - varied)]
    return reasons


def _inside(space: Space, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of configurations that the space still has: its ranges may have changed.

    A parameter that a configuration does not name has its default.
    """
    values = space.values([t.configuration for t in trials])
    same = (space.decode(space.genes(values)) == values).all(axis=1)
    named = [
        t.configuration.values.items() <= c.values.items()
        for t, c in zip(trials, space.configurations(values), strict=True)
    ]
    is_in = np.asarray(same) & np.asarray(named)
    return [t for t, has in zip(trials, is_in, strict=True) if has or t.configuration.is_default]
