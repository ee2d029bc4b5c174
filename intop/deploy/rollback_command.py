"""rollback: restore hosts as they were before intop."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from intop.command.dry_run import UNTOUCHED
from intop.command.hosts import chosen_hosts, host_options
from intop.command.options import dry_run_option, json_option, subcommand
from intop.command.output import confirm, interruptible, show_result
from intop.command.passwords import connecting

if TYPE_CHECKING:
    from intop.domain.host_state import Answer, HostState


def _dry_run(force: bool, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ARG001
    """Print what would be restored, by the hosts' own answers."""
    from intop.inspect.dry_run_view import rollback
    from intop.inspect.host_states import states

    with interruptible(UNTOUCHED):
        addresses, missing = chosen_hosts(**options)
        answers: list[Any] = [*missing, *states(addresses, connecting(addresses))]
    show_result(answers, lambda each: rollback(each, force=force), as_json=as_json)
    if any(answer.result is None for answer in answers):
        sys.exit(1)


@subcommand(
    "rollback",
    "intop rollback                                       all load balancers of the study",
    "intop rollback --host root@10.0.0.5:22 --host lb2    needs no study, and no store",
    "intop rollback --arch arm --force                    also from a session that is alive",
    more="Without intop, as root on the host: sh /var/lib/intop/guard.sh /var/lib/intop rollback",
)
@host_options
@click.option(
    "--force",
    is_flag=True,
    help="Also where a session is alive, and what somebody else has changed since.",
)
@click.option("--yes", is_flag=True, help="Don't ask, as --force does before it takes a host away.")
@json_option
@dry_run_option(_dry_run)
def command(force: bool, yes: bool, as_json: bool, **options: Any) -> None:
    """Restore hosts from the record kept on each of them.

    It also removes what apply has left there, with the file of --persist. Watchdogs restore a host
    by themselves once its session was silent for its lease. rollback does it now. The exit code is
    0 when every host is as before, also when there was nothing to restore.
    """
    from intop.inspect import host_states_view as report
    from intop.inspect.host_states import roll_back, states

    with interruptible("what is not rolled back yet, intop status shows"):
        addresses, missing = chosen_hosts(**options)
        connect = connecting(addresses)
        if force and not yes:
            _confirm(states(addresses, connect))
        answers = roll_back(addresses, connect, force=force)
    show_result([*missing, *answers], report.rollbacks, as_json=as_json)
    if missing or not all(answer.result and answer.result.is_as_before for answer in answers):
        sys.exit(1)


def _confirm(answers: Sequence["Answer[HostState]"]) -> None:
    """Ask before a host is taken from a session, or what somebody else has set is overwritten."""
    from intop.inspect.host_states_view import at_stake

    if lines := [line for answer in answers for line in at_stake(answer)]:
        confirm("Say --yes to roll back all the same", "Roll back all the same?", lines)
