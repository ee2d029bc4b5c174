"""causes: what is left of a gain without a mechanism."""

from typing import TYPE_CHECKING, Any

import click

from intop.command import dry_run
from intop.command.options import dry_run_option, only_option, stage_options, subcommand
from intop.command.running import exit_by, run_stage
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.mediation import BlockedMechanism


def _asked(blocks: tuple[str, ...], rounds: int | None, **options: Any) -> dry_run.Asked:
    from intop.causes.stage import MediationRequest

    asked_blocks(blocks)
    request = MediationRequest(rounds=rounds)
    return dry_run.Asked(stages=("causes",), options=options, request=request)


@subcommand(
    "causes",
    "intop causes",
    "intop causes --arch x86 --workload slt --rounds 12",
    "intop causes --block rto:net.ipv4.tcp_rto_min_us=5000",
    "intop causes --json",
)
@stage_options
@only_option
@click.option(
    "--block",
    "blocks",
    multiple=True,
    metavar="MECHANISM:KEY=VALUE",
    help="What takes a mechanism away, in place of what intop knows. Repeatable.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=4),
    help="How often each side is measured.  [default: explain_pairs of the file]",
)
@dry_run_option(dry_run.measuring_as(_asked))
def command(blocks: tuple[str, ...], rounds: int | None, **options: Any) -> None:
    """Test the causes of a gain that the verdict names.

    A verdict names mechanisms, such as a full accept queue, by what the kernel counted. intop takes
    each of them away on both sides by other parameters, and measures what is left of the gain. The
    exit code is 3 when no verdict is a gain, and then nothing is measured.
    """
    from intop.causes.stage import MediationRequest, mediate
    from intop.causes.view import mediation
    from intop.domain.verdict import Verdict

    request = MediationRequest(blocks=tuple(asked_blocks(blocks)), rounds=rounds)
    results = run_stage(lambda task: mediate(task, request), mediation, **options)
    if all(isinstance(outcome, Verdict) for outcome in results.values()):
        exit_by(results)


def asked_blocks(texts: tuple[str, ...]) -> "list[BlockedMechanism]":
    """Return the values of --block by mechanism. Raises UsageError."""
    from intop.domain.mediation import BlockedMechanism

    values: dict[str, dict[str, str]] = {}
    for text in texts:
        mechanism, colon, change = text.partition(":")
        key, equals, value = change.partition("=")
        if not all((mechanism, colon, key, equals, value)):
            raise UsageError(f"--block {text}: say MECHANISM:KEY=VALUE")
        values.setdefault(mechanism, {})[key] = value
    return [BlockedMechanism(mechanism=name, values=of) for name, of in values.items()]
