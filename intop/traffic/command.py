"""workload: learn one from access logs, and check the load that imitates it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from intop.command.hosts import named_hosts, reach_options
from intop.command.options import (
    Group,
    config_option,
    examples,
    figures_options,
    json_option,
)
from intop.command.output import output_folder, print_result, say, say_figures, show_result
from intop.command.passwords import connecting
from intop.errors import CommandError, UsageError

if TYPE_CHECKING:
    from intop.domain.nginx.access_logs import AccessLog
    from intop.domain.workload import Recording
    from intop.hosts.host import Host
    from intop.traffic.access_log import Lines
    from intop.traffic.clients import ClientClasses
    from intop.traffic.host_log import HostLines
    from intop.traffic.log_format import LineFormat, Values
    from intop.traffic.profile import Profile
    from intop.traffic.recorder import Recorder

LOOK = 50
"""Lines by which a format is guessed."""


format_option = click.option(
    "--format",
    "line_format",
    metavar="FORMAT",
    help="combined, common, json, or the text of nginx's log_format.  [default: as the host has "
    "it, else guessed]",
)


@click.group(
    "workload",
    cls=Group,
    epilog=examples(
        "intop workload learn access.log >> intop.toml",
        "intop workload check access.log generated.log",
    ),
)
def group() -> None:
    """Learn a workload from access logs, and check it."""


@group.command(
    epilog=examples(
        "intop workload learn /var/log/nginx/access.log >> intop.toml",
        "intop workload learn access.log.2.gz access.log.1 access.log --name shop",
        "intop workload learn --host root@web1                  the log that its nginx writes",
        "ssh web1 cat /var/log/nginx/access.log | intop workload learn -",
        "intop workload learn a.log --format '$msec $connection_requests \"$request\" $status'",
        "intop workload learn access.log --record shop.recording >> intop.toml",
        "intop workload learn access.log --lab native >> intop.toml",
        "intop workload learn access.log --clients office=10.0.0.0/8 --clients vpn=2001:db8::/32",
    )
)
@click.argument("logs", nargs=-1, metavar="[LOG]...")
@click.option(
    "--host",
    "word",
    metavar="[USER@]HOST[:PORT]",
    help="Read logs of this host, by SSH. Without LOG the only one that its nginx writes.",
)
@config_option
@reach_options
@format_option
@click.option("--name", default="learned", show_default=True, help="The workload's name.")
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the times and paths of the busiest hour, which the workload then replays.",
)
@click.option(
    "--lab",
    metavar="CLUSTER",
    help="Also write what makes a lab serve these paths with their sizes and waits, over links "
    "with the delays of the clients.",
)
@click.option(
    "--clients",
    multiple=True,
    metavar="NAME=PREFIX",
    help="A class of clients by its addresses. Repeat it for others.  [default: by $tcpinfo_rtt]",
)
@json_option
def learn(
    logs: tuple[str, ...],
    word: str | None,
    config: Path | None,
    line_format: str | None,
    name: str,
    record: Path | None,
    lab: str | None,
    clients: tuple[str, ...],
    as_json: bool,
    **reach: str | None,
) -> None:
    """Write a [workload.NAME] from access logs.

    Logs are plain or gzip files, the oldest first, or - for standard input. The result has paths
    with weights, the rate and burstiness of the busiest hour, connections and
    classes of clients, as far as the log tells. Comments say what each number rests on, and what to
    log for the rest. Query strings and paths that may hold a secret are never written.
    """
    from intop.config.workload import is_workload_name
    from intop.document.machine import to_json
    from intop.traffic.clients import ClientClasses, prefixes_of
    from intop.traffic.workload_text import lab_text, workload_text

    try:
        is_workload_name(name)
    except ValueError as error:
        raise UsageError(f"--name: {error}") from error
    classes = ClientClasses(prefixes_of(clients))
    recorder = _recorder(record)
    with _opened(logs, word, config, reach) as (lines, logged):
        if logged is not None and line_format is None:
            say(f"format: as {word} has it: {logged}")
        profile = _profile(lines, line_format or logged, recorder, classes)
        lost_percent = _lost_percent(lines) if lab is not None else None
    recording = _recording(record, recorder, profile)
    if as_json:
        print_result(to_json(summary(profile)))
        return
    try:
        text = workload_text(profile, name, recording, has_classes=lab is None)
        if lab is not None:
            text += f"\n{lab_text(profile, lab, lost_percent)}"
        print_result(text.rstrip("\n"))
    except ValueError as error:
        raise UsageError(str(error)) from error


@group.command(
    epilog=examples(
        "intop workload check access.log generated.log",
        "intop workload check access.log generated.log --load-format '$msec \"$request\" $status'",
        "intop workload check access.log generated.log --figures figures",
    )
)
@click.argument("log")
@click.argument("load")
@format_option
@click.option("--load-format", metavar="FORMAT", help="The same for LOAD.  [default: guessed]")
@figures_options
@json_option
def check(
    log: str,
    load: str,
    line_format: str | None,
    load_format: str | None,
    figures: Path | None,
    as_json: bool,
) -> None:
    """Compare a load with the log that it was learned from.

    LOG is the log of the real traffic. LOAD is what the load balancer logged while intop sent the
    load, such as during intop pilot. The result has rate, bursts, connections, times, sizes and the
    mix of paths of both.
    """
    from intop.traffic.access_log import Lines
    from intop.traffic.agreement import agreement
    from intop.traffic.agreement_view import agreement_section

    folder = output_folder(figures, "--figures") if figures else None
    own = _profile(Lines((log,)), line_format)
    result = agreement(own, _profile(Lines((load,)), load_format))
    title = f"{Path(log).name} and {Path(load).name}"
    show_result(result, lambda made: [agreement_section(title, made)], as_json=as_json)
    if folder:
        say_figures(folder, {title: result})


@contextmanager
def _opened(
    logs: tuple[str, ...],
    word: str | None,
    config: Path | None,
    reach: Mapping[str, str | None],
) -> "Iterator[tuple[Lines | HostLines, str | None]]":
    """Yield the lines of these logs, and their log_format where a host's nginx has it."""
    from intop.traffic.access_log import Lines
    from intop.traffic.host_log import HostLines, log_of

    addresses = named_hosts([] if word is None else [word], config, **reach)
    if not addresses:
        if not logs:
            raise UsageError("name a log, or the host that has it by --host")
        yield Lines(logs), None
        return
    (address,) = addresses
    with closing(connecting(addresses)(address)) as host:
        log = log_of(_known_logs(host, logs), logs)
        paths = logs or ((log.path,) if log else ())
        yield HostLines(host, paths), log.text if log and log.text else None


def _known_logs(host: "Host", logs: Sequence[str]) -> "tuple[AccessLog, ...]":
    """Return the access logs that a host's nginx writes; none where they are named without it.

    Raises CommandError where nginx shows none, and none is named.
    """
    from intop.traffic.host_log import logs_on

    try:
        return logs_on(host)
    except CommandError:
        if not logs:
            raise
        return ()


def _lost_percent(lines: "Lines | HostLines") -> float | None:
    """Return what a host's clients lose, as the host counts it; None for logs of this machine."""
    from intop.traffic.host_log import HostLines
    from intop.traffic.loss import resent_percent

    return resent_percent(lines.host) if isinstance(lines, HostLines) else None


def _profile(
    lines: "Lines | HostLines",
    line_format: str | None,
    recorder: "Recorder | None" = None,
    clients: "ClientClasses | None" = None,
) -> "Profile":
    """Return the profile of logs, and say what could not be read. Raises UsageError."""
    from intop.traffic.profile import profile_of

    places = iter(lines)
    first = list(islice(places, LOOK))
    chosen = _format([text for _, text in first], line_format)
    profile = profile_of(_read(chain(first, places), chosen), recorder, clients)
    for note in lines.notes:
        say(note)
    if lines.too_long:
        say(f"{lines.too_long:,} lines are longer than any request, and were left out")
    _check(profile, chosen)
    return profile


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
        "clients": [
            {
                "name": each.name,
                "share": share,
                "requests_per_connection": each.requests_per_connection,
                "idle_s": each.idle_s.median,
                "round_trip_ms": each.round_trips_ms.median,
            }
            for each, share in profile.clients.shares()
        ],
        "protocols": dict(profile.protocols),
        "secret_requests": profile.secret_requests,
        "paths": [asdict(path) for path in profile.paths],
    }
