"""export: a campaign's result for the program that carries it out, or its trials as a table."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from intop.atomic import write_atomically
from intop.command.exit_codes import NO_GAIN
from intop.command.options import (
    arch_option,
    config_option,
    costs_option,
    deployed_option,
    subcommand,
    winner_option,
    workload_option,
)
from intop.command.output import check_is_file, print_result, say, writing
from intop.command.running import stored_context
from intop.errors import UsageError
from intop.features import stage_places

if TYPE_CHECKING:
    from intop.domain.deployment import Deployment
    from intop.run.context import Context

SYSCTL, NGINX, TUNED, ANSIBLE, JSON, CSV, PARQUET = FORMATS = (
    "sysctl",
    "nginx",
    "tuned",
    "ansible",
    "json",
    "csv",
    "parquet",
)
TABLES = (CSV, PARQUET)


@subcommand(
    "export",
    "intop export --format sysctl --output 99-zz-intop.conf",
    "intop export --format tuned --include throughput-performance --output intop-web",
    "intop export --format ansible --arch arm --output intop-arm.yml",
    "intop export --format nginx --output intop-nginx.conf      directives, to be merged",
    "intop export --format json | jq .values",
    "intop export --format csv --output trials.csv.gz          all trials, a row each",
    "intop export --format csv --counters --output trials.csv   with the kernel's counters",
    "intop export --format parquet --stage collect --output collected.parquet",
)
@config_option
@arch_option
@workload_option
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    required=True,
    help="A file for sysctl.d, the directives for nginx, a TuneD profile, an Ansible playbook, or "
    "JSON; or all trials as a table: CSV or Parquet.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write this file; of a TuneD profile, this folder, whose name is the profile's. Trials as "
    "CSV are packed where it ends in .gz, .bz2, .xz or .zip.  [default: standard output]",
)
@click.option(
    "--include", metavar="PROFILE", help="With tuned: the profile that this one builds on."
)
@click.option(
    "--stage",
    "stages",
    type=click.Choice(tuple(stage_places())),
    multiple=True,
    help="With csv and parquet: trials of this stage only; may be said several times.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="With csv and parquet: also what the kernel of each host counted, a column for each "
    "counter that was not 0 in all trials.",
)
@winner_option
@deployed_option
@costs_option
@click.option("--force", is_flag=True, help="Replace a file that intop did not write.")
def command(
    config: Path | None,
    arch: str | None,
    workload: str | None,
    form: str,
    output: Path | None,
    include: str | None,
    stages: tuple[str, ...],
    counters: bool,
    winner: bool,
    configuration: str,
    accept_costs: bool,
    force: bool,
) -> None:
    """Write the result as sysctl.d, TuneD, Ansible or a table.

    The result comes with its provenance, and with the measured contribution of each parameter. Only
    the store is read, and no host is reached. Without a gain there is nothing to write (exit code
    3).

    csv and parquet have the trials, whatever the verdict. The file FILE.schema.json beside them
    describes the columns, and `intop train --data FILE` fits the campaign's models again.
    """
    if form in TABLES:
        if include is not None or winner or configuration or accept_costs:
            raise UsageError(
                "--include, --winner, --configuration and --accept-costs don't go with --format "
                f"{form}"
            )
        _export_trials(config, arch, workload, form, output, stages, counters=counters, force=force)
        return
    if stages or counters:
        name = "--stage" if stages else "--counters"
        raise UsageError(f"{name} is for --format csv and parquet: leave it out")
    from intop.deploy.deployable import sole_deployment

    if include is not None and form != TUNED:
        raise UsageError("--include is for --format tuned: leave it out")
    with stored_context(config, arch, workload) as context:
        deployment = sole_deployment(
            context, whole=winner, accept_costs=accept_costs, configuration=configuration
        )
        text = "" if deployment is None else _text(context, deployment, form, include)
    if deployment is None:
        say("no verdict is a gain: there is nothing to export")
        sys.exit(NO_GAIN)
    for doubt in filter(None, (deployment.verdict.costs, deployment.verdict.doubts)):
        say(f"{deployment.title}: {doubt}")
    if output is None:
        print_result(text.rstrip("\n"))
    else:
        say(f"written: {_write(output, form, text, force=force)}")


def _export_trials(
    config: Path | None,
    arch: str | None,
    workload: str | None,
    form: str,
    output: Path | None,
    stages: tuple[str, ...],
    *,
    counters: bool,
    force: bool,
) -> None:
    from intop.deploy.export.frames import export
    from intop.domain.table import PARQUET as SUFFIX
    from intop.domain.table import schema_of
    from intop.frame import schema, to_csv, to_parquet

    if output is None and form == PARQUET:
        raise UsageError("--format parquet needs --output FILE")
    if output is not None and (form == PARQUET) != (output.suffix.lower() == SUFFIX):
        raise UsageError(f"--output {output}: {SUFFIX} is the ending of Parquet, and of no other")
    with stored_context(config, arch, workload) as context:
        trials = export(context, stages, counters=counters)
    data = to_parquet(trials.table) if form == PARQUET else to_csv(trials.table, output)
    if output is None:
        print_result(data.decode().rstrip("\n"))
        return
    beside = schema_of(output)
    with writing(output):
        if output.exists() and not (force or beside.exists()):
            raise UsageError(f"{output} was not written by intop. Name another, or say --force")
        write_atomically(output, data)
        write_atomically(beside, schema(trials.fields, trials.recipes))
    say(f"written: {output}: {len(trials.table)} trials; {beside}: what its columns are")


def _text(context: "Context", deployment: "Deployment", form: str, include: str | None) -> str:
    written_at = datetime.now(UTC).isoformat(timespec="seconds")
    if form == TUNED:
        from intop.deploy.export.tuned import profile

        return profile(deployment, written_at=written_at, include=include)
    if form == NGINX or (form == ANSIBLE and deployment.directives):
        from intop.deploy.deployable import nginx_of
        from intop.deploy.export.nginx import nginx_conf, nginx_text, takes_it_by

        directives, facts = nginx_of(context, deployment)
        if form == NGINX:
            return nginx_conf(deployment, directives, facts, written_at=written_at)
        from intop.deploy.export.ansible import playbook

        return playbook(
            deployment,
            written_at=written_at,
            nginx=nginx_text(deployment.directives, directives, facts),
            takes_it_by=takes_it_by(deployment, directives),
        )
    if form == ANSIBLE:
        from intop.deploy.export.ansible import playbook

        return playbook(deployment, written_at=written_at)
    if form == JSON:
        from intop.deploy.export.json import deployment_json

        return deployment_json(deployment, written_at=written_at) + "\n"
    from intop.domain.sysctl_file import sysctl_file

    return sysctl_file(deployment, written_at=written_at)


def _write(output: Path, form: str, text: str, *, force: bool) -> Path:
    """Write a file, all of it or nothing, and return its path. Raises UsageError."""
    from intop.deploy.export.tuned import FILE, checked_name

    path = output / FILE if form == TUNED else output
    with writing(path):
        if form == TUNED:
            checked_name(output.absolute().name)
            output.mkdir(exist_ok=True)
        check_is_file(path)
        if not force and path.exists() and not _is_ours(path):
            raise UsageError(f"{path} was not written by intop. Name another, or say --force")
        write_atomically(path, text.encode())
    return path


def _is_ours(path: Path) -> bool:
    from intop.domain.sysctl_file import is_ours

    text = path.read_text(encoding="utf-8", errors="replace")
    return is_ours(text) or text.startswith('{\n  "written_by": "intop ')
