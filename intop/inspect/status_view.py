"""The progress of a campaign as a document."""

from collections.abc import Iterator

from intop.document.columns import numbers, texts
from intop.document.model import Block, Section, Table, Verbatim
from intop.domain.campaign_status import Best, CampaignStatus, StageStatus, SubjectStatus
from intop.sentences import (
    across_sentence,
    soak_sentence,
    sweep_sentence,
    verdict_sentence,
    worse_here,
)
from intop.words import counted, duration


def campaign(status: CampaignStatus) -> list[Block]:
    """The campaign, then each of its subjects: stages, what is left, the best so far."""
    if status.campaign is None:
        none = f"no campaign of {status.study} in {status.store} yet. Run: intop tune"
        return [Verbatim((none,))]
    return [Verbatim(tuple(campaign_lines(status))), *map(_subject, status.subjects)]


def _subject(subject: SubjectStatus) -> Section:
    best = Verbatim(tuple(best_lines(subject)))
    return Section(title=_subject_line(subject), blocks=(stages(subject.stages), best))


def stages(statuses: tuple[StageStatus, ...]) -> Table:
    """A row for each stage."""
    return Table(
        columns=(
            *texts("stage", ""),
            *numbers("trials", "left", "about", "at most", "disturbed", "failed"),
        ),
        rows=tuple(map(_cells, statuses)),
    )


def _cells(stage: StageStatus) -> tuple[str, ...]:
    if not stage.trials:
        return stage.name, stage.state, "-", "", *_times(stage), "", ""
    bound = f" {stage.bound}" if stage.bound else ""
    return (
        stage.name,
        stage.state,
        f"{stage.done}/{stage.trials}{bound}",
        str(stage.left or ""),
        *_times(stage),
        str(stage.disturbed or ""),
        str(stage.failed or ""),
    )


def _times(stage: StageStatus) -> tuple[str, str]:
    """Return the likely and the highest time that is left."""
    return (about(stage.left_s), about(stage.most_s)) if stage.is_ahead else ("", "")


def about(seconds: float | None) -> str:
    """A remaining time, or a question mark where it is not known."""
    return "?" if seconds is None else duration(seconds)


def campaign_lines(status: CampaignStatus) -> Iterator[str]:
    """Yield when the campaign began, whether somebody is at work, and what is left."""
    ended = f", finished {_utc(status.finished_at)}" if status.finished_at else ""
    yield (
        f"campaign {status.campaign} of {status.study} in {status.store}, begun "
        f"{_utc(status.started_at)}{ended}: {counted(status.trials, 'trial')}"
    )
    yield from _activities(status)
    if status.finished_at:
        return
    if status.silent_s is None:
        yield "nothing is stored yet"
    else:
        yield f"last stored {duration(status.silent_s)} ago ({_utc(status.stored_at)})"
    if status.left_s is None:
        yield "how long the rest takes can't be told before the pilot"
    elif status.left_s:
        yield f"roughly {duration(status.left_s)} are left, models included"


def _activities(status: CampaignStatus) -> Iterator[str]:
    """Yield a line for each process at work, and for each that ended without a word."""
    for title, activity in status.activities.items():
        at = f"{activity.process} at {title} {activity.stage}"
        heard = f"heard of {duration(activity.silent_s)} ago"
        if activity.is_alive:
            yield f"at work: {at} since {_utc(activity.since)}, {heard}"
        else:
            yield f"gone: {at}, {'which has ended' if activity.is_gone else heard}"
    if not (status.is_at_work or status.finished_at):
        yield "nobody is at work. Run: intop tune --resume"


def _subject_line(subject: SubjectStatus) -> str:
    current = subject.current
    if current is None:
        return f"{subject.title}: all stages are done"
    if not current.trials:
        return f"{subject.title}: {current.name}, which measures nothing"
    sentence = f"{subject.title}: {current.name}, {current.done} of {current.trials} trials"
    if current.left_s:
        sentence += f", about {duration(current.left_s)} left"
    return f"{sentence} ({pace(subject)})" if subject.trial_s is not None else sentence


def pace(subject: SubjectStatus) -> str:
    """Return a trial's time on all replicas together, and its source."""
    if subject.trial_s is None:
        return "how long a trial takes, the pilot chooses"
    if subject.awaits_pilot:
        return f"a trial likely takes {subject.trial_s:.1f} s; the pilot chooses"
    if subject.measured_in is not None:
        return (
            f"a trial takes {subject.trial_s:.1f} s, as measured in campaign {subject.measured_in}"
        )
    return f"a trial takes {subject.trial_s:.1f} s, by the file and what intop reckons with"


def best_lines(subject: SubjectStatus) -> Iterator[str]:
    """Yield the verdict and what was measured of it, else the best so far."""
    if subject.verdict is not None:
        yield f"  verdict: {verdict_sentence(subject.verdict)}"
        yield from (f"  {sweep_sentence(sweep)}" for sweep in subject.sweeps)
        if subject.across is not None:
            yield f"  {across_sentence(subject.across)}; {worse_here(subject.across)}"
    elif subject.best is not None:
        yield from (f"  {line}" for line in _best(subject.best))
    if subject.soak is not None:
        yield f"  {soak_sentence(subject.soak)}"


def _best(best: Best) -> Iterator[str]:
    trials = counted(best.trials, "trial")
    sentence = f"best so far, not a verdict: {best.judged_by} {best.judged_ms:.1f} ms ({trials})"
    if best.default_ms is not None:
        sentence += f", the default's {best.default_ms:.1f} ms ({best.default_trials})"
    yield sentence
    if best.by_models:
        yield (
            f"chosen of {best.configurations} configurations by models of all trials so far; what "
            f"it is worth, fresh pairs of verify will say"
        )
    else:
        yield (
            f"the lowest of {counted(best.configurations, 'configuration')}, which is the luckiest "
            f"one: it is better than it would be if measured again"
        )


def _utc(at: str) -> str:
    """A stored time (UTC, ISO 8601), as logs have it."""
    return at.replace("+00:00", "Z")
