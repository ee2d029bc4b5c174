"""The plan that apply carries out, or would: one made now, or one from a file, looked at again."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from intop.cli.running import connect_to, stored_context
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.domain.plan import Plan
    from intop.hosts.host import Connect
    from intop.run.context import Context


@contextmanager
def planned(
    *,
    path: Path | None,
    config: Path | None,
    arch: str | None,
    workload: str | None,
    winner: bool,
    accept_costs: bool,
    persist: bool,
    rounds: int | None,
    writes: bool = False,
) -> "Iterator[tuple[Context, Mapping[str, Plan | None]]]":
    """The context of a campaign, and the plan of each architecture; None: keep the defaults.

    Raises what making a plan does, IntopError where a host has changed since the plan of a file,
    and UsageError for that together with options that belong to intop plan.
    """
    from intop.config.plan_file import read_plan
    from intop.deploy.plan import plan, plan_again

    if path is None:
        with stored_context(config, arch, workload, connect=connect_to, writes=writes) as context:
            found = plan(
                context,
                whole=winner,
                persist=persist,
                rounds=rounds,
                accept_costs=accept_costs,
            )
            yield context, found
        return
    said = {
        "--arch": arch,
        "--workload": workload,
        "--winner": winner,
        "--accept-costs": accept_costs,
        "--persist": persist,
        "--rounds": rounds,
    }
    if given := [option for option, value in said.items() if value]:
        raise UsageError(
            f"{path} says what is to be done: leave {', '.join(given)} out here, and say it to "
            f"intop plan --output {path}"
        )
    saved = read_plan(path)
    archs = [one.deployment.arch for one in saved.plans]

    def connect(study: "Study", _: Iterable[str]) -> "Connect":
        return connect_to(study, [name for name in archs if name in study.clusters])

    with stored_context(config, None, None, connect=connect, writes=writes) as context:
        yield context, plan_again(context, saved)
