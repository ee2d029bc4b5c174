"""progress: the campaign by its store alone."""

import sys
from pathlib import Path

import click

from intop.command.options import arch_option, config_option, json_option, study_of, subcommand
from intop.command.output import interruptible, say, show_result
from intop.errors import UsageError


@subcommand(
    "progress",
    "intop progress",
    "intop progress --arch arm --json",
    "intop progress --all                  all campaigns and workers of the store",
    "watch -n 10 intop progress            from another terminal",
)
@config_option
@arch_option
@click.option(
    "--all",
    "of_all",
    is_flag=True,
    help="Show all campaigns and workers of the study's store.",
)
@json_option
def command(config: Path | None, arch: str | None, of_all: bool, as_json: bool) -> None:
    """Show how far the campaign is, and who is at work.

    It asks no host and changes nothing, so it may run beside tune. For each architecture and
    workload it shows the stages, the time that is left, and the verdict or the best so far. The
    exit code is 1 when there is no campaign yet.
    """
    with interruptible("nothing was changed"):
        if not of_all:
            _show_campaign(config, arch, as_json=as_json)
        elif arch is not None:
            raise UsageError("--all is about the whole store: leave --arch out")
        else:
            _show_all(config, as_json=as_json)


def _show_campaign(config: Path | None, arch: str | None, *, as_json: bool) -> None:
    from intop.inspect.status import campaign_status, is_begun
    from intop.inspect.status_view import campaign
    from intop.run.context import taking_part
    from intop.store import opened_to_read

    study = study_of(config)
    with opened_to_read(study.store, say) as store:
        archs = taking_part(study, arch, lambda name: is_begun(study, store, name), lambda _: None)
        status = campaign_status(study, store, archs, tuple(study.workloads.values()))
    show_result(status, campaign, as_json=as_json)
    if status.campaign is None:
        sys.exit(1)


def _show_all(config: Path | None, *, as_json: bool) -> None:
    from intop.inspect import store_view
    from intop.inspect.status import fleet
    from intop.store import opened_to_read

    study = study_of(config)
    with opened_to_read(study.store, say) as store:
        show_result(fleet(study.store, store), store_view.fleet, as_json=as_json)
