"""Deployments: configurations that a campaign has shown to be a gain, ready to leave it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from intop.domain.across import Across
from intop.domain.configuration import Configuration
from intop.domain.explanation import Contribution, Kept
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.parameter import Risk, barred
from intop.domain.sweep import Sweep
from intop.domain.verdict import Verdict

Origin = Literal["smallest set", "winner", "baseline"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One key that a deployment sets, of the kernel or of nginx.

    Raises ValueError for a key that may not be tuned, wherever it comes from.
    """

    key: str
    value: str
    """The value as in a configuration."""
    default: str
    """The value of the campaign's hosts."""
    contribution: Contribution | None
    """The measured effect of the change that the key is part of, None where the winner was not
    explained."""
    mechanism: str
    """The mechanism by the catalogue, like `risk` and `document`."""
    risk: Risk
    document: str

    def __post_init__(self) -> None:
        # A campaign that has tuned a directive that must be allowed by its name was allowed to.
        if why := barred(self.key, (self.key,)):
            raise ValueError(f"{self.key} is {why}")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """The values to set on the load balancers of one architecture, and the evidence for them."""

    study: str
    campaign: int
    """Its number in the store."""
    started_at: str
    """UTC, ISO 8601."""
    arch: str
    workload: str
    origin: Origin
    verdict: Verdict
    """The verdict on this very configuration."""
    kept: Kept | None
    """The share of the winner's gain that the smallest set has, None for the winner itself."""
    changes: tuple[Change, ...]
    """The strongest first."""
    instead: str = ""
    """The reason why the winner leaves in place of its smallest set, "" where nobody asked for
    that."""
    sweeps: tuple[Sweep, ...] = ()
    """The worth of the whole winner under other loads."""
    across: Across | None = None
    """The worth of the whole winner under the study's other workloads."""

    @property
    def title(self) -> str:
        """The title, such as `x86 slt`."""
        return f"{self.arch} {self.workload}"

    @property
    def values(self) -> Mapping[str, str]:
        """The value that each key is set to."""
        return {change.key: change.value for change in self.changes}

    @property
    def sysctls(self) -> Mapping[str, str]:
        """The values of keys of the kernel."""
        return split_by_kind(self.values)[0]

    @property
    def directives(self) -> Mapping[str, str]:
        """The values of directives of nginx."""
        return split_by_kind(self.values)[1]

    @property
    def configuration(self) -> Configuration:
        """The values as they are measured."""
        return self.verdict.configuration
