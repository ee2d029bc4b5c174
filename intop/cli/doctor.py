"""doctor: can every host be reached, read and measured, and do all paths answer?"""

import sys
from pathlib import Path
from typing import Any

import click

from intop.command import dry_run
from intop.command.options import (
    arch_option,
    config_option,
    dry_run_option,
    json_option,
    study_of,
    subcommand,
)
from intop.command.output import say, show_result
from intop.command.running import connect_to
from intop.errors import UsageError


def _asked(writes: bool, **options: Any) -> dry_run.Asked:
    if not writes:
        raise UsageError("--dry-run belongs to --write-test: without it doctor writes nothing")
    return dry_run.Asked(stages=(), options=options)


@subcommand(
    "doctor",
    "intop doctor",
    "intop doctor --arch arm --json",
    "intop doctor --write-test",
    "intop doctor --details",
)
@config_option
@arch_option
@json_option
@click.option(
    "--write-test",
    "writes",
    is_flag=True,
    help="Also write keys their own values, and restart the server once, as each trial does.",
)
@click.option(
    "--details",
    is_flag=True,
    help="Also show every path's answer, and the keys and choices that are out of bounds.",
)
@dry_run_option(dry_run.measuring_as(_asked))
def command(
    config: Path | None, arch: str | None, as_json: bool, writes: bool, details: bool
) -> None:
    """Check hosts, paths and the load before you measure.

    doctor reads every host. The load generator asks for every path of the workloads once, and gets
    the load scripts for that. No setting changes: --write-test writes the values that are there,
    and restarts the server.
    """
    from intop.inspect import doctor_view as report
    from intop.inspect.doctor import examine
    from intop.run.context import clusters_of, taking_part

    study = study_of(config)
    archs = taking_part(study, arch, lambda _: False, say)
    connect = connect_to(study, archs)
    diagnoses = [
        diagnosis
        for name in archs
        for diagnosis in examine(clusters_of(study, name), study, connect, writes=writes)
    ]
    view = report.examined if details else report.in_brief
    show_result(diagnoses, lambda each: view(*each), as_json=as_json)
    if any(diagnosis.problems for diagnosis in diagnoses):
        sys.exit(1)
