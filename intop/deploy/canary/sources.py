"""The sources of a block: the access log, the kernel's TCP_INFO and the user's metrics."""

from contextlib import suppress
from dataclasses import dataclass, replace

from intop.deploy.canary.own_metrics import Ask
from intop.deploy.canary.quantities import OWN
from intop.domain.counters import HostCounters
from intop.errors import CommandError
from intop.hosts.access_log import NOTHING, LoggedRequests, LogReader
from intop.hosts.delivery import DeliveryReader, Totals, difference


@dataclass(kw_only=True)
class Sources:
    """The sources of one host."""

    log: LogReader
    only_new: bool
    """Whether only connections count that began in the block."""
    delivery: DeliveryReader | None = None
    """None where the host's TCP_INFO can't be read."""
    ask: Ask = lambda _seconds, _end_s: {}
    """Asks for the user's metrics."""
    _after: int | None = None
    """The number of the last old connection; None where all connections count."""
    _before: Totals | None = None
    """The sums when the counted time began; None where they could not be read."""

    def begin(self) -> None:
        """Take connections of now for old ones. Raises UnreachableError for a lost host."""
        self.requests()
        self._after = self.log.connection if self.only_new else None
        if self.delivery is not None:
            with suppress(CommandError):  # the next read raises the same
                self.delivery.begin()
        self.begin_counting()

    def begin_counting(self) -> None:
        """Leave what was delivered so far out of the block. Raises as `begin` does."""
        self._before = self._totals()

    def requests(self) -> LoggedRequests:
        """Return what was logged since the last call. A log that is away for a moment is a note."""
        try:
            return self.log.read(after=self._after)
        except CommandError as error:
            return replace(NOTHING, notes=(str(error),))

    def counters(self, seconds: float) -> HostCounters:
        """Return what was delivered in a block of these seconds. Raises as `begin` does."""
        before, after = self._before, self._totals()
        if before is None or after is None:
            return HostCounters(at_s=(seconds,), unread=("sockets",))
        grown = difference(before, after)
        return HostCounters(at_s=(seconds,), growth={name: (n,) for name, n in grown.items()})

    def with_metrics(
        self, counters: HostCounters, end_s: float
    ) -> tuple[HostCounters, tuple[str, ...]]:
        """Return the counters with the user's metrics, and a note for one that gives no number.

        `end_s` is the block's end, in seconds since 1970. Raises as `begin` does.
        """
        try:
            numbers = self.ask(counters.at_s[-1], end_s)
        except CommandError as error:
            return counters, (str(error),)
        return replace(counters, levels={f"{OWN}{name}": (n,) for name, n in numbers.items()}), ()

    def close(self) -> None:
        """End the processes on the host."""
        self.log.close()
        if self.delivery is not None:
            self.delivery.close()

    def _totals(self) -> Totals | None:
        if self.delivery is None:
            return None
        try:
            return self.delivery.read(only_new=self.only_new)
        except CommandError:
            return None
