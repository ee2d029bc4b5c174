"""`intop apply`: a deployment on its hosts, one after the other, as long as each shows a gain."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from intop.cli import dry_run
from intop.cli.exit_codes import NO_GAIN
from intop.cli.options import (
    Command,
    dry_run_option,
    examples,
    interruptible,
    print_result,
    say,
    show_result,
    stage_options,
    winner_option,
)
from intop.cli.running import connect_to, stored_context
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.rollout import RolloutPlan


@click.command(
    "apply",
    cls=Command,
    epilog=examples(
        "intop apply --dry-run                        what would be done where",
        "intop apply --arch x86                       until the hosts are started anew",
        "intop apply --persist --yes                  for good, and without a question",
        "intop apply --workload slt --rounds 20 --json",
    )
    + "\n\nintop status shows what has become of it, intop rollback undoes it.",
)
@stage_options
@winner_option
@click.option(
    "--persist",
    is_flag=True,
    help="Also write /etc/sysctl.d/99-zz-intop.conf, so that the values survive a reboot.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=2),
    help="How often both sides are measured on each host, at most.  [default: judge_pairs of the "
    "file]",
)
@click.option(
    "--accept-no-loss",
    is_flag=True,
    help="Go on also where the gain is not significant, but never where it is worse.",
)
@click.option("--yes", is_flag=True, help="Don't ask before hosts are changed.")
@dry_run_option(dry_run.of_apply)
def command(
    config: Path | None,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    winner: bool,
    persist: bool,
    rounds: int | None,
    accept_no_loss: bool,
    yes: bool,
) -> None:
    """Apply what a campaign has found, host by host, each after an A/B of its own.

    The first load balancer of an architecture is the canary. On each the values are measured
    against the default, and stay only if that is a gain; else the host is given back and the
    roll-out stops (exit code 3). They last until a reboot, or for good with --persist.
    """
    from intop.pipeline.applying import check, plan_rollouts, roll_out
    from intop.report import rollout as report
    from intop.report.machine import to_json

    told = "hosts that were told of as applied stay so, and the others are as before: intop status"
    with (
        interruptible(told),
        stored_context(config, arch, workload, connect=connect_to, writes=True) as context,
    ):
        plans = plan_rollouts(context, whole=winner, persist=persist, rounds=rounds)
        if not plans:
            print_result(to_json([]) if as_json else report.KEEP_THE_DEFAULTS)
            sys.exit(NO_GAIN)
        check(plans)
        _confirm(plans, [str(line) for line in report.planned(plans)], yes=yes)
        found = [roll_out(context, plan, accept_no_loss=accept_no_loss) for plan in plans]
    show_result(found, report.done, as_json=as_json)
    if any(rollout.is_stopped for rollout in found):
        sys.exit(NO_GAIN)


def _confirm(plans: "Sequence[RolloutPlan]", lines: Sequence[str], *, yes: bool) -> None:
    """Ask before hosts are changed."""
    say("\n".join(lines))
    if yes or all(host.has_it for plan in plans for host in plan.hosts):
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("this changes hosts, and nobody is there to be asked: say --yes to do it")
    if not click.confirm("Go on?", err=True):
        say("nothing was changed")
        sys.exit(1)
