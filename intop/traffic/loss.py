"""Loss on the way to a host's clients, by the segments that the host has sent again."""

from intop.errors import CommandError
from intop.hosts.answers import lines
from intop.hosts.host import Host, output
from intop.hosts.kernel_counters import parse_tables

TABLE = "/proc/net/snmp"


def resent_percent(host: Host) -> float | None:
    """Return the share (%) of its TCP segments that a host has sent again since it started.

    Segments to backends count, too, so it is less than what clients far away lose. None for a host
    that has sent nothing. Raises CommandError for a table that is none.
    """
    try:
        tables = parse_tables(lines(output(host, f"cat {TABLE}")))
        sent, again = tables["Tcp.OutSegs"], tables["Tcp.RetransSegs"]
    except (ValueError, KeyError, IndexError) as error:
        raise CommandError(host.address.name, f"{TABLE} can't be read: {error}") from error
    return 100 * again / (sent + again) if sent + again else None
