"""contest: the host's own values, baselines and the tuned configuration against each other."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from intop.campaign.baselines import chosen_baselines, fit, try_out
from intop.campaign.pilot.stage import timed
from intop.document.columns import Column, numbers
from intop.document.model import Section, tabled
from intop.domain.baseline import HOST, TUNED, Baseline
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.multi_arm import Contest, Contestant
from intop.domain.rounds import Cells, cell, compare, planned_rounds
from intop.domain.stats import bonferroni
from intop.domain.trial import Trial, judged_by
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.run.context import Task
from intop.run.experiment import Experiment, go_on_together
from intop.run.prospect import Prospect
from intop.run.stage import Expected
from intop.run.testbed import Testbed
from intop.words import counted, few, percent

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class ContestRequest:
    """The options of a contest."""

    names: tuple[str, ...] = ()
    """The baselines that take part; all of them where none is named."""
    rounds: int | None = None
    """Measurements of each; None is the planned number, else that of a verdict's pairs."""
    reference: str = HOST
    """The entrant that the others are compared with."""
    again: bool = False
    """Whether it is measured again where it is finished, or was planned otherwise."""


@dataclass(frozen=True, kw_only=True)
class Entrants:
    """The entrants of one machine."""

    task: Task
    entries: tuple[Contestant | Baseline, ...]
    """All entrants in the order of the table. Baselines are cut to what the host takes."""
    are_merged: bool = False
    """Whether all equal configurations are measured once, not only those that change nothing."""

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """The entrants that the host may not take as they are."""
        return tuple(entry for entry in self.entries if isinstance(entry, Baseline))

    def contestants(self) -> list[Contestant]:
        """Return all of them, with nothing measured. The host must have been probed."""
        contestants: list[Contestant] = []
        first: dict[str, str] = {}
        for entry in self.entries:
            fresh = self._fitted(entry) if isinstance(entry, Baseline) else entry
            known = first.setdefault(fresh.configuration.digest, fresh.name)
            is_merged = self.are_merged or fresh.configuration.is_default
            same_as = known if is_merged and known != fresh.name else ""
            contestants.append(replace(fresh, same_as=same_as))
        return contestants

    def _fitted(self, baseline: Baseline) -> Contestant:
        fitted = fit(self.task, baseline)
        return Contestant(
            name=baseline.name,
            title=baseline.title,
            configuration=fitted.configuration,
            keys=len(baseline.values),
            already=len(fitted.already),
            left_out=dict(fitted.left_out),
        )


def entrant(name: str, title: str, configuration: Configuration) -> Contestant:
    """Return a contestant that the host takes as it is."""
    return Contestant(
        name=name,
        title=title,
        configuration=configuration,
        keys=len(configuration.values),
        already=0,
        left_out={},
    )


HOSTS_OWN = entrant(HOST, "the host's own values", DEFAULT)


class Contesting(Experiment[R]):
    """Entrants in interleaved rounds. One that equals an earlier one is not measured apart."""

    entrants: Entrants

    def cells(self) -> Cells:
        return [
            cell(contestant.name, contestant.configuration)
            for contestant in self.entrants.contestants()
            if not contestant.same_as
        ]

    def prepare(self, testbed: Testbed) -> None:
        try_out(self.task, testbed, self.entrants.baselines)


class MultiArm(Contesting[Contest]):
    """The host's own values, baselines and the tuned configuration in interleaved rounds.

    Entrants are the host's own values ("default"), the named baselines (or all), and, once there
    is a verdict, its configuration ("tuned"). What the kernel does not take of a baseline is left
    out of it. One that fails all the same has failed, and the others go on. `again` plans a new
    series of rounds, unless the last one is the same and not finished yet; earlier ones stay in
    the store.
    Raises UsageError for an unknown name, or when the campaign's contest was planned otherwise.
    """

    name = "contest"
    description = "published sets of values against each other"
    command = "contest"
    result_type = Contest

    def __init__(self, task: Task, request: ContestRequest) -> None:
        super().__init__(task)
        verdict = task.store.get(task.subject, Verdict)
        baselines = chosen_baselines(task.context.study, request.names)
        self.entrants = Entrants(task=task, entries=(HOSTS_OWN, *baselines, *_tuned(verdict)))
        self._reference = request.reference
        self._check_reference()
        self.rounds = request.rounds or self.budget.judge_pairs
        go_on_together([self], request.rounds, again=request.again, command=self.command)
        if verdict is None:
            task.context.progress.say(
                f"{task.title}: there is no verdict yet, so the contest is without a tuned "
                f"configuration (intop tune finds one)"
            )
        self.task = timed(task)

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        request = prospect.requested(ContestRequest) or ContestRequest()
        # The host's own values and the winner meet them.
        arms = len(chosen_baselines(prospect.study, request.names)) + 2
        return Expected(trials=arms * prospect.budget.judge_pairs)

    def result(self, trials: Sequence[Trial]) -> Contest:
        contestants, reference = self.entrants.contestants(), self._reference
        if any(c.name == reference and c.same_as for c in contestants):
            self.task.context.progress.say(
                f"{self.task.title}: {reference} changes nothing on this host, so the others are "
                f"judged against the host's own values"
            )
            reference = HOST
        return with_results(contestants, trials, reference, self.budget.level)

    def _check_reference(self) -> None:
        """Raises UsageError for one that takes no part."""
        names = [entry.name for entry in self.entrants.entries]
        if self._reference not in names:
            raise UsageError(
                f"{self.task.title}: {self._reference} is no entrant of this contest, so it can't "
                f"be its default; there are {', '.join(names)}"
            )


def _tuned(verdict: Verdict | None) -> tuple[Contestant, ...]:
    if verdict is None:
        return ()
    title = f"this campaign's configuration ({verdict.origin})"
    return (entrant(TUNED, title, verdict.configuration),)


def with_results(
    contestants: Sequence[Contestant], trials: Sequence[Trial], reference: str, level: float
) -> Contest:
    """Return the contestants with their trials, compared with one of them."""
    comparisons = sum(not c.same_as and c.name != reference for c in contestants)
    ratio_level = bonferroni(level, comparisons)
    names = [contestant.name for contestant in contestants]
    arms = compare(trials, names, reference, level=level, ratio_level=ratio_level)
    return Contest(
        contestants=tuple(
            replace(
                contestant,
                is_reference=name == reference,
                judged_ms=arms[name].judged_ms,
                ratio=arms[name].ratio,
                failures=arms[name].failures,
                detail=arms[name].problem,
            )
            for name, contestant in zip(names, contestants, strict=True)
        ),
        reference=reference,
        rounds=planned_rounds([trial.planned for trial in trials]),
        level=level,
        ratio_level=ratio_level,
        judged_by=judged_by(trials),
    )


# The document -------------------------------------------------------------------------------------


def contest_section(title: str, contest: Contest) -> Section:
    """Return all contestants as a table, with what of each baseline the host can't have."""
    together = (
        f" The intervals of the ratios hold all together at {percent(contest.level)} "
        f"(Bonferroni); those of {contest.judged_by} each for itself."
    )
    are_several = sum(c.ratio is not None for c in contest.contestants) > 1
    ratio_level = percent(contest.ratio_level)
    return tabled(
        f"{title}: contest, {contest.rounds} interleaved rounds",
        (
            Column("contestant", "text"),
            *numbers(
                "keys changed",
                f"{contest.judged_by} ({percent(contest.level)} interval)",
                f"{contest.judged_by} of {contest.reference} / its own ({ratio_level} interval)",
            ),
            Column("outcome", "text"),
        ),
        (
            (c.name, _keys(c), _latency(c), str(c.ratio or "-"), c.outcome)
            for c in contest.contestants
        ),
        [
            f"Above 1 is better than {contest.reference}.{together if are_several else ''}",
            *(line for contestant in contest.contestants for line in _notes(contestant)),
        ],
    )


def _notes(contestant: Contestant) -> Iterator[str]:
    name, left_out, already = contestant.name, contestant.left_out, contestant.already
    if contestant.failures:
        yield f"{name}: {counted(contestant.failures, 'trial')} failed: {contestant.detail}"
    if left_out or already:
        parts = [f"{already} of {contestant.keys} so already", *_reasons(left_out)]
        yield f"{name} ({contestant.title}): {'; '.join(parts)}"


def _reasons(left_out: Mapping[str, str]) -> list[str]:
    """Return what is left out, by kind of reason; some keys stand for all of them."""
    keys: dict[str, list[str]] = defaultdict(list)
    for key, reason in left_out.items():
        keys[reason.partition(": ")[0]].append(key)
    return [f"left out {len(k)} ({reason}): {few(k, 2)}" for reason, k in keys.items()]


def _keys(contestant: Contestant) -> str:
    changed = len(contestant.configuration.values)
    return f"{changed} of {contestant.keys}" if contestant.keys else "-"


def _latency(contestant: Contestant) -> str:
    ms = contestant.judged_ms
    return "-" if ms is None else f"{ms.value:.1f} ms ({ms.low:.1f} to {ms.high:.1f})"
