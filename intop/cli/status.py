"""status: what is applied where, what has drifted, how far the campaign is."""

import sys
from typing import Any

import click

from intop.cli import campaign_status
from intop.cli.exit_codes import DRIFT
from intop.cli.hosts import chosen_hosts, host_options
from intop.cli.options import json_option, subcommand
from intop.cli.output import interruptible, show_result
from intop.cli.passwords import connecting
from intop.errors import UsageError


@subcommand(
    "status",
    "intop status                              all load balancers of the study",
    "intop status --arch arm --json",
    "intop status --host root@10.0.0.5:22      needs no study",
    "intop status --campaign                   how far it is; asks no host",
    "watch -n 10 intop status --campaign       from another terminal",
    "intop status --workers                    all campaigns and workers of the store",
)
@host_options
@click.option("--campaign", is_flag=True, help="Only how far the campaign is; asks no host.")
@click.option(
    "--workers",
    is_flag=True,
    help="Only all campaigns and workers of the study's store; asks no host.",
)
@json_option
def command(campaign: bool, workers: bool, as_json: bool, **options: Any) -> None:
    """Say what is applied where, by whom and since when, what has drifted, how far the campaign is.

    With --json only the one: the hosts, with --campaign the campaign, with --workers the workers
    and campaigns.

    Asks the load balancers, since no other host is ever changed. It changes nothing, but for one
    thing: a host whose session has been silent for its lease, and whose watchdog is dead, restores
    itself when it is asked. The exit code is 1 when a host can't be asked, and else 4 when one is
    no longer as it was applied: a key was changed by hand, lost, or is overridden by another file,
    or our file is missing or edited. The line of each host says which, for a monitoring system.
    """
    from intop.deploy.host_states import states
    from intop.report import host_states as report

    if campaign and workers:
        raise UsageError("--campaign and --workers exclude each other")
    with interruptible("nothing was changed"):
        if workers:
            campaign_status.of_workers(as_json=as_json, **options)
            return
        if campaign:
            campaign_status.only(as_json=as_json, **options)
            return
        addresses, missing = chosen_hosts(**options)
        found = states(addresses, connecting(addresses))
    show_result([*missing, *found], report.states, as_json=as_json)
    if not (as_json or options["words"]):
        campaign_status.beside_hosts(**options)
    if missing or any(answer.said is None for answer in found):
        sys.exit(1)
    if any(answer.said is not None and answer.said.drift for answer in found):
        sys.exit(DRIFT)
