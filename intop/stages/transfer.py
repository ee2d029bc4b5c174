"""transfer: what one architecture's measurements are worth on another, both ways."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from intop.domain.baseline import HOST, Baseline, Fitted
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.encoding import Matrix
from intop.domain.multi_arm import Contestant
from intop.domain.space import Space
from intop.domain.training import Training
from intop.domain.transfer import (
    COMPROMISE,
    Compromise,
    Crosswise,
    CurvePoint,
    Transfer,
    WarmStart,
    common_parameters,
    winner,
    worst_cases,
    worth,
)
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.domain.workload import Workload
from intop.errors import ResultMissingError, UsageError
from intop.learn import accuracy
from intop.learn.families import FAMILIES
from intop.learn.parallel import each, one_thread
from intop.learn.preprocess import Hyperparameters
from intop.learn.samples import Samples, Vector
from intop.learn.searching.search import search as global_search
from intop.learn.surrogate import fit, fit_trees, predicted
from intop.learn.transfer import Prior, prior, warm_start
from intop.run import prerequisites
from intop.run.available_space import stored_probed
from intop.run.context import Context, Task
from intop.run.executor import execute
from intop.run.testbed import Testbed
from intop.stages.baselines import fit as fitted_to_host
from intop.stages.baselines import try_out
from intop.stages.blocks import (
    Arms,
    InRounds,
    is_finished,
    latest_series,
    planned_arms,
    planned_rounds,
)
from intop.stages.collected import collected_samples, learned_samples
from intop.stages.contest import judged
from intop.stages.pilot import timed
from intop.store import Subject

SIZES = (10, 15, 20, 30, 40, 60, 80, 120)
"""Rows of the target, as far as there are so many and HELD_OUT more."""
HELD_OUT = 8
REPEATS = 10
FAMILY = "RFR"
"""Where nothing is trained yet: quick, and hard to upset."""

Pair = tuple[str, str]


def transfer(
    context: Context,
    archs: Pair,
    workload: Workload,
    *,
    measure: bool = True,
    rounds: int | None = None,
    again: bool = False,
) -> Transfer:
    """What two architectures are worth to each other under one workload.

    Warm starts come from stored trials. Unless `measure` is false, each machine then measures its
    default, both winners and a compromise, one machine after the other. What lacks something that
    it needs is left out, and named. Raises ResultMissingError where that is all of it, UsageError
    when the measurement was planned otherwise.
    """
    made, lacking_trials = warm_starts(context, archs, workload)
    tasks = [_task(context, arch, workload) for arch in archs]
    lacking_verdicts = _without_verdict(tasks) if measure else []
    crosswise: list[Crosswise] = []
    agreed = tasks[0].store.get(tasks[0].subject, Compromise)
    missing: list[str] = []
    if measure and not lacking_verdicts:
        if agreed is None or again:
            agreed, why = _compromise(tasks)
            missing += why
            if agreed is not None:
                for task in tasks:
                    task.store.put(task.subject, agreed)
        crosswise = _measured(tasks, agreed, rounds, again=again)
    # What is missing for a verdict includes what is missing before it.
    named = {error.about for error in lacking_verdicts}
    lacking = [e for e in lacking_trials if e.about not in named] + lacking_verdicts
    missing += prerequisites.lines(context.study, lacking, f"transfer {' '.join(archs)}")
    if not made and not crosswise:
        raise ResultMissingError("\n".join(missing))
    return Transfer(
        workload=workload.name,
        warm_starts=tuple(made),
        crosswise=tuple(crosswise),
        worst_cases=worst_cases(crosswise),
        compromise=agreed if crosswise else None,
        missing=tuple(missing),
    )


def _task(context: Context, arch: str, workload: Workload) -> Task:
    subject = Subject(campaign=context.campaign, arch=arch, workload=workload.name)
    return Task(context=context, subject=subject, workload=workload)


def _verdict(task: Task) -> Verdict:
    """Raises ResultMissingError before there is one."""
    verdict = task.store.get(task.subject, Verdict)
    if verdict is None:
        raise prerequisites.missing(
            task, "there is no verdict yet, so no winner to measure", "verify"
        )
    return verdict


def _without_verdict(tasks: Sequence[Task]) -> list[ResultMissingError]:
    """An error for each."""
    found: list[ResultMissingError] = []
    for task in tasks:
        try:
            _verdict(task)
        except ResultMissingError as error:
            found.append(error)
    return found


# Models -------------------------------------------------------------------------------------------


def warm_starts(
    context: Context, archs: Pair, workload: Workload
) -> tuple[list[WarmStart], list[ResultMissingError]]:
    """What each one's trials are worth for models of the other, and what is missing for that."""
    tasks = [_task(context, arch, workload) for arch in archs]
    known: list[Samples] = []
    missing: list[ResultMissingError] = []
    for task in tasks:
        try:
            known.append(collected_samples(task)[1])
        except ResultMissingError as error:
            missing.append(error)
    if missing:
        return [], missing
    made: list[WarmStart] = []
    for one, other in ((0, 1), (1, 0)):
        source, target = tasks[one], tasks[other]
        if len(known[other]) < SIZES[0] + HELD_OUT:
            why = (
                f"{len(known[other])} configurations are too few to say what "
                f"{source.subject.arch}'s are worth; at least {SIZES[0] + HELD_OUT}"
            )
            missing.append(prerequisites.missing(target, why, "collect"))
        else:
            made.append(_warm_start(source, target, known[one], known[other]))
    return made, missing


def _warm_start(source: Task, target: Task, known: Samples, rows: Samples) -> WarmStart:
    family, chosen = _family(target)
    _, of_source = _family(source, family)
    seed = target.seed("transfer", source.subject.arch)
    told = prior(family, rows.variables, known, seed, of_source)
    sizes = [n for n in SIZES if n + HELD_OUT <= len(rows)]
    progress = target.context.progress
    progress.begin(f"{target.title}: warm start from {source.subject.arch}", REPEATS)
    found: list[tuple[list[tuple[float, float]], dict[str, float]]] = []
    jobs = [(family, chosen, rows, told, sizes, seed + n) for n in range(REPEATS)]
    try:
        for one in each(_curve, jobs, dask=target.context.dask):
            found.append(one)
            progress.step(family)
    finally:
        progress.end()
    scratch, warm = np.mean([errors for errors, _ in found], axis=0).T.tolist()
    shares = [by_way for _, by_way in found]
    common = {told.variables[here].key for here, _ in told.pairs}
    return WarmStart(
        source=source.subject.arch,
        target=target.subject.arch,
        family=family,
        common=tuple(dict.fromkeys(v.key for v in rows.variables if v.key in common)),
        own=tuple(dict.fromkeys(v.key for v in rows.variables if v.key not in common)),
        configurations=(len(rows), len(known)),
        repeats=REPEATS,
        curve=tuple(
            CurvePoint(configurations=n, scratch=s, warm=w, worth=worth(sizes, scratch, w))
            for n, s, w in zip(sizes, scratch, warm, strict=True)
        ),
        shares={way: float(np.mean([by_way[way] for by_way in shares])) for way in shares[0]},
    )


def _family(task: Task, wanted: str = "") -> tuple[str, Hyperparameters]:
    """The best family that was trained, or the wanted one, with its hyper-parameters."""
    training = task.store.get(task.subject, Training)
    name = wanted or (training.best if training else "") or FAMILY
    fitted = {f.family: f.hyperparameters for f in training.fitted} if training else {}
    return name, dict(fitted.get(name, FAMILIES[name].defaults))


def _curve(
    family: str,
    hyperparameters: Hyperparameters,
    rows: Samples,
    told: Prior,
    sizes: Sequence[int],
    seed: int,
) -> tuple[list[tuple[float, float]], dict[str, float]]:
    """Errors from scratch and warm by size, on the same rows; the shares of the largest size."""
    order = np.random.default_rng(seed).permutation(len(rows))
    others = rows.rows(order[sizes[-1] :])
    errors: list[tuple[float, float]] = []
    shares: dict[str, float] = {}
    for size in sizes:
        part = rows.rows(order[:size])
        with one_thread():
            built = FAMILIES[family].build(rows.variables, hyperparameters, seed)
            cold = predicted(fit(built, part), others.values)
        warm = warm_start(family, part, told, seed, hyperparameters)
        guesses = (cold, warm(others.values))
        one, other = (accuracy.mape(others.log_target, guess) for guess in guesses)
        errors.append((one, other))
        shares = dict(warm.shares)
    return errors, shares


# The compromise -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """One machine's models, asked about configurations of the common space.

    A parameter that they don't know is without effect to them: its screening found none.
    """

    arch: str
    predict: Callable[[Matrix], Vector]
    space: Space
    common: Space

    def log_ratio(self, values: Matrix) -> Vector:
        """Predicted log P99 (n,) less that of the machine's default."""
        default = self.space.values([DEFAULT])
        own = np.repeat(default, len(values), axis=0)
        places = {variable.name: n for n, variable in enumerate(self.common.variables)}
        for n, mine in enumerate(self.space.variables):
            if (place := places.get(mine.name)) is not None:
                # All that is common is known to both, so nothing is unheard of.
                theirs = self.common.variables[place]
                own[:, n] = theirs.in_terms_of(mine, values[:, place], np.nan)
        return self.predict(own) - self.predict(default)


def _compromise(tasks: Sequence[Task]) -> tuple[Compromise | None, list[str]]:
    """The configuration whose worst predicted log ratio is lowest, or lines that say why none.

    Of the parameters that the models of one machine know, at least, and that both offer.
    """
    seen: list[tuple[Task, Space, Samples, Training]] = []
    missing: list[str] = []
    for task in tasks:
        training = task.store.get(task.subject, Training)
        if training is None:
            missing.append(
                f"{task.title}: no models yet, so no compromise is sought: intop train --arch "
                f"{task.subject.arch} --workload {task.workload.name}"
            )
            continue
        space, samples, _ = learned_samples(task, training)
        seen.append((task, space, samples, training))
    if missing:
        return None, missing
    common, left_out = _common_space(tasks, [space for _, space, _, _ in seen])
    title = f"{' and '.join(t.subject.arch for t in tasks)} {tasks[0].workload.name}"
    if common is None:
        return None, [f"{title}: no compromise: no tuned parameter can be set on both alike"]
    machines = [
        _Seen(
            task.subject.arch,
            fit_trees(training.fitted, samples, task.seed("search")),
            space,
            common,
        )
        for task, space, samples, training in seen
    ]
    winners = [_verdict(task).configuration for task in tasks]
    budget = tasks[0].context.study.budget
    found = global_search(
        common,
        lambda values: np.max([one.log_ratio(values) for one in machines], axis=0),
        model=COMPROMISE,
        seed=tasks[0].seed("compromise"),
        population=budget.population,
        generations=budget.generations,
        patience=budget.patience,
        start=common.genes(common.values(winners)),
    )
    configuration = found.candidates[0].configuration
    values = common.values([configuration])
    ratios = {one.arch: float(np.exp(-one.log_ratio(values)[0])) for one in machines}
    return Compromise(configuration=configuration, ratios=ratios, left_out=left_out), []


def _common_space(
    tasks: Sequence[Task], spaces: Sequence[Space]
) -> tuple[Space | None, dict[str, str]]:
    """What both machines offer of the parameters that one was tuned by, and what is left out."""
    offers = [probed.space for task in tasks if (probed := stored_probed(task)) is not None]
    wanted = list(dict.fromkeys(p.key for space in spaces for p in space.parameters))
    common, left_out = common_parameters(
        wanted, [{p.key: p for p in offer.parameters} for offer in offers]
    )
    if not common:
        return None, left_out
    first = offers[0]
    try:
        return Space(
            tuple(common.values()), first.constraints, first.defaults, first.followers
        ), left_out
    except ValueError:
        return None, left_out


# The measurement ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """One machine's part: its own winner, and what is foreign to it."""

    task: Task
    verdict: Verdict
    foreign: tuple[Baseline, ...]

    def contestants(self) -> list[Contestant]:
        """All arms, with nothing measured. What equals an earlier one is not measured apart."""
        own = winner(self.task.subject.arch)
        tuned = self.verdict.configuration
        told = [
            (HOST, "the host's own values", DEFAULT, None),
            (own, f"its own verdict ({self.verdict.origin})", tuned, None),
        ]
        made: list[Contestant] = []
        first: dict[str, str] = {}
        for name, title, configuration, fitted in told + [self._fitted(b) for b in self.foreign]:
            same_as = first.setdefault(configuration.digest, name)
            made.append(
                Contestant(
                    name=name,
                    title=title,
                    configuration=configuration,
                    keys=len(fitted.baseline.values) if fitted else len(configuration.values),
                    already=len(fitted.already) if fitted else 0,
                    left_out=dict(fitted.left_out) if fitted else {},
                    same_as="" if same_as == name else same_as,
                )
            )
        return made

    def _fitted(self, baseline: Baseline) -> tuple[str, str, Configuration, Fitted | None]:
        fitted = fitted_to_host(self.task, baseline)
        return baseline.name, baseline.title, fitted.configuration, fitted

    def arms(self) -> dict[str, Configuration]:
        """What is measured."""
        return {c.name: c.configuration for c in self.contestants() if not c.same_as}

    def planned(self) -> tuple[int, list[PlannedTrial]]:
        """The number of the latest series, and its places."""
        return latest_series(self.task.store.plan(self.task.subject, "transfer"))

    def differences(self, planned: Sequence[PlannedTrial], rounds: int | None) -> list[str]:
        """One line for each way in which what is planned is not what is asked for."""
        if not planned:
            return []
        then, now = planned_arms(planned), self.arms()
        found = [
            f"{self.task.title}: {name}: its values are not those of then"
            for name in dict.fromkeys((*then, *now))
            if then.get(name) != now.get(name)
        ]
        if rounds not in (None, planned_rounds(planned)):
            found.append(f"{self.task.title}: rounds: {planned_rounds(planned)} against {rounds}")
        return found


class Crossing(InRounds[Crosswise]):
    """A machine's default, both winners and the compromise in interleaved rounds.

    One of them that fails is a result. The rounds are of a `series` that both machines have.
    """

    name = "transfer"
    description = "winners on the other architecture"
    command = "transfer"
    result_type = Crosswise
    needs = ("judge",)
    of_its_own = True
    ends_by_failures = False
    ends_by_overload = False

    def __init__(self, machine: _Machine, series: int, rounds: int | None) -> None:
        super().__init__(timed(machine.task))
        self._machine = machine
        self.series = series
        self.rounds = rounds or self.budget.judge_pairs
        latest, planned = machine.planned()
        before = self.task.store.plan(self.task.subject, self.name)
        self.start = planned[0].index if planned and latest == series else len(before)

    def arms(self, testbed: Testbed) -> Arms:
        try_out(self.task, testbed, self._machine.foreign)
        return self._machine.arms()

    def result(self, trials: Sequence[Trial]) -> Crosswise:
        level = self.budget.level
        return Crosswise(
            arch=self.task.subject.arch,
            emulation=trials[0].conditions.emulation,
            contest=judged(self._machine.contestants(), trials, HOST, level),
        )


def _measured(
    tasks: Sequence[Task], agreed: Compromise | None, rounds: int | None, *, again: bool
) -> list[Crosswise]:
    """Each machine's measurement, one after the other.

    Both have series of the same number, so that one that was killed between them goes on with the
    second. Raises UsageError where what is planned is not what is asked for, unless `again`.
    """
    verdicts = {task.subject.arch: _verdict(task) for task in tasks}
    machines: list[_Machine] = []
    for task in tasks:
        own = task.subject.arch
        others = [(winner(arch), v) for arch, v in verdicts.items() if arch != own]
        foreign = [_foreign(name, verdict.configuration) for name, verdict in others]
        if agreed is not None:
            foreign.append(_foreign(COMPROMISE, agreed.configuration))
        machines.append(_Machine(task=task, verdict=verdicts[own], foreign=tuple(foreign)))
    series = max(machine.planned()[0] for machine in machines)
    current = [
        (machine, planned if number == series else [])
        for machine in machines
        for number, planned in [machine.planned()]
    ]
    differences = [line for one, planned in current for line in one.differences(planned, rounds)]
    if again and (
        differences or all(is_finished(one.task, "transfer", planned) for one, planned in current)
    ):
        series += 1
    elif differences:
        one, other = verdicts
        raise UsageError(
            "this campaign's transfer was planned otherwise (then against now):\n  "
            + "\n  ".join(differences)
            + "\nAsk for the same to go on with it, or measure a new one with: intop transfer "
            f"{one} {other} --again"
        )
    return [execute(Crossing(machine, series, rounds)) for machine in machines]


def _foreign(name: str, configuration: Configuration) -> Baseline:
    """What another machine found, as a set of values to be cut to what this one takes."""
    title = "good on both, by the models" if name == COMPROMISE else "the other machine's verdict"
    return Baseline(name=name, title=title, source="intop", values=configuration.values)
