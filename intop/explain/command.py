"""explain: what a winner's gain is made of."""

from typing import TYPE_CHECKING, Any

import click

from intop.command import dry_run
from intop.command.options import (
    dry_run_option,
    figures_options,
    only_option,
    stage_options,
    subcommand,
)
from intop.command.running import exit_by, run_stage
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.mediation import BlockedMechanism


def _asked(why: bool, blocks: tuple[str, ...], rounds: int | None, **options: Any) -> dry_run.Asked:
    from intop.explain.mediation import MediationRequest

    asked_blocks(blocks, rounds, why=why)
    if not why:
        return dry_run.Asked(stages=("explain",), options=options)
    return dry_run.Asked(
        stages=("mediation",), options=options, request=MediationRequest(rounds=rounds)
    )


@subcommand(
    "explain",
    "intop explain",
    "intop explain --arch x86 --workload slt --figures figures",
    "intop explain --why                          how much each mechanism brings",
    "intop explain --why --block rto:net.ipv4.tcp_rto_min_us=5000",
    "intop explain --json",
)
@stage_options
@only_option
@figures_options
@click.option(
    "--why",
    is_flag=True,
    help="Measure instead what is left of the gain without each mechanism that the verdict names.",
)
@click.option(
    "--block",
    "blocks",
    multiple=True,
    metavar="MECHANISM:KEY=VALUE",
    help="With --why: what takes a mechanism away, in place of what intop knows. Repeatable.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=4),
    help="With --why: how often each side is measured.  [default: explain_pairs of the file]",
)
@dry_run_option(dry_run.measuring_as(_asked))
def command(why: bool, blocks: tuple[str, ...], rounds: int | None, **options: Any) -> None:
    """Find the fewest changes that keep the gain.

    intop first tries the few changes of which the models expect most. If these lose part of the
    gain, it leaves each change out of the winner, and makes each one alone. The changes that matter
    are judged against the default in fresh rounds, beside the whole winner. The exit code is 3 when
    no verdict is a gain, and then nothing is measured.

    --why tests the causes. A verdict names mechanisms, such as a full accept queue, by what the
    kernel counted. Each of them is taken away on both sides by other parameters, and the remaining
    gain is measured.
    """
    from intop.domain.verdict import Verdict
    from intop.explain.stage import explain as stage
    from intop.explain.view import explanation as text

    wanted = asked_blocks(blocks, rounds, why=why)
    if why:
        from intop.explain.mediation import MediationRequest, mediate
        from intop.explain.mediation_view import mediation

        request = MediationRequest(blocks=tuple(wanted), rounds=rounds)
        results = run_stage(lambda task: mediate(task, request), mediation, **options)
        if all(isinstance(outcome, Verdict) for outcome in results.values()):
            exit_by(results)
        return
    results = run_stage(stage, text, **options)
    exit_by(
        {
            title: outcome if isinstance(outcome, Verdict) else outcome.verdict
            for title, outcome in results.items()
        }
    )


def asked_blocks(
    texts: tuple[str, ...], rounds: int | None, *, why: bool
) -> "list[BlockedMechanism]":
    """Return the values of --block by mechanism. Raises UsageError."""
    from intop.domain.mediation import BlockedMechanism

    if not why and (texts or rounds is not None):
        raise UsageError("--block and --rounds belong to --why")
    values: dict[str, dict[str, str]] = {}
    for text in texts:
        mechanism, colon, change = text.partition(":")
        key, equals, value = change.partition("=")
        if not all((mechanism, colon, key, equals, value)):
            raise UsageError(f"--block {text}: say MECHANISM:KEY=VALUE")
        values.setdefault(mechanism, {})[key] = value
    return [BlockedMechanism(mechanism=name, values=of) for name, of in values.items()]
