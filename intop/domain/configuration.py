"""Configurations: a value for each parameter that is to change."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from intop.domain.parameter import normalised


@dataclass(frozen=True)
class Configuration:
    """Values by sysctl key, as the kernel prints them. The empty one is the host's default."""

    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ordered = {key: normalised(self.values[key]) for key in sorted(self.values)}
        object.__setattr__(self, "values", ordered)

    @property
    def is_default(self) -> bool:
        """Whether nothing is changed at all."""
        return not self.values

    @property
    def digest(self) -> str:
        """A stable name: the first 12 hexadecimal digits of SHA-256 over the canonical JSON."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    def to_json(self) -> str:
        """Return canonical JSON: keys sorted, no blanks."""
        return json.dumps(dict(self.values), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Configuration":
        """Return the configuration of a text that `to_json` wrote."""
        return cls(json.loads(text))


DEFAULT = Configuration()
"""The host as it was found."""


def mixture(
    configuration: Configuration, base: Configuration, keys: Iterable[str]
) -> Configuration:
    """Return the base with these keys as the configuration has them."""
    chosen = set(keys)
    ours = {k: v for k, v in configuration.values.items() if k in chosen}
    return Configuration({k: v for k, v in base.values.items() if k not in chosen} | ours)
