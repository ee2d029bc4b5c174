"""transfer: what one architecture's measurements are worth on another, both ways."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from intop.campaign.pilot.stage import timed
from intop.document.columns import Column, numbers
from intop.document.model import Notes, Section, tabled
from intop.domain.baseline import HOST, Baseline
from intop.domain.comparison import AT_FULL_SPEED
from intop.domain.configuration import Configuration
from intop.domain.multi_arm import COMPROMISE, Compromise, Contest, Contestant, Crosswise
from intop.domain.stats import Interval
from intop.domain.trial import Trial
from intop.domain.verdict import Verdict
from intop.domain.workload import Workload
from intop.errors import ResultMissingError
from intop.experiment.contest.stage import (
    HOSTS_OWN,
    Contesting,
    Entrants,
    contest_section,
    entrant,
    with_results,
)
from intop.experiment.transfer.warm_start import WarmStart
from intop.run import prerequisites
from intop.run.context import Context, Task
from intop.run.executor import execute
from intop.run.experiment import go_on_together
from intop.run.prospect import Prospect
from intop.run.stage import Expected
from intop.store import Subject
from intop.words import few

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """A configuration on all machines: its ratios to the default of each, as measured."""

    name: str
    ratios: dict[str, Interval | None]
    arch: str | None
    """The machine on which it gains least, None where it could not be measured on each of them."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Two architectures under one workload."""

    workload: str
    warm_starts: tuple[WarmStart, ...]
    """The worth of stored trials, both ways."""
    crosswise: tuple[Crosswise, ...]
    """The measurements of each architecture, or empty."""
    worst_cases: tuple[WorstCase, ...]
    compromise: Compromise | None
    missing: tuple[str, ...]
    """Lines that say what could not be done, and what to do about it."""


def transfer(
    context: Context,
    archs: Pair,
    workload: Workload,
    *,
    measure: bool = True,
    rounds: int | None = None,
    again: bool = False,
) -> Transfer:
    """Return what two architectures are worth to each other under one workload.

    Warm starts come from stored trials. Unless `measure` is false, each machine then measures its
    default, both winners and a compromise, one machine after the other. What lacks something that
    it needs is left out, and named. Raises ResultMissingError where that is all of it, UsageError
    when the measurement was planned otherwise.
    """
    subjects = [Subject(campaign=context.campaign, arch=a, workload=workload.name) for a in archs]
    tasks = [Task(context=context, subject=subject, workload=workload) for subject in subjects]
    from intop.experiment.transfer.warm_starts import warm_starts

    warm, lacking_trials = warm_starts(tasks)
    verdicts, lacking_verdicts = _verdicts(tasks) if measure else ({}, [])
    crosswise: list[Crosswise] = []
    agreed: Compromise | None = None
    missing: list[str] = []
    if measure and not lacking_verdicts:
        agreed, missing = _agreed(tasks, verdicts, again=again)
        crosswise = _measured(tasks, verdicts, agreed, rounds, again=again)
    # What is missing for a verdict includes what is missing before it.
    named = {error.about for error in lacking_verdicts}
    lacking = [error for error in lacking_trials if error.about not in named] + lacking_verdicts
    missing += prerequisites.lines(context.study, lacking, f"transfer {' '.join(archs)}")
    if not warm and not crosswise:
        raise ResultMissingError("\n".join(missing))
    return Transfer(
        workload=workload.name,
        warm_starts=tuple(warm),
        crosswise=tuple(crosswise),
        worst_cases=worst_cases(crosswise),
        compromise=agreed if crosswise else None,
        missing=tuple(missing),
    )


def _verdicts(tasks: Sequence[Task]) -> tuple[dict[str, Verdict], list[ResultMissingError]]:
    """Return the verdicts by architecture, and an error for each that there is not."""
    verdicts: dict[str, Verdict] = {}
    missing: list[ResultMissingError] = []
    for task in tasks:
        verdict = task.store.get(task.subject, Verdict)
        if verdict is None:
            why = "there is no verdict yet, so no winner to measure"
            missing.append(prerequisites.missing(task, why, "verify"))
        else:
            verdicts[task.subject.arch] = verdict
    return verdicts, missing


def _agreed(
    tasks: Sequence[Task], verdicts: Mapping[str, Verdict], *, again: bool
) -> tuple[Compromise | None, list[str]]:
    """Return the stored compromise, or `again` a new one; or why there is none."""
    stored = tasks[0].store.get(tasks[0].subject, Compromise)
    if stored is not None and not again:
        return stored, []
    from intop.experiment.transfer.compromise import compromise

    agreed, why = compromise(tasks, [verdict.configuration for verdict in verdicts.values()])
    if agreed is not None:
        for task in tasks:
            task.store.put(task.subject, agreed)
    return agreed, why


# The measurement ----------------------------------------------------------------------------------


class Crossing(Contesting[Crosswise]):
    """A machine's default, both winners and the compromise in interleaved rounds.

    The rounds are of a series that both machines have.
    """

    name = "transfer"
    description = "winners on the other architecture"
    command = "transfer"
    result_type = Crosswise
    needs = ("judge",)

    def __init__(self, task: Task, entrants: Entrants, rounds: int | None) -> None:
        super().__init__(timed(task))
        self.entrants = entrants
        self.rounds = rounds or self.budget.judge_pairs

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        """The default, both winners and the compromise."""
        return Expected(trials=4 * prospect.budget.judge_pairs)

    def result(self, trials: Sequence[Trial]) -> Crosswise:
        return Crosswise(
            arch=self.task.subject.arch,
            emulation=trials[0].conditions.emulation,
            contest=with_results(self.entrants.contestants(), trials, HOST, self.budget.level),
        )


def _measured(
    tasks: Sequence[Task],
    verdicts: Mapping[str, Verdict],
    agreed: Compromise | None,
    rounds: int | None,
    *,
    again: bool,
) -> list[Crosswise]:
    """Measure on one machine after the other. Raises what `go_on_together` and `execute` do."""
    stages = [Crossing(task, _entrants(task, verdicts, agreed), rounds) for task in tasks]
    command = f"transfer {' '.join(verdicts)}"
    go_on_together(stages, rounds, again=again, command=command)
    return [execute(stage) for stage in stages]


def _entrants(task: Task, verdicts: Mapping[str, Verdict], agreed: Compromise | None) -> Entrants:
    """Return a machine's own winner, and what is foreign to it."""
    arch = task.subject.arch
    own = verdicts[arch]
    foreign = [
        _foreign(winner(name), "the other machine's verdict", verdict.configuration)
        for name, verdict in verdicts.items()
        if name != arch
    ]
    if agreed is not None:
        foreign.append(_foreign(COMPROMISE, "good on both, by the models", agreed.configuration))
    title = f"its own verdict ({own.origin})"
    return Entrants(
        task=task,
        entries=(HOSTS_OWN, entrant(winner(arch), title, own.configuration), *foreign),
        are_merged=True,
    )


def winner(arch: str) -> str:
    """Return the name of an architecture's winner, wherever it is measured."""
    return f"{arch} winner"


def _foreign(name: str, title: str, configuration: Configuration) -> Baseline:
    """Return what another machine has found, as values to be cut to what this one takes."""
    return Baseline(name=name, title=title, source="intop", values=configuration.values)


# The comparison -----------------------------------------------------------------------------------


def worst_cases(crosswise: Sequence[Crosswise]) -> tuple[WorstCase, ...]:
    """Return what was measured, by its least ratio over all machines, without the default."""
    by_arch = {
        machine.arch: {c.name: _ratio(machine.contest, c) for c in machine.contest.contestants}
        for machine in crosswise
    }
    cases: list[WorstCase] = []
    for name in dict.fromkeys(name for ratios in by_arch.values() for name in ratios):
        ratios = {arch: by_name.get(name) for arch, by_name in by_arch.items()}
        known = {arch: ratio.value for arch, ratio in ratios.items() if ratio is not None}
        if known:
            least = min(known, key=known.__getitem__) if len(known) == len(by_arch) else None
            cases.append(WorstCase(name=name, ratios=ratios, arch=least))
    return tuple(cases)


def _ratio(contest: Contest, contestant: Contestant) -> Interval | None:
    """Return the ratio of a contestant, or of the one that was measured in its place.

    One that changes nothing is the default: 1, for certain.
    """
    if contestant.same_as:
        contestant = next(c for c in contest.contestants if c.name == contestant.same_as)
        if contestant.is_reference:
            return Interval(1.0, 1.0, 1.0)
    return contestant.ratio


# The document -------------------------------------------------------------------------------------


def transfer_sections(transfer: Transfer) -> Iterator[Section]:
    """Return models, measurements, worst cases, and what is missing of one workload."""
    for warm_start in transfer.warm_starts:
        yield _warm_start(transfer.workload, warm_start)
    for machine in transfer.crosswise:
        carried = machine.emulation
        emulated = "" if carried in AT_FULL_SPEED else f", emulated by {carried}"
        title = f"{machine.arch} {transfer.workload}{emulated}"
        yield contest_section(title, machine.contest)
    if transfer.crosswise:
        yield _worst_cases(transfer)
    if transfer.missing:
        yield Section(title="Not done", blocks=(Notes(transfer.missing),))


def _warm_start(workload: str, warm: WarmStart) -> Section:
    here, there = warm.configurations
    most = warm.curve[-1].configurations
    shares = ", ".join(f"{way} {100 * share:.0f} %" for way, share in warm.shares.items())
    common = f"{len(warm.common)} parameters in common"
    return tabled(
        f"{warm.target} {workload}: warm start from {warm.source}: held-out error "
        f"({warm.family}, {warm.repeats} repeats)",
        numbers(
            "configurations",
            "from scratch",
            f"with {there} of {warm.source}",
            "as good as from scratch",
        ),
        (
            (
                str(point.configurations),
                f"{point.scratch:.1f} %",
                f"{point.warm:.1f} %",
                f"more than {most}" if point.worth is None else f"{point.worth:.0f}",
            )
            for point in warm.curve
        ),
        [
            f"{here} configurations of {warm.target}; {common}: {few(warm.common) or 'none'}",
            f"shares of the warm model with {most}: {shares}",
            *([f"varied on {warm.target} only: {few(warm.own)}"] if warm.own else []),
        ],
    )


def _worst_cases(transfer: Transfer) -> Section:
    archs = [machine.arch for machine in transfer.crosswise]
    lines = ["Default latency / its own, as measured above; each machine against its own default."]
    if (agreed := transfer.compromise) is not None:
        ratios = " and ".join(f"{ratio:.2f} on {arch}" for arch, ratio in agreed.ratios.items())
        lines.append(f"The models had predicted {ratios} for the compromise:")
        lines += [f"  {key} = {value}" for key, value in agreed.configuration.values.items()]
        if agreed.left_out:
            lines.append(f"left out of it: {few(list(agreed.left_out))}")
    return tabled(
        f"{' and '.join(archs)} {transfer.workload}: measured gain, crosswise",
        (
            Column("configuration", "text"),
            *numbers(*(f"on {arch}" for arch in archs)),
            Column("worst", "text"),
        ),
        (
            (case.name, *(str(case.ratios[arch] or "-") for arch in archs), _worst(case))
            for case in transfer.worst_cases
        ),
        lines,
    )


def _worst(case: WorstCase) -> str:
    least = case.ratios[case.arch] if case.arch is not None else None
    return "-" if least is None else f"{least.value:.2f} on {case.arch}"
