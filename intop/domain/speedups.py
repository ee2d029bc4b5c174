"""What the tree models' own winners are worth, from the rounds that finalists are picked in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intop.domain.stats import Interval, geometric_interval, geometric_mean, paired_ratio
from intop.domain.trial import Block


@dataclass(frozen=True, kw_only=True)
class ModelSpeedUp:
    """The measured speed-up of the configuration that one model alone proposes.

    `arm` is the name under which it was measured: the model's own, or the finalist's that is the
    same configuration. `ratio` is default P99 / its P99 (above 1: faster), the geometric mean over
    `rounds`, with an interval for it alone. It is None below two rounds, and where any of its
    trials failed, which are counted in `failures`.
    """

    model: str
    arm: str
    rounds: int
    failures: int = 0
    p99_ms: float | None = None
    ratio: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class SpeedUps:
    """The speed-ups of all models, and their geometric mean with an interval at `level`.

    `mean` is over the models that have a ratio, in the `rounds` that all of these have; None where
    these are fewer than two. Several models with the same configuration count once each.
    """

    models: tuple[ModelSpeedUp, ...]
    level: float
    rounds: int
    mean: Interval | None

    @property
    def counted(self) -> int:
        """How many models have a ratio."""
        return sum(one.ratio is not None for one in self.models)

    @property
    def best(self) -> ModelSpeedUp | None:
        """The model with the highest ratio. It was selected by it, so luck flatters it."""
        known = [(one.ratio.value, one) for one in self.models if one.ratio is not None]
        return max(known, key=lambda pair: pair[0])[1] if known else None


def speed_ups(
    arms: Mapping[str, str],
    p99_ms: Mapping[str, Mapping[Block, float]],
    failures: Mapping[str, int],
    *,
    default: str,
    level: float,
) -> SpeedUps:
    """Speed-ups from rounds in which all arms were measured in turn.

    `arms` has the arm of each model; `p99_ms` the P99 in ms of the usable trials, by arm and
    round, that of the `default` among them; `failures` the failed trials by arm. The interval of
    the mean is that of the rounds' means, so it allows for what the models have in common: the
    default's trials, and configurations that are alike.
    """
    reference = p99_ms.get(default, {})
    models = tuple(
        _model(model, arm, p99_ms.get(arm, {}), reference, failures.get(arm, 0), level)
        for model, arm in arms.items()
    )
    counted = [p99_ms[one.arm] for one in models if one.ratio is not None]
    common = [n for n in reference if counted and all(n in made for made in counted)]
    means = [geometric_mean([reference[n] / made[n] for made in counted]) for n in common]
    mean = None
    if len(means) > 1:
        mean = geometric_interval(means, level=level)
    return SpeedUps(models=models, level=level, rounds=len(common), mean=mean)


def _model(
    model: str,
    arm: str,
    made: Mapping[Block, float],
    reference: Mapping[Block, float],
    failures: int,
    level: float,
) -> ModelSpeedUp:
    rounds = [n for n in reference if n in made]
    before: Sequence[float] = [reference[n] for n in rounds]
    after: Sequence[float] = [made[n] for n in rounds]
    judged = len(rounds) > 1 and not failures
    return ModelSpeedUp(
        model=model,
        arm=arm,
        rounds=len(rounds),
        failures=failures,
        p99_ms=geometric_mean(after) if after else None,
        ratio=paired_ratio(before, after, level=level) if judged else None,
    )
