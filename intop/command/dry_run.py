"""--dry-run: what a command would do, printed in its place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intop.command.options import study_of
from intop.command.output import interruptible, say, show_result

UNTOUCHED = "nothing was written"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The request of a command with its options."""

    stages: tuple[str, ...]
    options: Mapping[str, Any]
    """The options that all stages have."""
    request: object = None
    """The request to a stage of its own, such as a sweep over connections."""
    archs: tuple[str, ...] = ()
    """The architectures, where they are arguments of the command."""


def measuring(*stages: str) -> Callable[..., None]:
    """Return what takes the place of a command that measures these stages."""
    return measuring_as(lambda **options: Asked(stages=stages, options=options))


def measuring_as(ask: Callable[..., Asked]) -> Callable[..., None]:
    """Return what takes the place of a command whose options `ask` checks."""

    def instead(**options: Any) -> None:
        with interruptible(UNTOUCHED):
            asked = ask(**options)
            _show(asked, **asked.options)

    return instead


def _show(
    asked: Asked,
    *,
    config: Path | None,
    as_json: bool,
    arch: str | None = None,
    workload: str | None = None,
    new: bool = False,
    again: bool = False,
    samples: int | None = None,
    rounds: int | None = None,
    **_: Any,
) -> None:
    from intop.inspect.dry_run import DryRunRequest, dry_run
    from intop.inspect.dry_run_view import measuring as text
    from intop.inspect.status import is_begun
    from intop.run.context import chosen_archs, chosen_workloads, taking_part
    from intop.store import opened_to_read

    study = study_of(config)
    for name in asked.archs:
        chosen_archs(study, name)
    workloads = chosen_workloads(study, workload)
    request = DryRunRequest(
        stages=asked.stages,
        new=new,
        again=again,
        samples=samples,
        rounds=rounds,
        of_its_own=asked.request,
    )
    with opened_to_read(study.store, say) as store:
        archs = asked.archs or taking_part(
            study, arch, lambda name: is_begun(study, store, name), say
        )
        intended = dry_run(study, store, archs, workloads, request)
    show_result(intended, text, as_json=as_json)
