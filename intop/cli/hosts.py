"""`intop status` and `intop rollback`: what is applied where, and giving it back.

Neither needs a store or writes a file on this machine. Status reads the study's, if it has one.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from intop.cli import campaign_status, dry_run
from intop.cli.exit_codes import DRIFT
from intop.cli.options import (
    Command,
    F,
    arch_option,
    config_option,
    dry_run_option,
    examples,
    interruptible,
    json_option,
    say,
    show_result,
    study_of,
)
from intop.cli.passwords import connecting
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.answer import Answer
    from intop.domain.cluster import HostAddress
    from intop.domain.host_state import HostState

T = TypeVar("T")


def host_options(command: F) -> F:
    """Which hosts: those of a study, or named ones."""
    options = (
        click.option(
            "--host",
            "words",
            multiple=True,
            metavar="[USER@]HOST[:PORT]",
            help="This host in place of a study's; may be said several times.",
        ),
        click.option(
            "--state-dir", help="With --host: the guard's folder.  [default: /var/lib/intop]"
        ),
        click.option(
            "--config-root",
            help="With --host: the folder that stands for / where its sysctl.d is.  [default: /]",
        ),
        click.option(
            "--sudo",
            is_flag=False,
            flag_value="yes",
            type=click.Choice(["yes", "ask"]),
            help="With --host: by sudo there; --sudo=ask asks for its password.",
        ),
        click.option("--key-file", help="With --host: the private key, else the agent's or yours."),
        click.option("--known-hosts", help="With --host: the file of known host keys."),
    )
    for option in reversed(options):
        command = option(command)
    return config_option(arch_option(command))


@click.command(
    cls=Command,
    epilog=examples(
        "intop status                              all load balancers of the study",
        "intop status --arch arm --json",
        "intop status --host root@10.0.0.5:22      needs no study",
        "intop status --campaign                   how far it is; asks no host",
        "watch -n 10 intop status --campaign       from another terminal",
    ),
)
@host_options
@click.option("--campaign", is_flag=True, help="Only how far the campaign is; asks no host.")
@json_option
def status(campaign: bool, as_json: bool, **options: Any) -> None:
    """Say what is applied where, by whom and since when, what has drifted, how far the campaign is.

    With --json only the one: the hosts, or with --campaign the campaign.

    Asks the load balancers, since no other host is ever changed. It changes nothing, but for one
    thing: a host whose session has been silent for its lease, and whose watchdog is dead, restores
    itself when it is asked. The exit code is 1 when a host can't be asked, and else 4 when one is
    no longer as it was applied: a key was changed by hand, lost, or is overridden by another file,
    or our file is missing or edited. The line of each host says which, for a monitoring system.
    """
    from intop.pipeline.host_states import states
    from intop.report import host_states as report

    with interruptible("nothing was changed"):
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


@click.command(
    cls=Command,
    epilog=examples(
        "intop rollback                                       all load balancers of the study",
        "intop rollback --host root@10.0.0.5:22 --host lb2    needs no study, and no store",
        "intop rollback --arch arm --force                    also from a session that is alive",
    )
    + "\n\nWithout intop, as root on the host: sh /var/lib/intop/guard.sh /var/lib/intop rollback",
)
@host_options
@click.option(
    "--force",
    is_flag=True,
    help="Also where a session is alive, and what somebody else has changed since.",
)
@click.option("--yes", is_flag=True, help="Don't ask before --force takes a host away.")
@json_option
@dry_run_option(dry_run.of_rollback)
def rollback(force: bool, yes: bool, as_json: bool, **options: Any) -> None:
    """Give hosts back as they were before intop, from what lies on them.

    Also what apply has left there, with the file of --persist. What a session has set, watchdogs
    restore by themselves once it has been silent for its lease; this does it now.
    The exit code is 0 when every host is as before, also when there was nothing to roll back.
    """
    from intop.pipeline.host_states import roll_back, states
    from intop.report import host_states as report

    if yes and not force:
        raise UsageError("--yes belongs to --force: nothing is asked without it")
    with interruptible("what is not rolled back yet, intop status shows"):
        addresses, missing = chosen_hosts(**options)
        connect = connecting(addresses)
        if force and not yes:
            _confirm(states(addresses, connect))
        found = roll_back(addresses, connect, force=force)
    show_result([*missing, *found], report.rollbacks, as_json=as_json)
    if missing or not all(answer.said and answer.said.is_as_before for answer in found):
        sys.exit(1)


def chosen_hosts(
    config: Path | None, arch: str | None, words: Sequence[str], **options: Any
) -> tuple[list["HostAddress"], list["Answer[None]"]]:
    """The hosts that were asked for, and an error for each lab among them that isn't up."""
    from intop.pipeline.host_states import tuned_hosts

    hosts = named_hosts(words, **options)
    if not hosts:
        return tuned_hosts(study_of(config), arch, say)
    source = click.get_current_context().get_parameter_source("config")
    if arch is not None or source is ParameterSource.COMMANDLINE:
        raise UsageError("--host names the hosts itself: leave --config and --arch out")
    return hosts, []


def named_hosts(words: Sequence[str], **options: Any) -> list["HostAddress"]:
    """The hosts of --host. Raises UsageError for options that belong to it and stand alone."""
    from intop.config.study import host_address

    given = {name: value for name, value in options.items() if value is not None}
    if given and not words:
        option = next(iter(given)).replace("_", "-")
        raise UsageError(f"--{option} belongs to --host: a study's file says it for its hosts")
    if given.get("sudo") == "yes":
        given["sudo"] = True
    return [host_address(word, **given) for word in words]


def _confirm(found: Sequence["Answer[HostState]"]) -> None:
    """Ask before a host is taken from a session, or what somebody else has set is overwritten."""
    from intop.report.host_states import at_stake

    if not (lines := [line for answer in found for line in at_stake(answer)]):
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("\n".join([*lines, "Say --yes to roll back all the same"]))
    say("\n".join(lines))
    if not click.confirm("Roll back all the same?", err=True):
        say("nothing was changed")
        sys.exit(1)
