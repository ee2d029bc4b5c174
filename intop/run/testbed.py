"""Where trials of one task are measured."""

from typing import Protocol

from intop.domain.configuration import Configuration
from intop.domain.probing import Probed
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import RefusedValueError


class Testbed(Protocol):
    """One replica of a cluster, or what stands for it."""

    @property
    def name(self) -> str:
        """What the replica is told from others by."""

    @property
    def probed(self) -> Probed:
        """The space that it offers, and what it refuses."""

    @property
    def applied(self) -> str:
        """What an earlier apply has left there, in words; "" for nothing."""

    def trial(
        self, planned: PlannedTrial, stage: str, attempt: int, prune_above_ms: float | None
    ) -> Trial:
        """Measure a configuration, and give the replica its own values back.

        The trial is pruned once its P99 is certainly above `prune_above_ms`. What goes wrong
        because of the configuration makes it a failed trial.
        """

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        """What the kernel says against a configuration, which is not kept."""

    def check_connections(self) -> None:
        """Raises UnreachableError when a host, or the hold on the load balancer, is lost."""

    def wait_until_quiet(self) -> None:
        """Wait until nobody else is busy on the hosts, or too long."""

    def abort(self) -> None:
        """Let a trial that is under way in another thread end soon, and badly."""
