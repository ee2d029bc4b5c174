"""canary: a configuration against the default on real traffic."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intop.command.exit_codes import NO_GAIN
from intop.command.hosts import host_options, named_hosts
from intop.command.options import json_option, subcommand, workload_option
from intop.command.output import show_result
from intop.command.passwords import connecting
from intop.command.running import beginning, connect_to, stored_context
from intop.deploy.canary.options import (
    block_options,
    end_options,
    limit_options,
    pause_options,
    side_options,
    source_options,
)
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.deploy.canary.opening import Observation
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
@side_options
@source_options
@block_options
@limit_options
@pause_options
@end_options
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
    keep: bool,
    again: bool,
    **options: Any,
) -> None:
    """Compare a configuration with the default on real traffic.

    It needs no load generator and restarts nothing. Default and configuration take turns in blocks,
    in random order, under the guard. Every second host has the opposite order. Sources are nginx's
    access log, the kernel's TCP_INFO, and metrics of your own ([canary.metrics.NAME] of the file).
    It ends when P99 is certainly lower, or anything certainly worse, or when the difference is
    certainly small. Where only keys of TCP's sending are changed, delivery time stands for P99. A
    block beyond a limit is stopped at once.

    The host has its own values again at the end, after Ctrl-C, and when intop or the connection
    dies; only --keep leaves others there. An interrupted canary goes on. The exit code is 3 without
    a gain, and 1 after a harm.
    """
    from intop.deploy.canary.view import canary_section

    hosts = named_hosts(words, config, **{name: options.pop(name) for name in HOST_OPTIONS})
    pairs, margin = options.pop("pairs"), options.pop("margin")
    observation = _observation(**options)

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
        side = _side(context, whole=winner, name=configuration, accept_costs=accept_costs)
        result = _measured(
            side,
            hosts or [side.task.clusters()[0].load_balancer],
            observation,
            pairs=pairs,
            margin=margin,
            keep=keep,
            again=again,
        )
    show_result(result, lambda canary: [canary_section(side.task.title, canary)], as_json=as_json)
    if result.outcome == "harm":
        sys.exit(1)
    if not result.is_gain:
        sys.exit(NO_GAIN)


@dataclass(frozen=True, kw_only=True)
class _Side:
    """The configuration of a canary."""

    task: "Task"
    values: "Configuration"
    title: str


def _observation(
    *,
    log_path: str,
    connections: str | None,
    block_s: int,
    washout_s: int,
    limit_times: float,
    limit_errors: float,
    between: str | None,
    alert: str | None,
) -> "Observation":
    """Return the way in which hosts are observed. Raises UsageError for hours that are none."""
    from intop.deploy.canary.limits import BlockLimits
    from intop.deploy.canary.opening import Observation
    from intop.deploy.canary.pauses import pauses
    from intop.deploy.canary.testbed import Timing

    return Observation(
        timing=Timing(block_s=block_s, washout_s=washout_s),
        limits=BlockLimits(p99_times=limit_times, failed_points=limit_errors),
        log_path=log_path,
        connections=connections or "",
        before_block=pauses(between, alert),
    )


def _side(context: "Context", *, whole: bool, name: str, accept_costs: bool) -> _Side:
    """Return the configuration of these options. Raises UsageError and ResultMissingError."""
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
        return _Side(task=tasks[0], values=Configuration(dict(baseline.values)), title=name)
    deployment = sole_deployment(context, whole=whole or bool(name), accept_costs=accept_costs)
    if deployment is None:
        sys.exit(NO_GAIN)
    return _Side(
        task=task_of(context, deployment),
        values=Configuration(dict(deployment.values)),
        title=f"the {deployment.origin}",
    )


def _measured(
    side: _Side,
    hosts: "Sequence[HostAddress]",
    observation: "Observation",
    *,
    pairs: int,
    margin: float,
    keep: bool,
    again: bool,
) -> "Canary":
    """Carry out a canary. Raises what `canary_testbed` and `execute` do."""
    from contextlib import ExitStack
    from datetime import UTC, datetime

    from intop.deploy.canary.opening import canary_testbed
    from intop.deploy.canary.own_metrics import check_hosts
    from intop.deploy.canary.stage import CanaryRequest, Switchback
    from intop.domain.canary import DELIVERY
    from intop.run.executor import OpenTestbeds, execute

    task, timing = side.task, observation.timing
    study = task.context.study
    check_hosts(study.canary.metrics, study.path, len(hosts))
    task.begin(Switchback.name)  # rather than wait for the host, which another process holds
    with ExitStack() as stack:
        testbeds = [
            stack.enter_context(canary_testbed(task, address, side.values, observation))
            for address in hosts
        ]
        request = CanaryRequest(
            configuration=side.values,
            title=side.title,
            hosts=len(hosts),
            pairs=pairs,
            block_s=timing.block_s,
            washout_s=timing.washout_s,
            margin=margin,
            limits=observation.limits,
            only_new=all(testbed.sources.only_new for testbed in testbeds),
            sees_delivery=all(testbed.sources.delivery is not None for testbed in testbeds),
            metrics=study.canary.metrics,
        )
        for testbed in testbeds:
            testbed.needs_delivery = request.judged_by == DELIVERY
        result = execute(Switchback(task, request, again=again), on=OpenTestbeds(testbeds))
        if keep and result.may_stay:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            for testbed in testbeds:
                testbed.keep(side.values, _record(task, side.title, now))
                task.context.progress.say(
                    f"{task.title}: {testbed.name} keeps {side.title} until its next reboot. To "
                    "undo it, run: intop rollback"
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
