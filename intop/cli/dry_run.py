"""--dry-run: what a command would do, told in its place."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from intop.cli.exit_codes import NO_GAIN
from intop.cli.options import study_of
from intop.cli.output import interruptible, say, show_result
from intop.errors import UsageError

UNTOUCHED = "nothing was written"


def of_stages(*stages: str) -> Callable[..., None]:
    """What takes the place of a command that measures these stages, with its options."""

    def instead(**options: Any) -> None:
        with interruptible(UNTOUCHED):
            _measuring(stages, **options)

    return instead


def of_tune(new: bool, resume: bool, **options: Any) -> None:
    """In place of tune: all of its stages; where it would ask, the latest campaign goes on."""
    if new and resume:
        raise UsageError("--new and --resume exclude each other")
    with interruptible(UNTOUCHED):
        from intop.inspect.dry_run import of_tune as stages

        _measuring(stages(), new=new, **options)


def of_explain(why: bool, blocks: tuple[str, ...], rounds: int | None, **options: Any) -> None:
    """In place of explain: the sets of changes; with --why, both sides without each mechanism."""
    from intop.cli.explain import asked_blocks

    with interruptible(UNTOUCHED):
        asked_blocks(blocks, rounds, why=why)
        if not why:
            _measuring(("explain",), **options)
            return
        rounds = rounds or study_of(options["config"]).budget.explain_pairs
        # Each mechanism adds two; most verdicts name one or two.
        _measuring(("mediation",), own_trials=6 * rounds, **options)


def of_verify(against: str, configuration: str | None, **options: Any) -> None:
    """In place of verify: the finalists, or with --configuration it and the default."""
    from intop.cli.verify import asked_workloads, without_configuration

    with interruptible(UNTOUCHED):
        if configuration is None:
            _measuring(("pick", "judge"), **without_configuration(**options))
            return
        workloads, options = asked_workloads(against, configuration, **options)
        rounds = options["rounds"] or study_of(options["config"]).budget.judge_pairs
        _measuring(("across",), own_trials=2 * rounds * len(workloads), **options)


def of_contest(names: tuple[str, ...], **options: Any) -> None:
    """In place of contest: the named baselines or all, the host's own values, and the winner."""
    with interruptible(UNTOUCHED):
        from intop.stages.baselines import chosen_baselines

        chosen = chosen_baselines(study_of(options["config"]), names)
        _measuring(("contest",), arms=len(chosen) + 2, **options)


def of_sweep(**options: Any) -> None:
    """In place of sweep: each point with each arm in each round."""
    from intop.cli.sweep import asked_sweep
    from intop.run.context import chosen_workloads

    with interruptible(UNTOUCHED):
        from intop.stages.baselines import chosen_baselines

        request, options = asked_sweep(**options)
        study = study_of(options["config"])
        named = chosen_baselines(study, request.names) if request.names else ()
        chosen = chosen_workloads(study, options["workload"])
        points = max(len(request.points_for(workload)) for workload in chosen)
        # The host's own values, and the winner.
        trials = request.rounds * points * (len(named) + 2)
        _measuring(("sweep",), own_trials=trials, **options)


def of_soak(**options: Any) -> None:
    """In place of soak: its blocks, in which nothing is set."""
    from intop.cli.soak import asked_soak

    with interruptible(UNTOUCHED):
        request, options = asked_soak(**options)
        _measuring(("soak",), own_trials=request.blocks, trial_s=request.block_s, **options)


def of_transfer(one: str, other: str, no_measure: bool, **options: Any) -> None:
    """In place of transfer: two machines, each with its default, both winners and a compromise."""
    if one == other:
        raise UsageError(f"{one} has nothing to transfer to itself: intop transfer x86 arm")
    if no_measure:
        raise UsageError("--no-measure writes nothing to any host: leave --dry-run out")
    with interruptible(UNTOUCHED):
        _measuring(("transfer",), arms=4, pair=(one, other), **options)


def of_doctor(writes: bool, **options: Any) -> None:
    """In place of doctor --write-test."""
    if not writes:
        raise UsageError("--dry-run belongs to --write-test: without it doctor writes nothing")
    with interruptible(UNTOUCHED):
        _measuring((), **options)


def of_apply(as_json: bool, accept_no_loss: bool, yes: bool, **options: Any) -> None:  # noqa: ARG001
    """In place of apply: the plan that it would carry out, and whether anything is in the way."""
    from intop.cli.planned import planned
    from intop.report.plan import sections

    with interruptible(UNTOUCHED), planned(**options) as (_, found):
        pass
    show_result(found, sections, as_json=as_json)
    plans = [plan for plan in found.values() if plan is not None]
    if not plans:
        sys.exit(NO_GAIN)
    if any(plan.problems for plan in plans):
        sys.exit(1)


def _measuring(
    stages: tuple[str, ...],
    *,
    config: Path | None,
    as_json: bool,
    arch: str | None = None,
    workload: str | None = None,
    pair: tuple[str, ...] = (),
    **request: Any,
) -> None:
    from intop.inspect.dry_run import Request, dry_run
    from intop.inspect.status import is_begun
    from intop.report.dry_run import measuring
    from intop.run.context import chosen_archs, chosen_workloads, taking_part
    from intop.store import opened_to_read

    study = study_of(config)
    for one in pair:
        chosen_archs(study, one)
    archs, workloads = pair or chosen_archs(study, arch), chosen_workloads(study, workload)
    known = Request.__dataclass_fields__
    asked = Request(stages=stages, **{k: v for k, v in request.items() if k in known})
    with opened_to_read(study.store, say) as store:
        if arch is None and not pair:
            archs = taking_part(study, archs, lambda name: is_begun(study, store, name), say)
        found = dry_run(study, store, archs, workloads, asked)
    show_result(found, measuring, as_json=as_json)
