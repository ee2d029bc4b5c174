"""A warm start: the worth of one architecture's stored trials for models of another."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The held-out errors (MAPE, percent) of models of so many configurations."""

    configurations: int
    scratch: float
    """The error with these alone."""
    warm: float
    """The error with the other machine's trials, too."""
    worth: float | None
    """The number of configurations from scratch that have the error of the warm one. None: more
    than were tried."""


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """The worth of one architecture's trials for models of another."""

    source: str
    target: str
    family: str
    common: tuple[str, ...]
    """The parameters that both know."""
    own: tuple[str, ...]
    """The parameters that only the target's configurations vary."""
    configurations: tuple[int, int]
    """The number of configurations that the target and the source have measured."""
    repeats: int
    """The number of measurements of errors, with other rows held out each time. They are means."""
    curve: tuple[CurvePoint, ...]
    shares: dict[str, float]
    """The part of the warm predictions, at the most rows, by each of the ways to make them."""
