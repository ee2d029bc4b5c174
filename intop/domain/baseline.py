"""Baselines: published sets of kernel parameters, and what is left of one on a given host."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from intop.domain.configuration import Configuration
from intop.domain.parameter import denied, is_integer, normalised
from intop.domain.probing import Probed

HOST = "default"
TUNED = "tuned"
RESERVED: Mapping[str, str] = {
    HOST: "the host's own values are called so",
    TUNED: "the campaign's own configuration is called so",
}
"""Names that no baseline can have, since others have them beside it, and why."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A set of values that somebody uses or recommends."""

    name: str
    """The name of its file."""
    title: str
    source: str
    """The source: who uses or recommends it, and where."""
    values: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A baseline on one host."""

    baseline: Baseline
    configuration: Configuration
    """The values that it changes there."""
    already: tuple[str, ...]
    """The keys that have their values already."""
    left_out: Mapping[str, str]
    """The reason for each key that is left out. What comes before its first ": " is its kind."""


@dataclass(frozen=True, kw_only=True)
class Refusals:
    """Values that a host's kernel did not take."""

    read_back: dict[str, dict[str, str]] = field(default_factory=dict)
    """The value that was read back, by key and by the value that was tried."""

    def with_one(self, key: str, value: str, got: str) -> "Refusals":
        """Return these and a further one."""
        return Refusals(
            read_back={**self.read_back, key: {**self.read_back.get(key, {}), value: got}}
        )


NONE_REFUSED = Refusals()
_NO_FORMER: Mapping[str, str] = {}


def fitted(
    baseline: Baseline,
    probed: Probed,
    refusals: Refusals = NONE_REFUSED,
    former: Mapping[str, str] = _NO_FORMER,
) -> Fitted:
    """Return the baseline as this host can take it; `former` says what became of old keys.

    A value outside of the catalogue's range stays, unless it is beyond a hard bound, or the kernel
    was found to refuse it: that range is for searching.
    """
    offered = {p.key: p for p in probed.space.parameters}
    values: dict[str, str] = {}
    already: list[str] = []
    left_out: dict[str, str] = {}
    for key, text in baseline.values.items():
        value = _canonical(text)
        parameter = offered.get(key)
        if reason := denied(key):
            left_out[key] = f"on the deny list: {reason}"
        elif value == normalised(probed.space.defaults.get(key, "")):
            already.append(key)
        elif parameter is None:
            unknown = former.get(key, "not in the catalogue")
            left_out[key] = probed.refused.get(key, unknown)
        elif problem := parameter.unfit(value):
            left_out[key] = problem
        elif (got := refusals.read_back.get(key, {}).get(value)) is not None:
            left_out[key] = f"not taken by the kernel: {value!r} reads back as {got!r}"
        else:
            values[key] = value
    return Fitted(
        baseline=baseline,
        configuration=Configuration(values),
        already=tuple(already),
        left_out=left_out,
    )


def _canonical(text: str) -> str:
    """Return a value as the kernel prints it: it must read back as it was written."""
    return " ".join(str(int(p)) if is_integer(p) else p for p in text.split())
