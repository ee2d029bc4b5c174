"""A pilot as a document: what each duration tells, and which one was chosen."""

from intop.campaign.pilot.duration import MOST_PAIRS
from intop.document.columns import Column, numbers
from intop.document.model import Section, tabled
from intop.domain.concurrency import carried
from intop.domain.pilot import Pilot, TriedDuration
from intop.words import capital, percent


def pilot(title: str, pilot: Pilot) -> Section:
    """The durations that were tried, and what follows."""
    name = pilot.judged_by
    names = (f"{pilot.pairs} pairs tell", f"pairs for {pilot.wanted:g}", "time")
    return tabled(
        f"{title}: pilot (the default, {percent(pilot.level)} intervals)",
        (*numbers("trials of", "requests", name, f"sd of log {name}", *names), Column("", "text")),
        (
            (
                f"{duration.duration_s} s",
                f"{duration.trials} x {duration.requests:,}",
                f"{duration.judged_ms:.1f} ms",
                f"{duration.sd:.2f} ({duration.sd_low:.2f} to {duration.sd_high:.2f})",
                _resolution(duration),
                _pairs(duration),
                f"{duration.seconds:.1f} s",
                _mark(pilot, duration),
            )
            for duration in pilot.tried
        ),
        [
            f"{capital(sentence(pilot))}.",
            *_carried(pilot),
            f"What pairs tell is how far a verdict's interval reaches, as a ratio of {name}.",
            "A gain that is measured above it is called one.",
            "It takes the tuned side to scatter as the default does.",
        ],
    )


def sentence(pilot: Pilot) -> str:
    """Return such as: trials of 8 s, of which 10 pairs tell a ratio of 1.22 (asked for: 1.25).

    Where nothing tells what was asked for, it says so, and what would.
    """
    best = pilot.chosen
    tells = f"{pilot.pairs} pairs tell a ratio of {_ratio(best.resolution)}"
    if pilot.reached:
        sentence = f"trials of {best.duration_s} s, of which {tells} (asked for: {pilot.wanted:g})"
    else:
        why = (
            "longer trials scattered no less"
            if pilot.stalled
            else f"up to {pilot.tried[-1].duration_s} s"
        )
        sentence = (
            f"no duration tells a ratio of {pilot.wanted:g} in {pilot.pairs} pairs ({why}); trials "
            f"of {best.duration_s} s take the least time for what they tell: {tells}, and "
            f"{_pairs(best)} would tell {pilot.wanted:g} (judge_pairs)"
        )
    if pilot.given_s is not None:
        sentence += f"; the file's duration_s = {pilot.given_s} stands"
    return sentence


def _carried(pilot: Pilot) -> list[str]:
    if pilot.connections is None:
        return []
    duration_s = pilot.given_s or pilot.duration_s
    rate_rps = pilot.chosen.requests / pilot.chosen.duration_s
    text = carried(rate_rps * duration_s / pilot.connections, duration_s)
    return [f"{capital(text)}."]


def _pairs(duration: TriedDuration) -> str:
    return f"> {MOST_PAIRS}" if duration.pairs_needed is None else str(duration.pairs_needed)


def _resolution(duration: TriedDuration) -> str:
    low, high = _ratio(duration.resolution_low), _ratio(duration.resolution_high)
    return f"{_ratio(duration.resolution)} ({low} to {high})"


def _mark(pilot: Pilot, duration: TriedDuration) -> str:
    marks = ["chosen"] if duration.duration_s == pilot.duration_s else []
    marks += ["in the file"] if duration.duration_s == pilot.given_s else []
    return ", ".join(marks)


def _ratio(ratio: float) -> str:
    """A few trials leave room for any ratio."""
    return f"{ratio:.2f}" if ratio < 100 else "> 100"
