"""workload learn: a workload from access logs."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from intop.command.options import Group, examples, json_option
from intop.command.output import print_result, say
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.workload import Recording
    from intop.traffic.log_format import LineFormat, Values
    from intop.traffic.profile import Profile
    from intop.traffic.recorder import Recorder

LOOK = 50
"""Lines by which a format is guessed."""


@click.group("workload", cls=Group, epilog=examples("intop workload learn access.log"))
def group() -> None:
    """Learn a workload from access logs."""


@group.command(
    epilog=examples(
        "intop workload learn /var/log/nginx/access.log >> intop.toml",
        "intop workload learn access.log.2.gz access.log.1 access.log --name shop",
        "ssh web1 cat /var/log/nginx/access.log | intop workload learn -",
        "intop workload learn a.log --format '$msec $connection_requests \"$request\" $status'",
        "intop workload learn access.log --record shop.recording >> intop.toml",
    )
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--format",
    "line_format",
    metavar="FORMAT",
    help="combined, common, json, or the text of nginx's log_format.  [default: guessed]",
)
@click.option("--name", default="learned", show_default=True, help="The workload's name.")
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the times and paths of the busiest hour, which the workload then replays.",
)
@json_option
def learn(
    logs: tuple[str, ...],
    line_format: str | None,
    name: str,
    record: Path | None,
    as_json: bool,
) -> None:
    """Write a [workload.NAME] from access logs.

    Logs are plain or gzip files, the oldest first, or - for standard input. The result has paths
    with weights, the rate and burstiness of the busiest hour, and connections, as far as the log
    tells. Comments say what each number rests on, and what to log for the rest. Query strings and
    paths that may hold a secret are never written.
    """
    from intop.config.workload import is_workload_name
    from intop.document.machine import to_json
    from intop.traffic.access_log import Lines
    from intop.traffic.profile import profile_of
    from intop.traffic.workload_text import workload_text

    try:
        is_workload_name(name)
    except ValueError as error:
        raise UsageError(f"--name: {error}") from error
    lines = Lines(logs)
    places = iter(lines)
    first = list(islice(places, LOOK))
    chosen = _format([text for _, text in first], line_format)
    recorder = _recorder(record)
    profile = profile_of(_read(chain(first, places), chosen), recorder)
    for note in lines.notes:
        say(note)
    if lines.too_long:
        say(f"{lines.too_long:,} lines are longer than any request, and were left out")
    _check(profile, chosen)
    recording = _recording(record, recorder, profile)
    if as_json:
        print_result(to_json(summary(profile)))
        return
    try:
        print_result(workload_text(profile, name, recording).rstrip("\n"))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _recorder(file: Path | None) -> "Recorder | None":
    """Return what records. Raises UsageError where a file is that is no recording."""
    from intop.config.recording import is_recording
    from intop.traffic.recorder import Recorder

    if file is None:
        return None
    try:
        if file.exists() and not is_recording(file):
            raise UsageError(f"--record: {file} is there, and is no recording: name another file")
    except OSError as error:
        raise UsageError(f"--record: {file} can't be read: {error.strerror or error}") from error
    return Recorder()


def _recording(
    file: Path | None, recorder: "Recorder | None", profile: "Profile"
) -> "Recording | None":
    from intop.traffic.workload_text import places

    if file is None or recorder is None or not profile.paths:
        return None
    try:
        return recorder.write(file, profile, places(profile))
    except ValueError as error:
        raise UsageError(f"--record: {error}") from error
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"--record: {file} can't be written: {why}") from error


def _format(lines: list[str], asked: str | None) -> "LineFormat":
    from intop.traffic.log_format import format_of, guessed

    if not lines:
        raise UsageError("the log is empty")
    if asked is not None:
        return format_of(asked)
    chosen = guessed(lines)
    say(f"format: {chosen.name}, as guessed from the first {len(lines)} lines")
    return chosen


def _read(
    lines: Iterator[tuple[str, str]], chosen: "LineFormat"
) -> "Iterator[tuple[str, Values | None]]":
    for place, text in lines:
        yield place, chosen.parse(text)


def _check(profile: "Profile", chosen: "LineFormat") -> None:
    """Raise UsageError where hardly any line has the format."""
    if profile.unreadable * 2 > profile.lines:
        raise UsageError(
            f"{profile.unreadable:,} of {profile.lines:,} lines are not of the format "
            f"{chosen.name!r}, such as {', '.join(profile.examples)}: give its log_format by "
            "--format"
        )


def summary(profile: "Profile") -> dict[str, object]:
    """Return the profile for programs."""
    return {
        "lines": profile.lines,
        "unreadable": profile.unreadable,
        "requests": profile.counted,
        "left_out": dict(profile.left_out),
        "rate_rps": profile.rate_rps,
        "dispersion": {f"{n / 10:g} s": profile.dispersion(n) for n in (1, 10, 100)},
        "requests_per_connection": profile.requests_per_connection,
        "request_s": profile.mean_request_s,
        "idle_s": profile.median_idle_s,
        "protocols": dict(profile.protocols),
        "secret_requests": profile.secret_requests,
        "paths": [asdict(path) for path in profile.paths],
    }
