"""A verdict's winner as changes to the configuration that it was judged against."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from intop.campaign.verify.change_rounds import Changes, Round
from intop.domain.baseline import HOST
from intop.domain.configuration import Configuration, mixture
from intop.domain.rounds import Arms
from intop.domain.space import Space
from intop.domain.trial import SeriesRound, Trial

WINNER = "winner"


@dataclass(frozen=True)
class Winner:
    """A winner, and its changes by name."""

    configuration: Configuration
    base: Configuration
    """The configuration that it was judged against."""
    changes: Mapping[str, tuple[str, ...]]
    """The keys of each change: one, or several that only go together."""
    values: Mapping[str, tuple[str, str]]
    """The value of each changed key without and with the winner."""
    same: tuple[str, ...]
    """Keys that the winner sets to the base's value."""

    @classmethod
    def of(cls, space: Space, configuration: Configuration, base: Configuration) -> "Winner":
        """Return the winner with its changes in this space."""
        groups = [tuple(sorted(g)) for g in space.together(configuration, base)]
        changed = {key for group in groups for key in group}
        before, after = ({**space.defaults, **c.values} for c in (base, configuration))
        return cls(
            configuration=configuration,
            base=base,
            changes={" + ".join(g): g for g in sorted(groups)},
            values={key: (before.get(key, ""), after.get(key, "")) for key in sorted(changed)},
            same=tuple(key for key in configuration.values if key not in changed),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the changes."""
        return tuple(self.changes)

    def with_only(self, changes: Changes) -> Configuration:
        """Return the base with these changes."""
        if not changes:
            return self.base
        keys = [key for name in changes for key in self.changes[name]]
        # What equals the base is no change, and is left out of all but the winner itself.
        return mixture(self.configuration, self.base, keys)

    def arm(self, changes: Changes) -> str:
        """Return the name of a set in a round; no two sets have the same."""
        if not changes:
            return HOST
        lacking = sorted(set(self.names) - changes)
        if not lacking:
            return WINNER
        if len(lacking) <= len(changes):
            return f"without {', '.join(lacking)}"
        return f"only {', '.join(sorted(changes))}"

    def arms(self, sets: Sequence[Changes]) -> Arms:
        """Return the configurations of some sets by the names of their arms."""
        return {self.arm(changes): self.with_only(changes) for changes in sets}

    def rounds(
        self,
        sets: Sequence[Changes],
        trials: Sequence[Trial],
        latency: Callable[[Trial], float] = attrgetter("judged_ms"),
    ) -> list[Round]:
        """Return the logarithm of a latency (ms) of the sets, round by round.

        One that failed counts as a trial in which every request took the whole timeout.
        """
        by_arm = {self.arm(changes): changes for changes in sets}
        rounds: dict[SeriesRound | None, dict[Changes, float]] = {
            t.planned.series_round: {} for t in trials
        }
        for trial in trials:
            if trial.usable:
                latency_ms = latency(trial)
            elif trial.status == "failed":
                latency_ms = 1000.0 * trial.conditions.timeout_s
            else:
                continue
            rounds[trial.planned.series_round][by_arm[trial.planned.arm]] = math.log(latency_ms)
        return list(rounds.values())
