"""`intop apply`: carries out a plan, host by host, as long as each shows a gain."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.cli import dry_run
from intop.cli.exit_codes import NO_GAIN
from intop.cli.options import (
    costs_option,
    dry_run_option,
    roll_out_options,
    stage_options,
    subcommand,
    winner_option,
)
from intop.cli.output import confirm, interruptible, print_result, show_result
from intop.cli.planned import planned

if TYPE_CHECKING:
    from intop.domain.plan import Plan


@subcommand(
    "apply",
    "intop apply --dry-run                        what would be done where",
    "intop apply --arch x86                       until the hosts are started anew",
    "intop apply --persist --yes                  for good, and without a question",
    "intop apply --workload slt --rounds 20 --json",
    "intop apply plan.json                        what intop plan --output has written",
    more="intop status shows what has become of it, intop rollback undoes it.",
)
@click.argument(
    "path", required=False, type=click.Path(path_type=Path, dir_okay=False), metavar="[PLAN]"
)
@stage_options
@winner_option
@costs_option
@roll_out_options
@click.option(
    "--accept-no-loss",
    is_flag=True,
    help="Go on also where the gain is not significant, but never where it is worse.",
)
@click.option("--yes", is_flag=True, help="Don't ask before hosts are changed.")
@dry_run_option(dry_run.of_apply)
def command(as_json: bool, accept_no_loss: bool, yes: bool, **options: Any) -> None:
    """Apply what a campaign has found, host by host, each after an A/B on that host.

    Makes a plan as intop plan does, shows it, and carries it out; or carries out the PLAN that
    intop plan --output has written, as it is: it is refused when a host has changed since. While
    anything is in the way on any host, none is touched (exit code 1).

    The first load balancer of an architecture is the canary. On each the values are measured
    against the default, and stay only if that is a gain that breaks no guardrail; else the host is
    given back and the roll-out stops (exit code 3). They last until a reboot, or for good with
    --persist.
    """
    from intop.deploy.apply import check, roll_out
    from intop.report import host_states as report
    from intop.report.document.text import show
    from intop.report.machine import to_json
    from intop.report.plan import sections

    told = "hosts that were told of as applied stay so, and the others are as before: intop status"
    with interruptible(told), planned(writes=True, **options) as (context, found):
        plans = [plan for plan in found.values() if plan is not None]
        if not plans:
            print_result(to_json([]) if as_json else report.KEEP_THE_DEFAULTS)
            sys.exit(NO_GAIN)
        show(*sections(found), stderr=True)
        check(plans)
        _confirm(plans, yes=yes)
        rollouts = [roll_out(context, plan, accept_no_loss=accept_no_loss) for plan in plans]
    show_result(rollouts, report.rollouts, as_json=as_json)
    if any(rollout.is_stopped for rollout in rollouts):
        sys.exit(NO_GAIN)


def _confirm(plans: "Sequence[Plan]", *, yes: bool) -> None:
    """Ask before hosts are changed."""
    if not yes and not all(plan.is_done for plan in plans):
        confirm("this changes hosts, and nobody is there to be asked: say --yes to do it")
