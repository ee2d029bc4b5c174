"""`intop plan`: what deploying changes on each host. `intop apply` carries that out."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.command.exit_codes import NO_GAIN
from intop.command.hosts import host_options, named_hosts
from intop.command.options import (
    costs_option,
    deployed_option,
    json_option,
    roll_out_options,
    subcommand,
    winner_option,
    workload_option,
)
from intop.command.output import print_result, say, show_result
from intop.command.passwords import connecting
from intop.command.running import connect_to, stored_context
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.hosts.host import Connect


@subcommand(
    "plan",
    "intop plan                                    all load balancers of the study",
    "intop plan --arch x86 --markdown > plan.md    for a pull request",
    "intop plan --persist --output plan.json       for a review; then: intop apply plan.json",
    "intop plan --winner                           the whole winner, not the smallest set",
    "intop plan --configuration ubuntu-18.04       a baseline that across has shown to be a gain",
    "intop plan --host root@10.0.0.5:22            a host that the study doesn't have",
)
@host_options
@workload_option
@winner_option
@deployed_option
@costs_option
@roll_out_options
@json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print it as Markdown.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the plan to this file, for intop apply.",
)
def command(
    config: Path | None,
    arch: str | None,
    workload: str | None,
    words: Sequence[str],
    winner: bool,
    configuration: str,
    accept_costs: bool,
    persist: bool,
    rounds: int | None,
    as_json: bool,
    as_markdown: bool,
    output: Path | None,
    **options: Any,
) -> None:
    """Show what would change on each host, and why.

    For each load balancer: the value now and then, the measured contribution and the risk. Also
    what else sets the parameter at boot (sysctl.d, sysctl.conf, TuneD), who wins, and what to do.
    It notes unclear guardrails, and whether the winner was measured under other loads.

    Nothing is written on any host, with one exception. A host whose session was silent for its
    lease, and whose watchdog is dead, restores itself when it is asked. intop apply carries out the
    file of --output, and refuses it when a host has changed since. The exit code is 3 without a
    gain that keeps the guardrails, and 1 when a host can't be asked.
    """
    from intop.deploy.plan import plan as stage
    from intop.deploy.plan_file import write_plan
    from intop.deploy.plan_view import sections
    from intop.document.markdown import as_markdown as markdown

    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other")
    hosts = named_hosts(words, config, **options)

    def connect(study: "Study", archs: Iterable[str]) -> "Connect":
        return connecting(hosts) if hosts else connect_to(study, archs)

    with stored_context(config, arch, workload, connect=connect) as context:
        by_arch = stage(
            context,
            whole=winner,
            persist=persist,
            rounds=rounds,
            hosts=hosts,
            accept_costs=accept_costs,
            configuration=configuration,
        )
    if as_markdown:
        print_result(markdown(sections(by_arch)))
    else:
        show_result(by_arch, sections, as_json=as_json)
    plans = [plan for plan in by_arch.values() if plan is not None]
    if not plans:
        sys.exit(NO_GAIN)
    if output is not None:
        write_plan(output, plans, whole=winner, configuration=configuration)
        then = f"carry it out: intop apply {output}"
        if hosts:
            then = "for review only"
        elif any(plan.problems for plan in plans):
            then = "intop apply refuses it, since something is in the way"
        say(f"written: {output}; {then}")
    if any(answer.result is None for plan in plans for answer in plan.hosts):
        sys.exit(1)
