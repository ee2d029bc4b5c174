"""soak: hours of constant load on what is applied."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from intop.command import dry_run
from intop.command.exit_codes import LIMIT
from intop.command.options import (
    dry_run_option,
    figures_options,
    force_option,
    stage_options,
    study_of,
    subcommand,
)
from intop.command.output import say
from intop.command.passwords import connecting
from intop.command.running import beginning, connect_to, run_stage

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.domain.soak import Soak
    from intop.soak.stage import SoakRequest


def _asked(**options: Any) -> dry_run.Asked:
    request, options = asked_soak(**options)
    return dry_run.Asked(stages=("soak",), options=options, request=request)


@subcommand(
    "soak",
    "intop soak --workload slt                    an hour on the first load balancer, as it is",
    "intop soak --workload slt --hours 24 --limit-ms 80 --limit-errors 1",
    "intop soak --hours 8 --limit-memory-mib 500 --on-limit roll-back",
    "intop soak --hours 8 --json --figures figures",
    more="What is soaked is what the load balancer has: intop apply puts a winner there before.",
)
@stage_options
@click.option(
    "--hours",
    type=click.FloatRange(min=0, max=240, min_open=True),
    default=1.0,
    show_default=True,
    help="How long.",
)
@click.option(
    "--block-s",
    type=click.IntRange(min=1, max=3600),
    default=60,
    show_default=True,
    help="Seconds of a block. Each is stored before the next one begins.",
)
@click.option(
    "--rate",
    "rate_rps",
    type=click.FloatRange(min=0, min_open=True),
    help="Requests/s.  [default: as the workload has it]",
)
@click.option(
    "--replica",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Which load balancer, where the study has several.",
)
@click.option(
    "--limit-ms",
    type=click.FloatRange(min=0, min_open=True),
    help="End when P99 is above this.",
)
@click.option(
    "--limit-errors",
    type=click.FloatRange(min=0, max=100),
    metavar="PERCENT",
    help="End when more of the requests fail.",
)
@click.option(
    "--limit-memory-mib",
    type=click.FloatRange(min=0, min_open=True),
    help="End when nginx's processes have more memory.",
)
@click.option(
    "--in-a-row",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="A limit is broken by so many blocks in a row.",
)
@click.option(
    "--on-limit",
    type=click.Choice(["keep", "roll-back"]),
    default="keep",
    show_default=True,
    help="What becomes of the applied values when a limit is broken.",
)
@click.option("--again", is_flag=True, help="Begin again; what was measured stays in the store.")
@force_option
@figures_options
@dry_run_option(dry_run.measuring_as(_asked))
def command(again: bool, on_limit: str, **options: Any) -> None:
    """Put hours of load on what is applied, and find drift.

    Nothing is set, and nginx is not restarted. Each block has rate, P99, errors, memory, open files
    and TIME_WAIT. Their growth in an hour has an interval, and growth of nginx's memory or files is
    a leak. A limit ends the soak early, and so do blocks without any answer. An interrupted soak
    goes on. A finished one is read from the store. The exit code is 3 when a limit was broken or a
    leak was found.
    """
    from intop.soak.stage import soak as stage
    from intop.soak.view import soak as text

    request, options = asked_soak(**options)
    soaks = run_stage(
        lambda task: stage(task, request, again=again),
        text,
        choose=beginning(),
        connect=connect_to,
        **options,
    )
    if on_limit == "roll-back":
        _roll_back(study_of(options["config"]), soaks)
    if any(soak.broken or soak.leak == "leak" for soak in soaks.values()):
        sys.exit(LIMIT)


def asked_soak(
    *,
    hours: float,
    block_s: int,
    rate_rps: float | None,
    replica: int,
    limit_ms: float | None,
    limit_errors: float | None,
    limit_memory_mib: float | None,
    in_a_row: int,
    **options: Any,
) -> "tuple[SoakRequest, dict[str, Any]]":
    """Return what to soak, and the options that all stages have. Raises UsageError."""
    from intop.domain.soak import Limits
    from intop.run.context import chosen_archs, chosen_workloads
    from intop.soak.stage import SoakRequest

    limits = Limits(
        p99_ms=limit_ms,
        errors=None if limit_errors is None else limit_errors / 100,
        memory_mib=limit_memory_mib,
        in_a_row=in_a_row,
    )
    request = SoakRequest(
        hours=hours, block_s=block_s, rate_rps=rate_rps, limits=limits, replica=replica
    )
    study = study_of(options["config"])
    for arch in chosen_archs(study, options["arch"]):
        for workload in chosen_workloads(study, options["workload"]):
            request.check(study, arch, workload)
    return request, options


def _roll_back(study: "Study", soaks: "Mapping[str, Soak]") -> None:
    """Roll back the load balancers of soaks that a limit has ended.

    Exits with 1 where one is not as before.
    """
    from intop.inspect.host_states import roll_back, tuned_hosts
    from intop.inspect.host_states_view import rollbacks

    names = {soak.host for soak in soaks.values() if soak.broken}
    addresses = [host for host in tuned_hosts(study, None, say)[0] if host.name in names]
    if not addresses:
        return
    answers = roll_back(addresses, connecting(addresses), force=False)
    for block in rollbacks(answers):
        for line in block.lines:
            say(line)
    if not all(answer.result and answer.result.is_as_before for answer in answers):
        sys.exit(1)
