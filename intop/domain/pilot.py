"""What a pilot has found."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TriedDuration:
    """What the default's trials of one duration say.

    `requests` are sent in each of `trials`; `p99_ms` is their geometric mean, `sd` the standard
    deviation of their log P99, with an interval at the pilot's level. `resolution` is how far the
    interval of a verdict of the pilot's pairs would reach, as a ratio of P99 (above 1), with the
    interval that the sd gives it; `pairs_needed` of them would reach no farther than what was
    wanted, None where that takes too many. `seconds` is the mean time of a trial, all of it.
    """

    duration_s: int
    requests: int
    trials: int
    p99_ms: float
    sd: float
    sd_low: float
    sd_high: float
    resolution: float
    resolution_low: float
    resolution_high: float
    pairs_needed: int | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """How long trials are to be: `duration_s`, one of those that were `tried` (ascending).

    `reached` says whether verdicts of so many `pairs` resolve the ratio `wanted` with it, and
    `stalled` whether longer trials were given up since they scattered no less. `given_s` is the
    file's duration, which then stands in its place. All intervals are at `level`.
    """

    duration_s: int
    tried: tuple[TriedDuration, ...]
    reached: bool
    stalled: bool
    wanted: float
    pairs: int
    level: float
    given_s: int | None = None

    @property
    def chosen(self) -> TriedDuration:
        """What the trials of the chosen duration say."""
        return next(one for one in self.tried if one.duration_s == self.duration_s)
