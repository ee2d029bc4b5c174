"""A configuration that a campaign has shown to be a gain, ready to leave the campaign."""

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

Origin = Literal["smallest set", "winner"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One key that a deployment sets, of the kernel or of nginx.

    `value` as a configuration has it, `default` what the campaign's hosts had. `contribution` is
    what was measured of the change that the key is part of, None where the winner was not
    explained. `mechanism`, `risk` and `document` are the catalogue's. Raises ValueError for a key
    that may not be tuned, wherever it comes from.
    """

    key: str
    value: str
    default: str
    contribution: Contribution | None
    mechanism: str
    risk: Risk
    document: str

    def __post_init__(self) -> None:
        # A campaign that has tuned a directive that must be allowed by its name was allowed to.
        if why := barred(self.key, (self.key,)):
            raise ValueError(f"{self.key} is {why}")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What is to be set on the load balancers of one architecture, and what shows that it helps.

    `study`, `campaign` (its number in the store) and `started_at` (UTC, ISO 8601) say where it
    comes from. `verdict` is that of this very configuration, `kept` how much of the winner's gain
    the smallest set has, None for the winner itself. `changes`, the strongest first. `instead` says
    why the winner leaves in place of its smallest set, and is "" where nobody asked for that.
    `sweeps` say what the whole winner was worth under other loads, `across` under the study's
    other workloads.
    """

    study: str
    campaign: int
    started_at: str
    arch: str
    workload: str
    origin: Origin
    verdict: Verdict
    kept: Kept | None
    changes: tuple[Change, ...]
    instead: str = ""
    sweeps: tuple[Sweep, ...] = ()
    across: Across | None = None

    @property
    def title(self) -> str:
        """Such as `x86 slt`."""
        return f"{self.arch} {self.workload}"

    @property
    def values(self) -> Mapping[str, str]:
        """What each key is set to."""
        return {change.key: change.value for change in self.changes}

    @property
    def sysctls(self) -> Mapping[str, str]:
        """Those of the kernel."""
        return split_by_kind(self.values)[0]

    @property
    def directives(self) -> Mapping[str, str]:
        """Those of nginx."""
        return split_by_kind(self.values)[1]

    @property
    def configuration(self) -> Configuration:
        """The same, as it is measured."""
        return self.verdict.configuration
