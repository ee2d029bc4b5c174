"""`intop apply`: carries out a plan, host by host, as long as each shows a gain."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.command.dry_run import UNTOUCHED
from intop.command.exit_codes import NO_GAIN
from intop.command.options import (
    costs_option,
    deployed_option,
    dry_run_option,
    roll_out_options,
    stage_options,
    subcommand,
    winner_option,
)
from intop.command.output import confirm, interruptible, print_result, show_result
from intop.command.running import connect_to, stored_context
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.deploy.result import Plan
    from intop.hosts.host import Connect
    from intop.run.context import Context


def _dry_run(
    as_json: bool,
    accept_no_loss: bool,  # noqa: ARG001
    after_canary: bool,
    yes: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Print the plan that apply would carry out, and whether anything is in the way."""
    from intop.deploy.plan_view import sections

    with interruptible(UNTOUCHED), _planned(**options) as (context, by_arch):
        plans = [plan for plan in by_arch.values() if plan is not None]
        _check_canaries(context, plans, wanted=after_canary)
    show_result(by_arch, sections, as_json=as_json)
    if not plans:
        sys.exit(NO_GAIN)
    if any(plan.problems for plan in plans):
        sys.exit(1)


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
@deployed_option
@costs_option
@roll_out_options
@click.option(
    "--accept-no-loss",
    is_flag=True,
    help="Go on also where the gain is not significant, but never where it is worse.",
)
@click.option(
    "--after-canary",
    is_flag=True,
    help="Only what intop canary has tried on real traffic and called a gain.",
)
@click.option("--yes", is_flag=True, help="Don't ask before hosts are changed.")
@dry_run_option(_dry_run)
def command(
    as_json: bool, accept_no_loss: bool, after_canary: bool, yes: bool, **options: Any
) -> None:
    """Apply the result, host by host, each after an A/B.

    apply makes a plan as intop plan does, shows it, and carries it out. With PLAN it carries out
    the file of intop plan --output, and refuses it when a host has changed since. While anything is
    in the way on any host, none is touched (exit code 1).

    intop takes the load balancers of an architecture one by one. It compares the values with the
    default on each host. They stay only if that is a gain that breaks no guardrail. Otherwise the
    host is restored, and the roll-out stops (exit code 3). The values last until a reboot, or for
    good with --persist.
    """
    from intop.deploy import rollouts_view as report
    from intop.deploy.apply import check, roll_out
    from intop.deploy.plan_view import sections
    from intop.document.machine import to_json
    from intop.document.text import show

    state = "hosts that were told of as applied stay so, and the others are as before: intop status"
    with interruptible(state), _planned(writes=True, **options) as (context, by_arch):
        plans = [plan for plan in by_arch.values() if plan is not None]
        if not plans:
            print_result(to_json([]) if as_json else report.NOTHING)
            sys.exit(NO_GAIN)
        _check_canaries(context, plans, wanted=after_canary)
        show(*sections(by_arch), stderr=True)
        check(plans)
        _confirm(plans, yes=yes)
        rollouts = [roll_out(context, plan, accept_no_loss=accept_no_loss) for plan in plans]
    show_result(rollouts, report.rollouts, as_json=as_json)
    if any(rollout.is_stopped for rollout in rollouts):
        sys.exit(NO_GAIN)


def _check_canaries(context: "Context", plans: "Sequence[Plan]", *, wanted: bool) -> None:
    """Raises UsageError for values that no canary has called a gain, where that is wanted."""
    if wanted:
        from intop.deploy.canary.tried import check_tried

        for plan in plans:
            check_tried(context, plan.deployment)


def _confirm(plans: "Sequence[Plan]", *, yes: bool) -> None:
    """Ask before hosts are changed."""
    if not yes and not all(plan.is_done for plan in plans):
        confirm("this changes hosts, and nobody is there to be asked: say --yes to do it")


@contextmanager
def _planned(
    *,
    path: Path | None,
    config: Path | None,
    arch: str | None,
    workload: str | None,
    winner: bool,
    configuration: str,
    accept_costs: bool,
    persist: bool,
    rounds: int | None,
    writes: bool = False,
) -> "Iterator[tuple[Context, Mapping[str, Plan | None]]]":
    """The context of a campaign, and the plan of each architecture; None: keep the defaults.

    Raises what making a plan does, IntopError where a host has changed since the plan of a file,
    and UsageError for that together with options that belong to intop plan.
    """
    from intop.deploy.plan import plan, plan_again
    from intop.deploy.plan_file import read_plan

    if path is None:
        with stored_context(config, arch, workload, connect=connect_to, writes=writes) as context:
            plans = plan(
                context,
                whole=winner,
                persist=persist,
                rounds=rounds,
                accept_costs=accept_costs,
                configuration=configuration,
            )
            yield context, plans
        return
    wishes = {
        "--arch": arch,
        "--workload": workload,
        "--winner": winner,
        "--configuration": configuration,
        "--accept-costs": accept_costs,
        "--persist": persist,
        "--rounds": rounds,
    }
    if given := [option for option, value in wishes.items() if value]:
        raise UsageError(
            f"{path} says what is to be done: leave {', '.join(given)} out here, and say it to "
            f"intop plan --output {path}"
        )
    saved = read_plan(path)
    archs = [each.deployment.arch for each in saved.plans]

    def connect(study: "Study", _: Iterable[str]) -> "Connect":
        return connect_to(study, [name for name in archs if name in study.clusters])

    with stored_context(config, None, None, connect=connect, writes=writes) as context:
        yield context, plan_again(context, saved)
