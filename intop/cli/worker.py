"""worker: measures for campaigns that ask through the store."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.command import values
from intop.command.options import subcommand
from intop.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from intop.config.study import Study
    from intop.domain.job import Spot


@subcommand(
    "worker",
    "intop worker                                   all replicas of ./intop.toml",
    "intop worker -c web.toml -c api.toml           of two studies with one store",
    "intop worker --arch x86 --replica 2            one replica only",
    "intop worker --metrics-port 9400 --log-json    under systemd or Kubernetes",
)
@click.option(
    "--config",
    "-c",
    "configs",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="A study's file; may be given several times.  [default: as for other commands]",
)
@click.option(
    "--arch",
    type=click.Choice(["x86", "arm"]),
    help="Only this architecture.",
    shell_complete=values.archs,
)
@click.option(
    "--replica",
    "replicas",
    type=click.IntRange(min=1),
    multiple=True,
    help="Only this replica, counted from 1 in the file; may be given several times.",
)
@click.option("--name", help="The worker's name; no two may have the same.  [default: HOST:PID]")
@click.option(
    "--until-idle",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="End when there was nothing to do for so long.  [default: never]",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(min=1, max=65535),
    help="Answer Prometheus at this port, at /metrics.",
)
@click.option(
    "--metrics-address",
    default="127.0.0.1",
    help="Address of --metrics-port.  [default: 127.0.0.1]",
)
@click.option("--log-json", is_flag=True, help="Log lines of JSON, for programs.")
def command(
    configs: tuple[Path, ...],
    arch: str | None,
    replicas: tuple[int, ...],
    log_json: bool,
    **options: Any,
) -> None:
    """Measure trials for campaigns on other machines.

    A worker takes trials of studies with workers = true from the store, as far as it reaches their
    clusters, and stores the results. Start as many as you like, on any machine, and end them at any
    time. Another worker measures an unfinished trial again, and the hosts restore themselves.

    All studies must have the same store. SQLite is for workers on one machine. For several machines
    give the study a PostgreSQL store.
    """
    from intop.command.options import study_of
    from intop.document.progress import JsonProgress, progress

    studies = [study_of(config) for config in configs or (None,)]
    check_studies(studies)
    spots = spots_of(studies, arch, replicas)
    with JsonProgress() if log_json else progress() as shown:
        _work(studies, spots, shown, **options)


def _work(
    studies: "Sequence[Study]",
    spots: "Sequence[Spot]",
    shown: Any,
    *,
    name: str | None,
    until_idle: float | None,
    metrics_port: int | None,
    metrics_address: str,
) -> None:
    from intop.command.running import reaching
    from intop.run.remote import this_process
    from intop.run.worker import Worker
    from intop.store import opened

    by_name = {study.name: study for study in studies}
    connect = reaching(by_name[s.study].clusters[s.arch][s.replica] for s in spots)
    with opened(studies[0].store, shown.say) as store:
        worker = Worker(
            name=name or this_process(),
            studies=by_name,
            spots=spots,
            store=store,
            connect=connect,
            progress=shown,
        )
        if metrics_port is not None:
            from intop.run.worker_metrics import serve

            serve(worker, metrics_address, metrics_port)
        shown.say(f"{worker.name}: serves {', '.join(map(str, spots))}")
        worker.run(idle_s=until_idle)
        shown.say(
            f"{worker.name}: nothing to do for {until_idle:g} s; {worker.counted.measured} trials "
            "measured"
        )


def check_studies(studies: "Sequence[Study]") -> None:
    """Raises UsageError for studies that one worker can't serve."""
    first = studies[0]
    names = [study.name for study in studies]
    for study in studies:
        if not study.workers:
            raise UsageError(
                f"{study.path}: its commands measure by themselves. Set workers = true in [study]"
            )
        if study.store != first.store:
            raise UsageError(
                f"{first.path} and {study.path} have different stores: start a worker for each"
            )
        if names.count(study.name) > 1:
            raise UsageError(f"two studies are called {study.name}: a worker can serve one of them")


def spots_of(
    studies: "Iterable[Study]", arch: str | None, replicas: tuple[int, ...]
) -> "list[Spot]":
    """Return the replicas that were asked for. Raises UsageError where there is none."""
    from intop.domain.job import Spot

    spots = [
        Spot(study=study.name, arch=name, replica=n)
        for study in studies
        for name, clusters in study.clusters.items()
        if arch in (None, name)
        for n in range(len(clusters))
        if not replicas or n + 1 in replicas
    ]
    if not spots:
        raise UsageError(
            "none of these studies has such a replica: leave --arch or --replica out, or see "
            "[cluster] in the files"
        )
    return spots
