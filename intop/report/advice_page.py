"""Advice as a document. Formats, and computes nothing."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from intop.document.columns import Column, columns, texts
from intop.document.model import (
    Block,
    Document,
    Figure,
    Notes,
    Paragraph,
    Section,
    Table,
    without_empty,
)
from intop.domain.comparison import AT_FULL_SPEED
from intop.domain.stats import Interval
from intop.report import advice_tables
from intop.report.advice import SITUATION, Advice, Change, Situation, Tally
from intop.report.advice_figure import effects, shown_rows
from intop.report.evidence import Evidence, Outcome, Source, effect
from intop.report.page.trials import NOUNS, condition_cell
from intop.version import __version__
from intop.words import counted

ALWAYS = ("workload", "link", "rate_rps", "connections", "arch", "cpu", "kernel")
"""Conditions of a situation that are shown even where all situations share them."""


def document(advice: Advice) -> Document:
    """Return the page."""
    campaigns = {(s.store, s.campaign): s.started_at for s in _sources(advice)}
    first, last = min(campaigns.values())[:10], max(campaigns.values())[:10]
    parts: tuple[tuple[str, str, Callable[[Advice], Iterable[Block]]], ...] = (
        ("found", "What was found", _summary),
        ("situations", "Situations", _situations),
        ("changes", "Which change helped, and which hurt", _changes),
        ("evidence", "What each campaign measured", advice_tables.evidence),
        ("sets", "Whole sets of values", advice_tables.sets),
        ("verdicts", "All verdicts", advice_tables.verdicts),
        ("limits", "What this can't tell", _limits),
        ("trials", "The trials behind it", advice_tables.trials),
    )
    sections = (Section(name=n, title=t, blocks=tuple(of(advice))) for n, t, of in parts)
    return Document(
        title="What the verdicts say of each key",
        subtitle=(
            f"{counted(len(advice.verdicts), 'verdict')} of {counted(len(campaigns), 'campaign')}, "
            f"begun {first}{f' to {last}' if last != first else ''}. By intop {__version__}."
        ),
        sections=tuple(section for section in sections if section.blocks),
    )


def _sources(advice: Advice) -> list[Source]:
    return [
        *(judged.source for judged in advice.verdicts),
        *(compared.source for compared in advice.sets),
    ]


# In short -----------------------------------------------------------------------------------------


def _summary(advice: Advice) -> Iterator[Block]:
    for situation in advice.situations:
        yield Paragraph(
            " ".join(_sentences(advice, situation)),
            lead=f"Situation {situation.number} ({_title(situation)}):",
        )
    if advice.intervals:
        yield Paragraph(
            f"{advice.called} of {counted(advice.intervals, 'interval')} of single changes do not "
            f"hold 1. If no change did anything, about {advice.by_chance:.1f} would not: each "
            "interval holds for itself."
        )


def _title(situation: Situation) -> str:
    return (
        f"{situation.conditions.arch} {situation.conditions.workload}, "
        f"{', '.join(situation.studies)}"
    )


def _sentences(advice: Advice, situation: Situation) -> Iterator[str]:
    """Sentences about gains, about changes that helped or hurt, and about unknown effects."""
    verdicts = [judged for judged in advice.verdicts if judged.situation == situation.number]
    gains = sum(judged.verdict.is_gain for judged in verdicts)
    if verdicts:
        yield f"{counted(gains, 'gain')} in {counted(len(verdicts), 'verdict')}."
    else:
        yield "No verdict, only contests."
    changes = advice.changes_in(situation)
    alone = [c for c in changes if c.by_itself.helped]
    beside = [c for c in changes if c.beside_others.helped and c not in alone]
    hurt = [c for c in changes if c.by_itself.hurt or c.beside_others.hurt]
    if alone:
        yield f"By itself lowered latency: {_listed(alone, lambda e: e.by_itself, 'helped')}."
    if beside:
        names = _listed(beside, lambda e: e.beside_others, "helped")
        yield f"Only beside other changes lowered it: {names}."
    if hurt:
        yield f"Raised latency: {_listed(hurt, _hurtful, 'hurt')}."
    unclear = [c for c in changes if _is_measured(c) and c not in (*alone, *beside, *hurt)]
    if unclear:
        yield f"Of {counted(len(unclear), 'change')} no effect was shown."
    unmeasured = [c for c in changes if not _is_measured(c)]
    if unmeasured:
        yield (
            f"Of {counted(len(unmeasured), 'change')} in winners, the own part was not measured "
            "(intop explain does it for those that a gain comes from)."
        )
    if len(verdicts) == 1:
        yield "Whether another campaign finds the same is not known: there is one verdict only."


def _listed(
    changes: Iterable[Change], of: Callable[[Evidence], Interval | None], outcome: Outcome
) -> str:
    """Return such as: net.core.somaxconn raised (in 2 of 3 measurements, 1.04 to 1.60)."""
    parts: list[str] = []
    for change in changes:
        # All of them: the strongest of several would be flattered by luck.
        ratios = sorted((r for e in change.evidence if (r := of(e))), key=lambda r: r.value)
        if len(ratios) == 1:
            parts.append(f"{change.name}, {ratios[0]}")
            continue
        often = sum(effect(ratio) == outcome for ratio in ratios)
        parts.append(
            f"{change.name} (in {often} of {len(ratios)} measurements, {ratios[0].value:.2f} to "
            f"{ratios[-1].value:.2f})"
        )
    return "; ".join(parts)


def _hurtful(evidence: Evidence) -> Interval | None:
    """Return the ratio that shows harm, else the ratio by itself."""
    return (
        evidence.beside_others if evidence.outcome_beside_others == "hurt" else evidence.by_itself
    )


def _is_measured(change: Change) -> bool:
    return any(e.by_itself or e.beside_others for e in change.evidence)


# Situations ---------------------------------------------------------------------------------------


def _situations(advice: Advice) -> Iterator[Block]:
    values = {
        name: [getattr(situation.conditions, name) for situation in advice.situations]
        for name in SITUATION
    }
    names = [n for n, per_situation in values.items() if n in ALWAYS or len(set(per_situation)) > 1]
    yield without_empty(
        Table(
            name="situations",
            title="What the situations are",
            columns=(
                Column("situation", "count"),
                *texts("studies"),
                Column("campaigns", "count"),
                *texts(*(NOUNS.get(name, name.replace("_", " ")) for name in names)),
            ),
            rows=tuple(
                (
                    situation.number,
                    ", ".join(situation.studies),
                    situation.campaigns,
                    *(condition_cell(getattr(situation.conditions, name)) for name in names),
                )
                for situation in advice.situations
            ),
        )
    )
    yield Paragraph(
        "What one situation shows holds for that load, link, machine and kernel. In another one "
        "the same change may help, do nothing or hurt, as the tables below show where it was "
        "measured in both."
    )


# Changes ------------------------------------------------------------------------------------------


def _changes(advice: Advice) -> Iterator[Block]:
    measured = shown_rows(advice)
    if measured:
        yield Figure(
            title="What single changes did",
            draw=partial(effects, advice),
            label="What each measured change did to latency, by situation and campaign",
            caption=(
                "Ratios of latency without the change / with it, with intervals: right of 1 it "
                f"helps. A row for each campaign that measured the change, the {len(measured)} "
                "that say most; its situation stands in brackets. What is right of 1 only beside "
                "others was not shown to help by itself."
            ),
        )
    if not advice.changes:
        yield Paragraph("No verdict has changed a key, so there is nothing to tell of any.")
        return
    yield Table(
        name="changes",
        title="Each change by situation, and how often it did what",
        origin="measured",
        columns=(
            Column("key", "key"),
            *texts("change"),
            *columns("count", "situation", "in winners", "of these gains"),
            *columns("text", "by itself", "beside others"),
            Column("values", "key"),
        ),
        rows=tuple(
            (
                " + ".join(change.keys),
                change.direction,
                change.situation,
                change.winners,
                change.gains,
                _tally(change.by_itself),
                _tally(change.beside_others),
                "; ".join(dict.fromkeys(map(_moved, change.evidence))),
            )
            for change in advice.changes
        ),
    )
    yield Paragraph(
        "That a change is in a winner that gained does not say that it had a part in it: winners "
        "carry keys that do nothing. Its own part is what was measured by itself, or beside others."
    )


def _tally(tally: Tally) -> str | None:
    """Return such as: helped 2, not shown 1."""
    counts = {"helped": tally.helped, "hurt": tally.hurt, "not shown": tally.not_shown}
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or None


def _moved(evidence: Evidence) -> str:
    pairs = zip(evidence.before, evidence.after, strict=True)
    return ", ".join(f"{before or advice_tables.UNKNOWN} -> {after}" for before, after in pairs)


# Limits -------------------------------------------------------------------------------------------


def _limits(advice: Advice) -> Iterator[Block]:
    lines = [
        "Nothing here is general wisdom: what is in no table, these campaigns did not measure.",
        "A screening's tests are not here: they say that a key acts, but not in which direction.",
        "Among many intervals some do not hold 1 by chance. What several campaigns found is surer.",
        "Values between those that were tried, and others beyond them, were not measured.",
    ]
    emulated = [
        str(situation.number)
        for situation in advice.situations
        if situation.conditions.emulation not in AT_FULL_SPEED
    ]
    if emulated:
        lines.append(
            f"Emulated: situation {', '.join(emulated)}. How fast an emulated machine is says "
            "nothing about the hardware; what queues, loss and timers do to it is real."
        )
    yield Notes(tuple(lines))
