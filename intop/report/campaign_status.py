"""How far a campaign is, and all campaigns and workers of a store, as documents."""

from collections.abc import Iterator

from intop.domain.campaign_status import Best, CampaignStatus, StageStatus, SubjectStatus
from intop.domain.job import CampaignProgress, Fleet, Spot, WorkerStatus
from intop.report.across import sentence as across_sentence
from intop.report.across import worse_here
from intop.report.document.columns import numbers, texts
from intop.report.document.model import Block, Paragraph, Section, Table, Verbatim
from intop.report.soak import sentence as soak_sentence
from intop.report.sweep import sentence as sweep_sentence
from intop.report.verdict import sentence
from intop.report.words import counted, duration


def campaign(found: CampaignStatus) -> list[Block]:
    """The campaign, then each of its subjects: stages, what is left, the best so far."""
    if found.campaign is None:
        none = f"no campaign of {found.study} in {found.store} yet: intop tune begins one"
        return [Verbatim((none,))]
    return [Verbatim(tuple(_campaign_lines(found))), *map(_subject, found.subjects)]


def _subject(subject: SubjectStatus) -> Section:
    best = Verbatim(tuple(_best_lines(subject)))
    return Section(title=_subject_line(subject), blocks=(stages(subject.stages), best))


def stages(found: tuple[StageStatus, ...]) -> Table:
    """A row for each stage."""
    return Table(
        columns=(
            *texts("stage", ""),
            *numbers("trials", "left", "about", "at most", "disturbed", "failed"),
        ),
        rows=tuple(map(_cells, found)),
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
    """What is left of it likely takes, and hardly exceeds."""
    return (about(stage.left_s), about(stage.most_s)) if stage.is_ahead else ("", "")


def about(seconds: float | None) -> str:
    """A remaining time; what can't be told is a question mark."""
    return "?" if seconds is None else duration(seconds)


def _campaign_lines(found: CampaignStatus) -> Iterator[str]:
    ended = f", finished {_utc(found.finished_at)}" if found.finished_at else ""
    yield (
        f"campaign {found.campaign} of {found.study} in {found.store}, begun "
        f"{_utc(found.started_at)}{ended}: {counted(found.trials, 'trial')}"
    )
    if found.finished_at:
        return
    if found.silent_s is None:
        yield "nothing is stored yet"
    elif found.is_at_work:
        yield f"last stored {duration(found.silent_s)} ago ({_utc(found.stored_at)}): at work"
    else:
        yield (
            f"nothing was stored for {duration(found.silent_s)} (since {_utc(found.stored_at)}): "
            f"nobody seems to be at work; go on with: intop tune --resume"
        )
    if found.left_s is None:
        yield "how long the rest takes can't be told before the pilot"
    elif found.left_s:
        yield f"roughly {duration(found.left_s)} are left, models included"


def _subject_line(subject: SubjectStatus) -> str:
    current = subject.current
    if current is None:
        return f"{subject.title}: all stages are done"
    if not current.trials:
        return f"{subject.title}: {current.name}, which measures nothing"
    told = f"{subject.title}: {current.name}, {current.done} of {current.trials} trials"
    if current.left_s:
        told += f", about {duration(current.left_s)} left"
    return f"{told} ({pace(subject)})" if subject.trial_s is not None else told


def pace(subject: SubjectStatus) -> str:
    """What a trial takes, all replicas together, and where that comes from."""
    if subject.trial_s is None:
        return "how long a trial takes, the pilot chooses"
    if subject.measured_in is not None:
        return (
            f"a trial takes {subject.trial_s:.1f} s, as measured in campaign {subject.measured_in}"
        )
    return f"a trial takes {subject.trial_s:.1f} s, by the file and what intop reckons with"


def _best_lines(subject: SubjectStatus) -> Iterator[str]:
    if subject.verdict is not None:
        yield f"  verdict: {sentence(subject.verdict)}"
        yield from (f"  {sweep_sentence(one)}" for one in subject.sweeps)
        if subject.across is not None:
            yield f"  {across_sentence(subject.across)}; {worse_here(subject.across)}"
    elif subject.best is not None:
        yield from (f"  {line}" for line in _best(subject.best))
    if subject.soak is not None:
        yield f"  {soak_sentence(subject.soak)}"


def _best(best: Best) -> Iterator[str]:
    trials = counted(best.trials, "trial")
    told = f"best so far, not a verdict: P99 {best.p99_ms:.1f} ms ({trials})"
    if best.default_p99_ms is not None:
        told += f", the default's {best.default_p99_ms:.1f} ms ({best.default_trials})"
    yield told
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


# A whole store ------------------------------------------------------------------------------------


def fleet(found: Fleet) -> list[Block]:
    """The campaigns, then the workers."""
    alive = sum(worker.is_alive for worker in found.workers)
    title = (
        f"{found.store}: {counted(len(found.campaigns), 'campaign')}, {counted(alive, 'worker')}"
    )
    blocks: list[Block] = []
    if found.campaigns:
        blocks.append(_campaigns(found.campaigns))
    if found.workers:
        blocks.append(_workers(found.workers))
    else:
        blocks.append(Paragraph("No worker is at work.", command="intop worker"))
    return [Section(title=title, blocks=tuple(blocks))]


def _campaigns(found: tuple[CampaignProgress, ...]) -> Table:
    return Table(
        columns=(
            *numbers("campaign"),
            *texts("study", "begun", "state"),
            *numbers("measured", "planned", "waiting", "held"),
        ),
        rows=tuple(
            (
                str(one.campaign),
                one.study,
                one.started_at[:16].replace("T", " "),
                "finished" if one.finished_at else "open",
                str(one.measured),
                str(one.planned),
                str(one.waiting or ""),
                str(one.held or ""),
            )
            for one in found
        ),
    )


def _workers(found: tuple[WorkerStatus, ...]) -> Table:
    return Table(
        columns=(
            *texts("worker", "last heard of", "at"),
            *numbers("trials", "trouble"),
            *texts("serves"),
        ),
        rows=tuple(
            (
                one.name,
                f"{duration(one.silent_s)} ago" + ("" if one.is_alive else ": lost"),
                one.doing if one.is_alive else "",
                str(one.trials),
                str(one.failures or ""),
                _served(one.reach),
            )
            for one in found
        ),
    )


def _served(spots: tuple[Spot, ...]) -> str:
    """Such as: web x86 1, 2, 3; web arm 1."""
    by_cluster: dict[str, list[str]] = {}
    for spot in spots:
        by_cluster.setdefault(f"{spot.study} {spot.arch}", []).append(str(spot.replica + 1))
    return "; ".join(f"{name} {', '.join(places)}" for name, places in by_cluster.items())
