"""The record that a host keeps with applied values: whose they are, and since when."""

import getpass
import socket
from contextlib import suppress

from intop.version import __version__


def provenance(
    *,
    since: str,
    study: str,
    campaign: int,
    started_at: str,
    arch: str,
    workload: str,
    origin: str,
) -> dict[str, str]:
    """Return the record. Times are UTC in ISO 8601: of the apply, and of the campaign's start."""
    user = "somebody"
    with suppress(KeyError, OSError):
        user = getpass.getuser()
    return {
        "since": since,
        "study": study,
        "campaign": str(campaign),
        "started_at": started_at,
        "arch": arch,
        "workload": workload,
        "origin": origin,
        "by": f"{user}@{socket.gethostname()}",
        "version": __version__,
    }
