"""The two halves of a winner and their worth: its sysctls, and its directives of nginx."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intop.domain.configuration import Configuration
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.stats import Interval, paired_ratio
from intop.words import percent

KERNEL, NGINX = "kernel alone", "nginx alone"
"""The names of the arms that have one half of the winner each."""


@dataclass(frozen=True, kw_only=True)
class Halves:
    """The default, the sysctls alone, the directives alone, and both, in the same rounds.

    Ratios are default latency / the arm's, geometric means over the rounds. Above 1 is a gain.
    """

    kernel: Interval
    nginx: Interval
    both: Interval
    together: Interval
    """`both` / (`kernel` times `nginx`), formed in each round.

    Above 1 the two are more together than one after the other, below 1 less.
    """
    rounds: int
    level: float
    """The level of each interval for itself."""

    @property
    def is_attributed(self) -> bool:
        """Whether one half is a gain by itself, or together they are more or less than both."""
        alone = self.kernel.low > 1 or self.nginx.low > 1
        return alone or self.together.low > 1 or self.together.high < 1

    @property
    def summary(self) -> str:
        """The halves in words: the kernel alone 1.80 (1.60 to 2.00), nginx alone 1.01 ..."""
        if self.together.low > 1:
            says = "together they are more than the product of both"
        elif self.together.high < 1:
            says = "together they are less than the product of both"
        else:
            says = "together they are not clearly more or less than the product of both"
        return (
            f"the kernel alone {self.kernel}, nginx alone {self.nginx}, both {self.both}; "
            f"{says}: {self.together} times ({self.rounds} rounds, {percent(self.level)} intervals)"
        )


def halves_of(
    configuration: Configuration, defaults: Mapping[str, str]
) -> dict[str, Configuration]:
    """Return the two halves by the names of their arms; none where one changes nothing."""
    kernel, nginx = split_by_kind(configuration.values)
    for half in (kernel, nginx):
        if all(defaults.get(key) == value for key, value in half.items()):
            return {}
    return {KERNEL: Configuration(kernel), NGINX: Configuration(nginx)}


def halves(
    default: Sequence[float],
    kernel: Sequence[float],
    nginx: Sequence[float],
    both: Sequence[float],
    *,
    level: float,
) -> Halves | None:
    """Return the halves by the latency (ms) of each arm in the same rounds; None below two.

    Raises ValueError for sequences of different lengths.
    """
    if len(default) < 2:
        return None
    apart = [k * n for k, n in zip(kernel, nginx, strict=True)]
    at_once = [d * b for d, b in zip(default, both, strict=True)]
    return Halves(
        kernel=paired_ratio(default, kernel, level=level),
        nginx=paired_ratio(default, nginx, level=level),
        both=paired_ratio(default, both, level=level),
        together=paired_ratio(apart, at_once, level=level),
        rounds=len(default),
        level=level,
    )
