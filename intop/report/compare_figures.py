"""The figures of a comparison: what its two sides have of each kind."""

from intop.campaign.screen.figure import agreement
from intop.campaign.train.bars import errors, generations, search_time
from intop.campaign.verify.speedup_figure import speedup
from intop.document.drawing import Drawing
from intop.domain.comparison import Compared, Side


def speed_ups(about: str, compared: Compared) -> Drawing:
    """Return the speed-ups of all sides that have a verdict."""
    return speedup(about, {name: s.verdict for name, s in _sides(compared) if s.verdict})


def model_errors(about: str, compared: Compared) -> Drawing:
    """Return the errors of all sides' models."""
    return errors(about, {name: s.training for name, s in _sides(compared) if s.training})


def generations_needed(about: str, compared: Compared) -> Drawing:
    """Return the generations that the searches of all sides took."""
    return generations(about, {name: s.convergences for name, s in _sides(compared)})


def time_needed(about: str, compared: Compared) -> Drawing:
    """Return the time that the searches of all sides took."""
    return search_time(about, {name: s.convergences for name, s in _sides(compared)})


def rank_agreements(about: str, compared: Compared) -> list[Drawing]:
    """Return the agreement of both rankings under each workload that has them."""
    return [
        agreement(f"{about} {comparison.workload}", comparison.rank_agreement)
        for comparison in compared.comparisons
        if comparison.rank_agreement is not None
    ]


def _sides(compared: Compared) -> list[tuple[str, Side]]:
    """Return all sides with such names as `x86 slt`."""
    return [(f"{s.name} {c.workload}", s) for c in compared.comparisons for s in c.sides]
