"""Running a stage: its study, store and hosts, and the output of its results."""

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from intop.command.exit_codes import NO_GAIN
from intop.command.options import dask_address, study_of
from intop.command.output import output_folder, print_result, say, say_figures
from intop.command.passwords import connecting
from intop.errors import LabDownError, ResultMissingError, UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.domain.cluster import Cluster, HostAddress, LabSpec
    from intop.domain.verdict import Verdict
    from intop.hosts.host import Connect, Host
    from intop.run.context import Context, Task
    from intop.store import Campaign, Store


def connect_to(study: "Study", archs: Iterable[str]) -> "Connect":
    """Return the way to the hosts of these architectures; passwords are asked for now."""
    return reaching(replica for name in archs for replica in study.clusters[name])


def reaching(replicas: "Iterable[Cluster | LabSpec]") -> "Connect":
    """Return the way to the hosts of these replicas; passwords are asked for now."""
    return connecting([host for replica in replicas for host in _hosts_of(replica)])


def _hosts_of(replica: "Cluster | LabSpec") -> "tuple[HostAddress, ...]":
    """Return the hosts that may want a password. Of labs, only machines do."""
    from intop.domain.cluster import LabSpec

    if not isinstance(replica, LabSpec):
        return tuple(replica.hosts)
    if replica.kind != "machine":
        return ()
    from intop.lab.cluster import cluster

    try:
        return tuple(cluster(replica.name).hosts)
    except LabDownError:
        return ()  # connecting to it raises the same


def connect_to_none(_study: "Study", _archs: Iterable[str]) -> "Connect":
    """Return the way of a command that reaches no host, and asks for no password."""

    def refuse(address: "HostAddress") -> "Host":
        raise UsageError(
            f"{address.name}: this command reaches no host: it only reads the store, or workers "
            "measure for it"
        )

    return refuse


def connect_unless_workers(study: "Study", archs: Iterable[str]) -> "Connect":
    """Return the way to the hosts, or to none where workers measure."""
    return connect_to_none(study, archs) if study.workers else connect_to(study, archs)


@contextmanager
def stored_context(
    config: Path | None,
    arch: str | None,
    workload: str | None,
    *,
    choose: "Callable[[Store, Study], Campaign] | None" = None,
    connect: "Callable[[Study, Iterable[str]], Connect]" = connect_to_none,
    writes: bool = False,
    force: bool = False,
) -> Iterator["Context"]:
    """Open a study's latest campaign to read, or also to write; or the one that `choose` picks.

    Only `choose` may begin a campaign, and only for it a store is made. Raises ResultMissingError,
    with the commands to type, where there is no campaign yet.
    """
    from intop.document.progress import progress
    from intop.run import prerequisites
    from intop.run.at_work import AtWork
    from intop.run.context import Context, chosen_archs, chosen_workloads, taking_part
    from intop.store import is_begun, opened, opened_to_read

    study = study_of(config)
    archs, workloads = chosen_archs(study, arch), chosen_workloads(study, workload)
    dask = dask_address()
    open_store = opened if choose or (writes and is_begun(study.store)) else opened_to_read
    with open_store(study.store, say) as store:
        # Asked before the progress display takes the terminal.
        campaign = None
        if store is not None:
            campaign = choose(store, study) if choose else store.latest(study.name)
        if store is None or campaign is None:
            names = [load.name for load in workloads]
            raise ResultMissingError(prerequisites.no_campaign(study, archs, names, asked()))
        if choose:
            begun = [name for name in archs if not store.is_empty(campaign, name)]
            archs = taking_part(study, arch, begun.__contains__, say)
        connected = connect(study, archs)
        with progress() as shown, AtWork(store, say=shown.say) as at_work:
            yield Context(
                study=study,
                store=store,
                campaign=campaign,
                connect=connected,
                progress=shown,
                archs=archs,
                workloads=workloads,
                force=force,
                dask=dask,
                at_work=at_work,
                check_ready=_check_ready,
            )


def _check_ready(task: "Task") -> None:
    from intop.inspect.doctor import check_ready

    check_ready(task)


def check_up(config: Path | None, arch: str | None, workload: str | None) -> None:
    """Raises ResultMissingError where neither a store nor a cluster to measure on is there."""
    from intop.run import prerequisites
    from intop.run.context import chosen_workloads, taking_part
    from intop.store import is_begun

    study = study_of(config)
    if is_begun(study.store):
        return
    workloads = chosen_workloads(study, workload)
    archs = taking_part(study, arch, lambda _: False, say)
    down = prerequisites.labs_down(study, archs, [load.name for load in workloads])
    if len(down) == len(archs) * len(workloads):
        raise ResultMissingError("\n".join(prerequisites.lines(study, down, asked())))


def asked() -> str:
    """Return the present command as it was typed: `compare x86 arm --markdown`.

    Without --config, --arch and --workload, which a line of several commands gives each of them.
    """
    context = click.get_current_context()
    words = [str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is not ParameterSource.COMMANDLINE or name in ("config", "arch", "workload"):
            continue
        # Options without an argument of the command are in `meta`.
        value = context.params[name] if name in context.params else context.meta[f"intop.{name}"]
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        elif isinstance(parameter, click.Option):
            words += [word for each in values for word in (parameter.opts[0], str(each))]
        else:
            words += map(str, values)
    return shlex.join(words)


def beginning(*, new: bool = False) -> "Callable[[Store, Study], Campaign]":
    """Return what chooses the campaign of a stage that may be the first: a new one, or the latest.

    A study without a campaign gets its first one.
    """
    from intop.run import campaigns

    return campaigns.new if new else campaigns.latest_or_new


def run_stage(
    stage: "Callable[[Task], Any]",
    text_of: Callable[[str, Any], Any],
    *,
    config: Path | None,
    arch: str | None,
    workload: str | None,
    as_json: bool,
    choose: "Callable[[Store, Study], Campaign] | None" = None,
    connect: "Callable[[Study, Iterable[str]], Connect]" = connect_unless_workers,
    force: bool = False,
    figures: Path | None = None,
    also: "tuple[Callable[[Context], dict[str, Any]], Callable[[str, Any], Any]] | None" = None,
    drawn: "Callable[[Task], object] | None" = None,
) -> dict[str, Any]:
    """Run a stage for all that was asked for and is ready. Print and return the results by title.

    `choose` picks the campaign, and may begin one (`beginning`); without it the latest goes on.
    `also` returns what the results say together, and makes a text of it. `drawn` returns what
    figures take beside a result. What is not ready is named on stderr, with the missing commands.

    Raises:
        ResultMissingError: where nothing is ready.
    """
    from intop.document.machine import to_json
    from intop.document.text import show
    from intop.run import prerequisites

    if choose:
        check_up(config, arch, workload)
    with stored_context(
        config, arch, workload, choose=choose, connect=connect, writes=True, force=force
    ) as context:
        # A folder that can't be made is said before anything is measured.
        folder = output_folder(figures, "--figures") if figures else None
        results, missing = _results(stage, context)
        lacking = prerequisites.lines(context.study, missing, asked())
        if not results:
            raise ResultMissingError("\n".join(lacking))
        together = also[0](context) if also else {}
        ready = [task for task in context.subjects() if task.title in results]
        beside = {task.title: drawn(task) for task in ready} if folder and drawn else {}
    if as_json:
        print_result(to_json(results | together))
    else:
        show(*(text_of(title, result) for title, result in results.items()))
        show(*(also[1](title, result) for title, result in together.items()) if also else ())
    if folder:
        figured = {title: (result, beside.get(title)) for title, result in results.items()}
        say_figures(folder, figured | together)
    for line in lacking:
        say(f"left out: {line}")
    return results


def _results(
    stage: "Callable[[Task], Any]", context: "Context"
) -> tuple[dict[str, Any], list[ResultMissingError]]:
    """Return the results of what is ready, by title, and an error for each of the rest."""
    from intop.run.prerequisites import lab_down

    results: dict[str, Any] = {}
    missing: list[ResultMissingError] = []
    for task in context.subjects():
        try:
            results[task.title] = stage(task)
        except ResultMissingError as error:
            missing.append(error)
        except LabDownError as error:
            missing.append(lab_down(task.subject.arch, task.workload.name, error))
    return results, missing


def exit_by(verdicts: "Mapping[str, Verdict]") -> None:
    """Say which gains are in doubt. Exit with 3 when not one verdict, by title, is a gain."""
    for title, verdict in verdicts.items():
        if verdict.outcome == "gain, but":
            then = "More rounds may tell (judge_pairs)"
            if verdict.further is not None:
                then = f"More pairs may tell: intop verify --more {verdict.further.pairs}"
            say(f"{title}: gain, but {verdict.doubts}. {then}. Or deploy it as it is: intop plan")
    if not any(verdict.is_gain for verdict in verdicts.values()):
        sys.exit(NO_GAIN)
