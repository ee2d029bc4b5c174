"""The place where trials of a task are measured."""

from typing import Protocol

from intop.domain.configuration import Configuration
from intop.domain.probing import Probed
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import RefusedValueError


class Testbed(Protocol):
    """A replica of a cluster, or a stand-in for it."""

    @property
    def name(self) -> str:
        """The name that tells the replica from others."""

    @property
    def probed(self) -> Probed:
        """The space that it offers, and the keys that it refuses."""

    @property
    def applied(self) -> str:
        """The title of what an earlier apply has left there, or ""."""

    def trial(
        self, planned: PlannedTrial, stage: str, attempt: int, prune_above_ms: float | None
    ) -> Trial:
        """Measure a configuration, and restore the replica's own values.

        The trial is pruned once its latency is certainly above `prune_above_ms`. A configuration
        that can't be measured makes a failed trial.
        """

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        """Return the kernel's refusal of a configuration, which is not kept."""

    def check_connections(self) -> None:
        """Raises UnreachableError when a host, or the hold on the load balancer, is lost."""

    def wait_until_quiet(self) -> None:
        """Wait until nobody else is busy on the hosts, up to a limit."""

    def abort(self) -> None:
        """Spoil and end a trial that is under way in another thread."""
