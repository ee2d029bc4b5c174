"""The part of `intop status` that is about the study's campaign."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from intop.cli.options import study_of
from intop.cli.output import say, show_result
from intop.errors import IntopError, UsageError

if TYPE_CHECKING:
    from intop.domain.campaign_status import CampaignStatus


def only(config: Path | None, arch: str | None, *, as_json: bool, **options: Any) -> None:
    """Print how far the campaign is, and ask no host. Raises UsageError beside --host."""
    if any(value not in (None, ()) for value in options.values()):
        raise UsageError("--campaign asks no host: leave --host and what belongs to it out")
    _show(_found(config, arch), as_json=as_json)


def beside_hosts(config: Path | None, arch: str | None, **_: Any) -> None:
    """Print how far the campaign is. A store that can't be read is said, and hides no host."""
    try:
        _show(_found(config, arch), as_json=False)
    except IntopError as error:
        say(f"intop: {error}")


def of_workers(config: Path | None, arch: str | None, *, as_json: bool, **options: Any) -> None:
    """Print all campaigns and workers of the study's store. Raises UsageError beside --host."""
    from intop.inspect.status import fleet
    from intop.report import store as report
    from intop.store import opened_to_read

    if arch is not None or any(value not in (None, ()) for value in options.values()):
        raise UsageError(
            "--workers is about the whole store: leave --arch, --host and the like out"
        )
    study = study_of(config)
    with opened_to_read(study.store, say) as store:
        show_result(fleet(study.store, store), report.fleet, as_json=as_json)


def _show(found: "CampaignStatus", *, as_json: bool) -> None:
    from intop.report import campaign_status as report

    show_result(found, report.campaign, as_json=as_json)


def _found(config: Path | None, arch: str | None) -> "CampaignStatus":
    from intop.inspect.status import campaign_status, is_begun
    from intop.run.context import chosen_archs, taking_part
    from intop.store import opened_to_read

    study = study_of(config)
    with opened_to_read(study.store, say) as store:
        archs = chosen_archs(study, arch)
        if arch is None:
            archs = taking_part(
                study, archs, lambda name: is_begun(study, store, name), lambda _: None
            )
        return campaign_status(study, store, archs, tuple(study.workloads.values()))
