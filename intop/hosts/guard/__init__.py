"""The guard: changes to a host that the host itself undoes when we go silent.

The work is done by `guard.sh` on the host, which is joined from its parts when it is sent. The
modules here hold its lease (`session`) and speak with it (`state`, `script`).
"""

from intop.hosts.guard.guarded_host import GuardedHost
from intop.hosts.guard.session import GOES_ON, guarded
from intop.hosts.guard.state import rollback, status, unwritable

__all__ = ["GOES_ON", "GuardedHost", "guarded", "rollback", "status", "unwritable"]
