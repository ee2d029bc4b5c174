"""Advice as a document. Formats, and computes nothing."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from intop.domain.advice import SITUATION, Advice, Change, Situation, Tally
from intop.domain.comparison import AT_FULL_SPEED
from intop.domain.evidence import Evidence, Outcome, Source, effect
from intop.domain.stats import Interval
from intop.report import advice_tables
from intop.report.document.columns import Column, columns, texts
from intop.report.document.model import (
    Block,
    Document,
    Figure,
    Notes,
    Paragraph,
    Section,
    Table,
    without_empty,
)
from intop.report.figures.advice import effects, shown_rows
from intop.report.page.trials import NOUNS
from intop.report.words import counted
from intop.version import __version__

ALWAYS = ("workload", "link", "rate_rps", "connections", "arch", "cpu", "kernel")
"""Conditions of a situation that are told also where all situations have the same."""


def document(found: Advice) -> Document:
    """All that the page shows."""
    campaigns = {(s.store, s.campaign): s.started_at for s in _sources(found)}
    first, last = min(campaigns.values())[:10], max(campaigns.values())[:10]
    parts: tuple[tuple[str, str, Callable[[Advice], Iterable[Block]]], ...] = (
        ("found", "What was found", _found),
        ("situations", "Situations", _situations),
        ("changes", "Which change helped, and which hurt", _changes),
        ("evidence", "What each campaign measured", advice_tables.evidence),
        ("sets", "Whole sets of values", advice_tables.sets),
        ("verdicts", "All verdicts", advice_tables.verdicts),
        ("limits", "What this can't tell", _limits),
        ("trials", "The trials behind it", advice_tables.trials),
    )
    sections = (Section(name=n, title=t, blocks=tuple(of(found))) for n, t, of in parts)
    return Document(
        title="What the verdicts say of each key",
        subtitle=(
            f"{counted(len(found.verdicts), 'verdict')} of {counted(len(campaigns), 'campaign')}, "
            f"begun {first}{f' to {last}' if last != first else ''}. By intop {__version__}."
        ),
        sections=tuple(section for section in sections if section.blocks),
    )


def _sources(found: Advice) -> list[Source]:
    return [*(one.source for one in found.verdicts), *(one.source for one in found.sets)]


# In short -----------------------------------------------------------------------------------------


def _found(found: Advice) -> Iterator[Block]:
    for situation in found.situations:
        yield Paragraph(
            " ".join(_sentences(found, situation)),
            lead=f"Situation {situation.number} ({_title(situation)}):",
        )
    if found.intervals:
        yield Paragraph(
            f"{found.called} of {counted(found.intervals, 'interval')} of single changes do not "
            f"hold 1. If no change did anything, about {found.by_chance:.1f} would not: each "
            "interval holds for itself."
        )


def _title(one: Situation) -> str:
    return f"{one.conditions.arch} {one.conditions.workload}, {', '.join(one.studies)}"


def _sentences(found: Advice, situation: Situation) -> Iterator[str]:
    """How many gains there were, which changes helped or hurt, and what is not known."""
    verdicts = [one for one in found.verdicts if one.situation == situation.number]
    gains = sum(one.verdict.is_gain for one in verdicts)
    if verdicts:
        yield f"{counted(gains, 'gain')} in {counted(len(verdicts), 'verdict')}."
    else:
        yield "No verdict, only contests."
    changes = found.changes_in(situation)
    alone = [c for c in changes if c.by_itself.helped]
    beside = [c for c in changes if c.beside_others.helped and c not in alone]
    hurt = [c for c in changes if c.by_itself.hurt or c.beside_others.hurt]
    if alone:
        yield f"By itself lowered P99: {_listed(alone, lambda e: e.by_itself, 'helped')}."
    if beside:
        told = _listed(beside, lambda e: e.beside_others, "helped")
        yield f"Only beside other changes lowered it: {told}."
    if hurt:
        yield f"Raised P99: {_listed(hurt, _hurtful, 'hurt')}."
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
    """Such as: net.core.somaxconn raised (in 2 of 3 measurements, 1.04 to 1.60)."""
    told: list[str] = []
    for one in changes:
        # All of them: the strongest of several would be flattered by luck.
        ratios = sorted((r for e in one.evidence if (r := of(e))), key=lambda r: r.value)
        if len(ratios) == 1:
            told.append(f"{one.name}, {ratios[0]}")
            continue
        often = sum(effect(ratio) == outcome for ratio in ratios)
        told.append(
            f"{one.name} (in {often} of {len(ratios)} measurements, {ratios[0].value:.2f} to "
            f"{ratios[-1].value:.2f})"
        )
    return "; ".join(told)


def _hurtful(one: Evidence) -> Interval | None:
    """Where it hurt, else what was measured by itself."""
    return one.beside_others if one.outcome_beside_others == "hurt" else one.by_itself


def _is_measured(one: Change) -> bool:
    return any(e.by_itself or e.beside_others for e in one.evidence)


# Situations ---------------------------------------------------------------------------------------


def _situations(found: Advice) -> Iterator[Block]:
    values = {
        name: [getattr(one.conditions, name) for one in found.situations] for name in SITUATION
    }
    names = [n for n, told in values.items() if n in ALWAYS or len(set(told)) > 1]
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
                    one.number,
                    ", ".join(one.studies),
                    one.campaigns,
                    *(_said(getattr(one.conditions, name)) for name in names),
                )
                for one in found.situations
            ),
        )
    )
    yield Paragraph(
        "What one situation shows holds for that load, link, machine and kernel. In another one "
        "the same change may help, do nothing or hurt, as the tables below show where it was "
        "measured in both."
    )


def _said(value: object) -> str | None:
    if value is None or value == "":
        return None
    return f"{value:g}" if isinstance(value, float) else str(value)


# Changes ------------------------------------------------------------------------------------------


def _changes(found: Advice) -> Iterator[Block]:
    measured = shown_rows(found)
    if measured:
        yield Figure(
            title="What single changes did",
            draw=partial(effects, found),
            label="What each measured change did to P99, by situation and campaign",
            caption=(
                "Ratios of P99 without the change / P99 with it, with intervals: right of 1 it "
                f"helps. A row for each campaign that measured the change, the {len(measured)} "
                "that say most; its situation stands in brackets. What is right of 1 only beside "
                "others was not shown to help by itself."
            ),
        )
    if not found.changes:
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
                " + ".join(one.keys),
                one.direction,
                one.situation,
                one.winners,
                one.gains,
                _tally(one.by_itself),
                _tally(one.beside_others),
                "; ".join(dict.fromkeys(map(_moved, one.evidence))),
            )
            for one in found.changes
        ),
    )
    yield Paragraph(
        "That a change is in a winner that gained does not say that it had a part in it: winners "
        "carry keys that do nothing. Its own part is what was measured by itself, or beside others."
    )


def _tally(found: Tally) -> str | None:
    """Such as: helped 2, not shown 1."""
    counts = {"helped": found.helped, "hurt": found.hurt, "not shown": found.not_shown}
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or None


def _moved(one: Evidence) -> str:
    pairs = zip(one.before, one.after, strict=True)
    return ", ".join(f"{before or advice_tables.UNKNOWN} -> {after}" for before, after in pairs)


# Limits -------------------------------------------------------------------------------------------


def _limits(found: Advice) -> Iterator[Block]:
    lines = [
        "Nothing here is general wisdom: what is in no table, these campaigns did not measure.",
        "A screening's tests are not here: they say that a key acts, but not in which direction.",
        "Among many intervals some do not hold 1 by chance. What several campaigns found is surer.",
        "Values between those that were tried, and others beyond them, were not measured.",
    ]
    emulated = [
        str(one.number) for one in found.situations if one.conditions.emulation not in AT_FULL_SPEED
    ]
    if emulated:
        lines.append(
            f"Emulated: situation {', '.join(emulated)}. How fast an emulated machine is says "
            "nothing about the hardware; what queues, loss and timers do to it is real."
        )
    yield Notes(tuple(lines))
