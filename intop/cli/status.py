"""status: what is applied where, what has drifted, how far the campaign is."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.command.exit_codes import DRIFT
from intop.command.hosts import chosen_hosts, host_options
from intop.command.options import json_option, study_of, subcommand
from intop.command.output import interruptible, say, show_result
from intop.command.passwords import connecting
from intop.errors import IntopError, UsageError

if TYPE_CHECKING:
    from intop.domain.campaign_status import CampaignStatus


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
    """Show what is applied where, and how far the campaign is.

    For each load balancer: who applied what and when, and what differs from that now. The exit code
    is 4 when a key was changed by hand, lost, or overridden by another file, or when our file is
    missing or edited. It is 1 when a host can't be asked. The line of each host names the reason,
    for a monitoring system.

    With --json it prints one part only: the hosts, with --campaign the campaign, with --workers the
    workers and campaigns. With --campaign the exit code is 1 when there is no campaign yet.

    status changes nothing, with one exception. A host whose session was silent for its lease, and
    whose watchdog is dead, restores itself when it is asked.
    """
    if campaign and workers:
        raise UsageError("--campaign and --workers exclude each other")
    with interruptible("nothing was changed"):
        if workers:
            _show_workers(as_json=as_json, **options)
            return
        if campaign:
            _show_only_campaign(as_json=as_json, **options)
            return
        from intop.inspect import host_states_view as report
        from intop.inspect.host_states import states

        addresses, missing = chosen_hosts(**options)
        answers = states(addresses, connecting(addresses))
    show_result([*missing, *answers], report.states, as_json=as_json)
    if not (as_json or options["words"]):
        _show_campaign_below(**options)
    if missing or any(answer.result is None for answer in answers):
        sys.exit(1)
    if any(answer.result is not None and answer.result.drift for answer in answers):
        sys.exit(DRIFT)


def _show_only_campaign(
    config: Path | None, arch: str | None, *, as_json: bool, **options: Any
) -> None:
    """Print how far the campaign is. Raises UsageError beside --host."""
    if any(value not in (None, ()) for value in options.values()):
        raise UsageError("--campaign asks no host: leave --host and what belongs to it out")
    status = _campaign(config, arch)
    _show_campaign(status, as_json=as_json)
    if status.campaign is None:
        sys.exit(1)


def _show_campaign_below(config: Path | None, arch: str | None, **_: Any) -> None:
    """Print how far the campaign is. A store that can't be read hides no host."""
    try:
        _show_campaign(_campaign(config, arch), as_json=False)
    except IntopError as error:
        say(f"intop: {error}")


def _show_campaign(status: "CampaignStatus", *, as_json: bool) -> None:
    from intop.inspect.status_view import campaign

    show_result(status, campaign, as_json=as_json)


def _campaign(config: Path | None, arch: str | None) -> "CampaignStatus":
    from intop.inspect.status import campaign_status, is_begun
    from intop.run.context import taking_part
    from intop.store import opened_to_read

    study = study_of(config)
    with opened_to_read(study.store, say) as store:
        archs = taking_part(study, arch, lambda name: is_begun(study, store, name), lambda _: None)
        return campaign_status(study, store, archs, tuple(study.workloads.values()))


def _show_workers(config: Path | None, arch: str | None, *, as_json: bool, **options: Any) -> None:
    """Print all campaigns and workers of the study's store. Raises UsageError beside --host."""
    from intop.inspect import store_view as report
    from intop.inspect.status import fleet
    from intop.store import opened_to_read

    if arch is not None or any(value not in (None, ()) for value in options.values()):
        raise UsageError(
            "--workers is about the whole store: leave --arch, --host and the like out"
        )
    study = study_of(config)
    with opened_to_read(study.store, say) as store:
        show_result(fleet(study.store, store), report.fleet, as_json=as_json)
