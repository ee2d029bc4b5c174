"""status: what is applied where, and what has drifted."""

import sys
from typing import Any

from intop.command.exit_codes import DRIFT
from intop.command.hosts import chosen_hosts, host_options
from intop.command.options import json_option, subcommand
from intop.command.output import interruptible, show_result
from intop.command.passwords import connecting


@subcommand(
    "status",
    "intop status                              all load balancers of the study",
    "intop status --arch arm --json",
    "intop status --host root@10.0.0.5:22      needs no study",
)
@host_options
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Show what is applied where, and what has drifted.

    For each load balancer: who applied what and when, and what differs from that now. The exit code
    is 4 when a key was changed by hand, lost, or overridden by another file, or when our file is
    missing or edited. It is 1 when a host can't be asked. The line of each host names the reason,
    for a monitoring system.

    status changes nothing, with one exception. A host whose session was silent for its lease, and
    whose watchdog is dead, restores itself when it is asked. How far a campaign is, `intop
    progress` shows.
    """
    from intop.inspect import host_states_view
    from intop.inspect.host_states import states

    with interruptible("nothing was changed"):
        addresses, missing = chosen_hosts(**options)
        answers = states(addresses, connecting(addresses))
    show_result([*missing, *answers], host_states_view.states, as_json=as_json)
    if missing or any(answer.result is None for answer in answers):
        sys.exit(1)
    if any(answer.result is not None and answer.result.drift for answer in answers):
        sys.exit(DRIFT)
