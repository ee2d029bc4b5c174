"""The worth of the tree models' own winners, from the rounds that finalists are picked in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from intop.domain.rounds import mean_interval, paired
from intop.domain.stats import Interval, geometric_mean, paired_ratio
from intop.domain.trial import SeriesRound


@dataclass(frozen=True, kw_only=True)
class ModelSpeedUp:
    """The measured speed-up of the configuration that one model alone proposes."""

    model: str
    arm: str
    """The model's own, or that of the finalist that is the same configuration."""
    rounds: int
    failures: int = 0
    judged_ms: float | None = None
    ratio: Interval | None = None
    """Default latency / its latency (above 1: faster) over `rounds`, with an interval for it alone.

    None below two rounds, and where any of its trials failed.
    """


@dataclass(frozen=True, kw_only=True)
class SpeedUps:
    """The speed-ups of all models. Several with the same configuration count once each."""

    ALSO_IN_JSON: ClassVar = ("best",)

    models: tuple[ModelSpeedUp, ...]
    level: float
    rounds: int
    """The rounds that all models with a ratio have."""
    mean: Interval | None
    """The geometric mean over these models and rounds; None with fewer than two rounds."""

    @property
    def counted(self) -> int:
        """The number of models that have a ratio."""
        return sum(model.ratio is not None for model in self.models)

    @property
    def best(self) -> ModelSpeedUp | None:
        """The model with the highest ratio. It was selected by it, so luck flatters it."""
        known = [(model.ratio.value, model) for model in self.models if model.ratio is not None]
        return max(known, key=lambda pair: pair[0])[1] if known else None


def speed_ups(
    arms: Mapping[str, str],
    judged_ms: Mapping[str, Mapping[SeriesRound, float]],
    failures: Mapping[str, int],
    *,
    default: str,
    level: float,
) -> SpeedUps:
    """Return speed-ups from rounds in which all arms were measured in turn.

    `arms` has the arm of each model; `judged_ms` the latency (ms) of the usable trials, by arm and
    round, that of the `default` among them; `failures` the failed trials by arm. The interval of
    the mean is that of the rounds' means, so it allows for what the models have in common: the
    default's trials, and configurations that are alike.
    """
    reference = judged_ms.get(default, {})

    def speed_up(model: str, arm: str) -> ModelSpeedUp:
        before, after = paired(reference, judged_ms.get(arm, {}))
        failed = failures.get(arm, 0)
        is_compared = len(after) > 1 and not failed
        return ModelSpeedUp(
            model=model,
            arm=arm,
            rounds=len(after),
            failures=failed,
            judged_ms=geometric_mean(after) if after else None,
            ratio=paired_ratio(before, after, level=level) if is_compared else None,
        )

    models = tuple(speed_up(model, arm) for model, arm in arms.items())
    counted = [judged_ms[model.arm] for model in models if model.ratio is not None]
    rounds = list(zip(*paired(reference, *counted), strict=True)) if counted else []
    means = [geometric_mean([before / latency for latency in after]) for before, *after in rounds]
    return SpeedUps(
        models=models,
        level=level,
        rounds=len(rounds),
        mean=mean_interval(means, level=level),
    )
