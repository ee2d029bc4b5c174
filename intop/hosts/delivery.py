"""How fast a server's clients get their data, by the kernel's TCP_INFO of its connections.

The host samples its connections and reduces them to sums (`delivery.sh`). It leaves out a
connection's data after its last sample, and connections that begin and end between two samples.
"""

import shlex
from collections.abc import Mapping, Sequence

from intop.errors import CommandError, UnreachableError
from intop.hosts.answers import count, lines
from intop.hosts.host import Host
from intop.hosts.kernel_counters import parse_tables
from intop.hosts.lasting import LastingCommand
from intop.hosts.scripts import script

MOST_PORTS = 50
SUMS = ("busy_ms", "bytes_acked")
"""The quantities that the host sums, in its order."""
OF_THE_HOST = ("Tcp.RetransSegs", "Tcp.OutSegs")
"""Counters of all connections of the host, also those that end between two samples."""

Totals = Mapping[str, int]
"""Sums by name, as `clients.busy_ms`, and the counters OF_THE_HOST since the host started."""


class DeliveryReader:
    """Sums over the connections that clients have with some ports of a host."""

    def __init__(self, host: Host, ports: Sequence[int], *, step_s: float) -> None:
        """Begin on the host. Raises CommandError where it has no bash 5, or shows no sockets."""
        self._host = host
        chosen = " ".join(map(str, tuple(dict.fromkeys(ports))[:MOST_PORTS]))
        code = script("delivery.sh", ports=chosen, step=round(step_s * 1e6))
        self._command = LastingCommand(host, f"bash -c {shlex.quote(code)}")
        # bash 4 has no time of its own, and a host without bash ends the conversation.
        if host.run("""bash -c '[ -n "$EPOCHREALTIME" ]'""").exit_code:
            raise CommandError(
                host.address.name, "its connections' TCP_INFO can't be read: install bash 5 there"
            )
        self.begin()

    def begin(self) -> None:
        """Count from 0 from now on. Connections of now are old ones. Raises what `read` does."""
        self._ask("begin", only_new=False)

    def read(self, *, only_new: bool) -> Totals:
        """Return the sums so far, of all connections or only of new ones.

        Raises:
            CommandError: The sockets can't be listed, the answer makes no sense, or the sampler
                on the host has ended. The next call starts it again.
            UnreachableError: The host does not answer.
        """
        return self._ask("read", only_new=only_new)

    def close(self) -> None:
        """End the process on the host."""
        self._command.close()

    def _ask(self, word: str, *, only_new: bool) -> Totals:
        mark = self._command.mark
        try:
            text = self._command.ask(f"{word};\n", first=f"{mark}\n")
            return _totals(text, mark, only_new=only_new)
        except UnreachableError as error:
            self._host.run("true")  # raises for a host that is really away
            raise CommandError(
                self._host.address.name,
                "the sampler of its connections' TCP_INFO has ended there, and starts again",
            ) from error
        except (KeyError, ValueError) as error:
            self.close()
            raise CommandError(
                self._host.address.name, f"its connections' TCP_INFO can't be read ({error})"
            ) from error


def difference(before: Totals, after: Totals) -> dict[str, int]:
    """Return by how much each sum grew; no sum falls but by a new start of the reader or host."""
    return {name: max(total - before.get(name, 0), 0) for name, total in after.items()}


def _totals(text: str, mark: str, *, only_new: bool) -> Totals:
    """Return the sums of an answer. Raises KeyError or ValueError."""
    first, *table, last = lines(text)
    word, unseen, *numbers = first.split()
    if word != "sum" or last != mark or len(numbers) != 2 * len(SUMS):
        raise ValueError(f"{first[:40]!r} has no sums")
    if unseen != "0":
        raise ValueError("ss can't list them: install iproute2 there")
    chosen = numbers[len(SUMS) :] if only_new else numbers[: len(SUMS)]
    sums = {f"clients.{name}": count(n) for name, n in zip(SUMS, chosen, strict=True)}
    counters = parse_tables(table)
    return sums | {name: counters[name] for name in OF_THE_HOST}
