"""A made-up campaign with all that a report can show, and hostile words wherever words go."""

from dataclasses import replace
from pathlib import Path

from builders.results import MODELS, TRIMMED
from builders.testbeds import probe_of
from builders.trials import CONDITIONS, judged_trials, model_error, run, screening, trial
from intop.domain.agreement import agreement
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.explanation import Contribution, Dependence, Explanation, Interaction, Kept, Point
from intop.domain.probing import Probe
from intop.domain.ranking import Importance, Ranking
from intop.domain.refined import BestKnown, Refined, RefineStep
from intop.domain.search import Candidate, Search
from intop.domain.sides import side_by_side
from intop.domain.stats import Interval, geometric_mean, paired_ratio
from intop.domain.training import Ceiling, HeldOut, Training
from intop.domain.trial import Conditions, Trial
from intop.domain.verdict import Verdict
from intop.store import Store, Subject, opened

ONE, OTHER = "net.core.somaxconn", "net.ipv4.tcp_fin_timeout"
HOSTILE = (
    "</style><script>console.error('run')</script>"
    "<img src=https://example.invalid/x.png onerror=console.error('run')>\u202e\x1b[31m&amp;"
)
"""What must be told as it is: not carried out, not fetched, and not turning what follows."""

STUDY = """\
[study]
name = "made-up"
store = "{folder}/made-up.db"

[workload.slt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 10

[cluster.x86]
lab = "rep-x86"

[cluster.arm]
lab = "rep-arm"
"""

TUNED = Configuration({ONE: "64", OTHER: "30"})
DEFAULT_US, TUNED_US = (1500, 1600, 1400, 1550, 1480), (500, 520, 470, 515, 490)


def campaign(folder: Path, *, archs: tuple[str, ...] = ("x86", "arm"), rest: bool = True) -> Path:
    """The study's file. On x86 there is a gain, explained; on arm, there is none.

    Without the `rest` only the screening has been measured.
    """
    path = folder / "intop.toml"
    path.write_text(STUDY.format(folder=folder))
    with opened(str(folder / "made-up.db")) as store:
        begun = store.begin("made-up", seed=7, tool_version="0.1.0")
        for arch in archs:
            subject = Subject(campaign=begun, arch=arch, workload="slt")
            _screened(store, subject)
            if rest:
                _verified(store, subject, gain=arch == "x86")
        if rest:
            store.finish(begun)
    return path


def _conditions(subject: Subject) -> Conditions:
    machine = {"x86": "x86_64", "arm": "aarch64"}[subject.arch]
    return replace(CONDITIONS, arch=subject.arch, machine=machine, link=f"tbf {HOSTILE}")


def _add(store: Store, subject: Subject, stage: str, trials: list[Trial]) -> None:
    placed = [
        replace(t, planned=replace(t.planned, index=n), stage=stage) for n, t in enumerate(trials)
    ]
    store.write_plan(subject, stage, [t.planned for t in placed])
    for minute, one in enumerate(placed):
        started = f"2026-01-01T0{1 + list(ORDER).index(stage)}:{minute:02}:00+00:00"
        store.add(subject, replace(one, started_at=started, replica=f"lb {HOSTILE}"))


ORDER: tuple[str, ...] = ("screen", "collect", "judge", "apply")


def _screened(store: Store, subject: Subject) -> None:
    conditions = _conditions(subject)
    store.put(subject, probe())
    made = [trial(DEFAULT, 1450 + 40 * n, conditions=conditions) for n in range(4)]
    made += [trial(Configuration({ONE: str(65 + n)}), 900, conditions=conditions) for n in range(3)]
    failed = trial(TUNED, status="failed", conditions=conditions)
    made.append(replace(failed, detail=f"lb: {ONE} was set to '64' and reads back as {HOSTILE}"))
    disturbed = trial(Configuration({ONE: "70"}), status="disturbed", conditions=conditions)
    made += [replace(disturbed, detail=f"lb: {share} % went to bash") for share in (23, 31)]
    pruned = trial(TUNED, 2000, status="pruned", conditions=conditions)
    made.append(replace(pruned, pruned_above_ms=70.0, detail="stopped after 2.0 of 10 s"))
    _add(store, subject, "screen", made)
    store.put(subject, RANKING)
    measured = {"lb": [1.4, 1.5, 1.6], f"lb-2 {HOSTILE}": [1.5, 1.4, 1.55]}
    store.put(subject, agreement(measured, level=0.99))


def probe() -> Probe:
    """A host that has a few keys."""
    return probe_of({ONE: "4096", OTHER: "60", "net.ipv4.tcp_notsent_lowat": HOSTILE})


def _verified(store: Store, subject: Subject, *, gain: bool) -> None:
    tuned_us = TUNED_US if gain else tuple(reversed(DEFAULT_US))
    judged = judged_trials(TUNED, DEFAULT_US, tuned_us, _conditions(subject))
    _add(store, subject, "judge", judged)
    sides = judged[::2], judged[1::2]
    before, after = ([t.judged_ms for t in side] for side in sides)
    ratio = paired_ratio(before, after, level=0.95)
    verdict = Verdict(
        configuration=TUNED,
        origin="candidate 1",
        default_ms=geometric_mean(before),
        tuned_ms=geometric_mean(after),
        ratio=ratio.value,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
        level=0.95,
        pairs=len(before),
        rounds=5,
        planned_rounds=5,
        looks=1,
        sides=side_by_side(*sides, level=0.95),
        models=MODELS,
    )
    for result in (REFINED, TRAINING, SEARCH, verdict):
        store.put(subject, result)
    if gain:
        store.put(subject, TRIMMED)
        store.put(subject, explanation(verdict))
        _add(store, subject, "apply", judged[:2])


RANKING = Ranking(
    importances=tuple(
        Importance(
            key=key,
            mean=0.5 / (n + 1),
            sd=0.05,
            permutation=0.2 / (n + 1),
            permutation_sd=0.03,
            above=0.9,
            passes=n == 0,
        )
        for n, key in enumerate((ONE, OTHER, "net.ipv4.tcp_notsent_lowat"))
    ),
    chosen=(ONE, OTHER),
    trials=12,
    probe_level=0.15,
    error_rate=0.05,
    keep=2,
    screening=screening((ONE, OTHER), still=("net.ipv4.tcp_notsent_lowat",)),
)
BEST = BestKnown(configuration=TUNED, judged_ms=0.9, trials=1)
REFINED = Refined(
    before=BEST,
    collected=8,
    steps=(
        RefineStep(
            number=1,
            reasons={"promise": 3, "replicate": 1},
            improvement=0.1,
            spent=4,
            failures=0,
            best=replace(BEST, judged_ms=0.5),
        ),
    ),
    ended="budget",
    budget=4,
    earlier=0,
    default_ms=1.5,
)
TRAINING = Training(
    keys=(ONE, OTHER),
    fitted=(),
    errors=tuple(
        model_error(
            family,
            mape,
            held_out=tuple(
                HeldOut(measured=ms, predicted=1.2 * ms, low=0.8 * ms, high=1.6 * ms)
                for ms in (0.5, 0.9, 1.5)
            ),
        )
        for family, mape in (("RFR", 31.0), ("SVR", float("inf")))
    ),
    trials=12,
    configurations=10,
    ceiling=Ceiling(mape=9.0, r2=0.9, spearman=0.9, sd=0.1, configurations=3),
)
SEARCH = Search(
    candidates=(Candidate(configuration=TUNED, predicted_ms=0.48, model="ensemble"),),
    convergences=(run("RFR", 0.9, 0.6, 0.5), run("ensemble", 0.8, 0.5)),
    winners=(),
)


def explanation(verdict: Verdict) -> Explanation:
    """One of the two keys is enough."""
    ratio = Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)
    minimal = Configuration({ONE: "64"})
    return Explanation(
        winner=TUNED,
        minimal=minimal,
        contributions=(
            Contribution(
                keys=(ONE,),
                before=("4096",),
                after=("64",),
                left_out=ratio,
                alone=ratio,
                missed=ratio,
            ),
            Contribution(keys=(OTHER,), before=("60",), after=("30",), dropped=f"no use {HOSTILE}"),
        ),
        interactions=(Interaction(first=ONE, second=OTHER, ratio=Interval(0.9, 0.7, 1.2)),),
        same=(),
        verdict=replace(verdict, configuration=minimal, models=None),
        kept=Kept(share=0.97, low=0.9, high=1.04, full=ratio, smaller=ratio, rounds=5),
        offer=None,
        level=0.95,
        trials=60,
        curves=(
            Dependence(
                name=ONE,
                scale="log",
                predicted=(Point(value=64.0, judged_ms=0.5), Point(value=4096.0, judged_ms=1.5)),
                measured=(Point(value=64.0, judged_ms=0.49),),
                elsewhere=(Point(value=70.0, judged_ms=0.9),),
            ),
        ),
    )
