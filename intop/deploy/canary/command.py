"""canary: a configuration against the default on real traffic."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.command.exit_codes import NO_GAIN
from intop.command.hosts import host_options, named_hosts
from intop.command.options import (
    costs_option,
    json_option,
    subcommand,
    winner_option,
    workload_option,
)
from intop.command.output import show_result
from intop.command.passwords import connecting
from intop.command.running import beginning, connect_to, stored_context
from intop.command.values import configurations
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.domain.canary import Canary
    from intop.domain.cluster import HostAddress
    from intop.domain.configuration import Configuration
    from intop.hosts.host import Connect
    from intop.run.context import Context, Task


HOST_OPTIONS = ("state_dir", "config_root", "sudo", "key_file", "known_hosts")
WINNER = "winner"


@subcommand(
    "canary",
    "intop canary --host root@web1.example                what intop plan would deploy",
    "intop canary --host root@web1.example --host root@web2.example",
    "intop canary --host root@web1.example --configuration NAME",
    "intop canary --host web1 --sudo --log /var/log/nginx/intop.log --block-s 120",
    "intop canary --host web1 --between 09:00-17:00 --alert 'amtool alert query --within=5m'",
)
@host_options
@workload_option
@winner_option
@click.option(
    "--configuration",
    default="",
    metavar="NAME",
    shell_complete=configurations,
    help="In place of what intop plan would deploy: winner, or a baseline. Values that need a "
    "restart of nginx are refused.",
)
@costs_option
@click.option(
    "--log",
    "log_path",
    default="",
    metavar="PATH",
    help="The access log on the host.  [default: the only one with $request_time and $status]",
)
@click.option(
    "--pairs",
    type=click.IntRange(min=1, max=500),
    default=60,
    show_default=True,
    help="The most pairs of blocks. It ends earlier where the outcome is clear.",
)
@click.option(
    "--block-s",
    type=click.IntRange(min=1, max=3600),
    default=60,
    show_default=True,
    help="Seconds of a block that count.",
)
@click.option(
    "--washout-s",
    type=click.IntRange(min=0, max=600),
    default=10,
    show_default=True,
    help="Seconds after a switch that don't count.",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=1.001, max=2),
    default=1.05,
    show_default=True,
    help="A ratio that matters. Smaller differences are none.",
)
@click.option(
    "--limit-times",
    type=click.FloatRange(min=1, min_open=True),
    default=3.0,
    show_default=True,
    help="Stop at once when P99 is so many times the default's.",
)
@click.option(
    "--limit-errors",
    type=click.FloatRange(min=0, max=100),
    default=1.0,
    show_default=True,
    metavar="POINTS",
    help="Stop at once when the share of failed requests is so many percentage points higher.",
)
@click.option(
    "--connections",
    type=click.Choice(["new", "all"]),
    help="Count only requests of connections that began in the block, or all.  [default: new, if "
    "the log has $connection]",
)
@click.option("--between", metavar="HH:MM-HH:MM", help="Set the configuration only at these hours.")
@click.option(
    "--alert",
    metavar="COMMAND",
    help="A command here that fails during an alert: then the configuration waits.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="After a gain leave the values there, until the next reboot or intop rollback. Not for "
    "keys that nginx's times can't judge.",
)
@click.option("--again", is_flag=True, help="Begin again; what was measured stays in the store.")
@json_option
def command(
    config: Path | None,
    arch: str | None,
    workload: str | None,
    words: Sequence[str],
    as_json: bool,
    winner: bool,
    configuration: str,
    accept_costs: bool,
    **options: Any,
) -> None:
    """Compare a configuration with the default on real traffic.

    It needs no load generator and restarts nothing. Default and configuration take turns in blocks,
    in random order, under the guard. Every second host has the opposite order. Requests are counted
    by nginx's access log, on the host. It ends when P99 is certainly lower, or anything certainly
    worse, or when the difference is certainly small. A block beyond a limit is stopped at once.

    The host has its own values again at the end, after Ctrl-C, and when intop or the connection
    dies; only --keep leaves others there. An interrupted canary goes on. The exit code is 3 without
    a gain, and 1 after a harm.
    """
    from intop.deploy.canary.pauses import pauses
    from intop.deploy.canary.view import canary_section

    hosts, settings = _hosts(words, config, options)
    before_block = pauses(settings.pop("between"), settings.pop("alert"))

    def connect(study: "Study", archs: Iterable[str]) -> "Connect":
        return connecting(hosts) if hosts else connect_to(study, archs)

    is_baseline = configuration not in ("", WINNER)
    with stored_context(
        config,
        arch,
        workload,
        connect=connect,
        writes=True,
        choose=beginning() if is_baseline else None,
    ) as context:
        task, values, title = _chosen(
            context, whole=winner, name=configuration, accept_costs=accept_costs
        )
        hosts = hosts or [task.clusters()[0].load_balancer]
        result = _measured(task, hosts, values, title, before_block, **settings)
    show_result(result, lambda canary: [canary_section(task.title, canary)], as_json=as_json)
    if result.outcome == "harm":
        sys.exit(1)
    if not result.is_gain:
        sys.exit(NO_GAIN)


def _hosts(
    words: Sequence[str], config: Path | None, options: dict[str, Any]
) -> "tuple[list[HostAddress], dict[str, Any]]":
    """Return the hosts that are named, and the options that are not about them."""
    own = {name: options[name] for name in HOST_OPTIONS}
    hosts = named_hosts(words, config, **own)
    return hosts, {name: value for name, value in options.items() if name not in own}


def _chosen(
    context: "Context", *, whole: bool, name: str, accept_costs: bool
) -> "tuple[Task, Configuration, str]":
    """Return the task, the configuration and its name. Raises UsageError and ResultMissingError."""
    from intop.campaign.baselines import chosen_baselines
    from intop.deploy.deployable import sole_deployment, task_of
    from intop.domain.configuration import Configuration

    if name not in ("", WINNER):
        tasks = list(context.subjects())
        if len(tasks) > 1:
            raise UsageError(
                f"{context.study.path} has several architectures or workloads. Say whose store the "
                f"result is for: --arch {tasks[0].subject.arch} --workload {tasks[0].workload.name}"
            )
        (baseline,) = chosen_baselines(context.study, (name,))
        return tasks[0], Configuration(dict(baseline.values)), name
    deployment = sole_deployment(context, whole=whole or bool(name), accept_costs=accept_costs)
    if deployment is None:
        sys.exit(NO_GAIN)
    return (
        task_of(context, deployment),
        Configuration(dict(deployment.values)),
        f"the {deployment.origin}",
    )


def _measured(
    task: "Task",
    hosts: "Sequence[HostAddress]",
    values: "Configuration",
    title: str,
    before_block: Callable[[], str],
    *,
    log_path: str,
    connections: str | None,
    keep: bool,
    again: bool,
    limit_times: float,
    limit_errors: float,
    **numbers: Any,
) -> "Canary":
    """Carry out a canary. Raises what `canary_testbed` and `execute` do."""
    from contextlib import ExitStack
    from datetime import UTC, datetime

    from intop.deploy.canary.limits import BlockLimits
    from intop.deploy.canary.stage import CanaryRequest, Switchback
    from intop.deploy.canary.testbed import canary_testbed
    from intop.run.executor import OpenTestbeds, execute

    limits = BlockLimits(p99_times=limit_times, failed_points=limit_errors)
    request = CanaryRequest(
        configuration=values, title=title, hosts=len(hosts), limits=limits, **numbers
    )

    task.begin(Switchback.name)  # rather than wait for the host, which another process holds
    with ExitStack() as stack:
        testbeds = [
            stack.enter_context(
                canary_testbed(
                    task,
                    address,
                    values,
                    log_path=log_path,
                    connections=connections or "",
                    block_s=request.block_s,
                    washout_s=request.washout_s,
                    limits=limits,
                    before_block=before_block,
                )
            )
            for address in hosts
        ]
        result = execute(Switchback(task, request, again=again), on=OpenTestbeds(testbeds))
        if result.is_gain and keep and not result.blurred:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            for testbed in testbeds:
                testbed.keep(values, _record(task, title, now))
                task.context.progress.say(
                    f"{task.title}: {testbed.name} keeps {title} until its next reboot. To undo "
                    "it, run: intop rollback"
                )
    return result


def _record(task: "Task", title: str, now: str) -> dict[str, str]:
    from intop.deploy.provenance import provenance

    campaign = task.subject.campaign
    return provenance(
        since=now,
        study=campaign.study,
        campaign=campaign.id,
        started_at=campaign.started_at,
        arch=task.subject.arch,
        workload=task.workload.name,
        origin=title,
    )
