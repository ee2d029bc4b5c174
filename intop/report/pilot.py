"""A pilot as a document: what each duration tells, and which one was chosen."""

from intop.domain.duration import MOST_PAIRS
from intop.domain.pilot import Pilot, TriedDuration
from intop.report.document.columns import Column, numbers
from intop.report.document.model import Section, tabled


def pilot(title: str, found: Pilot) -> Section:
    """The durations that were tried, and what follows."""
    names = (f"{found.pairs} pairs tell", f"pairs for {found.wanted:g}", "time")
    return tabled(
        f"{title}: pilot (the default, {found.level:.0%} intervals)",
        (*numbers("trials of", "requests", "P99", "sd of log P99", *names), Column("", "text")),
        (
            (
                f"{one.duration_s} s",
                f"{one.trials} x {one.requests:,}",
                f"{one.p99_ms:.1f} ms",
                f"{one.sd:.2f} ({one.sd_low:.2f} to {one.sd_high:.2f})",
                _resolution(one),
                _pairs(one),
                f"{one.seconds:.1f} s",
                _mark(found, one),
            )
            for one in found.tried
        ),
        [
            f"{sentence(found)[0].upper()}{sentence(found)[1:]}.",
            "What pairs tell is how far a verdict's interval reaches, as a ratio of P99.",
            "A gain that is measured above it is called one.",
            "It takes the tuned side to scatter as the default does.",
        ],
    )


def sentence(found: Pilot) -> str:
    """Such as: trials of 8 s, of which 10 pairs tell a ratio of 1.22 (asked for: 1.25).

    Where nothing tells what was asked for, it says so, and what would.
    """
    best = found.chosen
    tells = f"{found.pairs} pairs tell a ratio of {_ratio(best.resolution)}"
    if found.reached:
        told = f"trials of {best.duration_s} s, of which {tells} (asked for: {found.wanted:g})"
    else:
        why = (
            "longer trials scattered no less"
            if found.stalled
            else f"up to {found.tried[-1].duration_s} s"
        )
        told = (
            f"no duration tells a ratio of {found.wanted:g} in {found.pairs} pairs ({why}); trials "
            f"of {best.duration_s} s take the least time for what they tell: {tells}, and "
            f"{_pairs(best)} would tell {found.wanted:g} (judge_pairs)"
        )
    if found.given_s is not None:
        told += f"; the file's duration_s = {found.given_s} stands"
    return told


def _pairs(one: TriedDuration) -> str:
    return f"> {MOST_PAIRS}" if one.pairs_needed is None else str(one.pairs_needed)


def _resolution(one: TriedDuration) -> str:
    low, high = _ratio(one.resolution_low), _ratio(one.resolution_high)
    return f"{_ratio(one.resolution)} ({low} to {high})"


def _mark(found: Pilot, one: TriedDuration) -> str:
    marks = ["chosen"] if one.duration_s == found.duration_s else []
    marks += ["in the file"] if one.duration_s == found.given_s else []
    return ", ".join(marks)


def _ratio(ratio: float) -> str:
    """A few trials leave room for any ratio."""
    return f"{ratio:.2f}" if ratio < 100 else "> 100"
