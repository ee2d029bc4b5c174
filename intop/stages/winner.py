"""A verdict's winner as changes to what it is held against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intop.domain.ablation import Changes
from intop.domain.baseline import HOST
from intop.domain.configuration import Configuration
from intop.domain.rounds import Arms
from intop.domain.space import Space, mixture

WINNER = "winner"


@dataclass(frozen=True)
class Winner:
    """The changes by name, with the values that each key has without and with the winner."""

    configuration: Configuration
    base: Configuration
    changes: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, str]]
    same: tuple[str, ...]

    @classmethod
    def of(cls, space: Space, configuration: Configuration, base: Configuration) -> "Winner":
        """Keys that only change together are one change; what equals the base is none."""
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
        """The changes."""
        return tuple(self.changes)

    def made(self, changes: Changes) -> Configuration:
        """The base with these changes."""
        if not changes:
            return self.base
        keys = [key for name in changes for key in self.changes[name]]
        # What equals the base is no change, and is left out of all but the winner itself.
        return mixture(self.configuration, self.base, keys)

    def arm(self, changes: Changes) -> str:
        """What a set is called in a round; no two have one name."""
        if not changes:
            return HOST
        lacking = sorted(set(self.names) - changes)
        if not lacking:
            return WINNER
        if len(lacking) <= len(changes):
            return f"without {', '.join(lacking)}"
        return f"only {', '.join(sorted(changes))}"

    def arms(self, sets: Sequence[Changes]) -> Arms:
        """What is measured, by name."""
        return {self.arm(one): self.made(one) for one in sets}
