"""Lines of a host's sysctl files that were meant to set something, and set nothing."""

from intop.hosts.host import Host
from intop.hosts.persistent import read_persistent

MOST_LINES = 5
"""Lines that a doctor shows of a host."""


def warnings(host: Host) -> list[str]:
    """Return a warning for each such line of the first few. Raises HostError."""
    name, lines = host.address.name, read_persistent(host).unread
    told = [f"{name}: {line}, so no program sets anything by it" for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        told.append(f"{name}: its sysctl files have more lines that set nothing")
    return told
