"""The nginx that runs on a host: its version, its files, and its limits of open files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from intop.domain.nginx.conf import Conf
from intop.domain.nginx.conf import parse_shown as parse_conf
from intop.domain.nginx.directive import NginxFacts
from intop.errors import CommandError, HostError, NginxFileError
from intop.hosts.answers import by_word, count, lines
from intop.hosts.facts import server_conf
from intop.hosts.host import Host, output, parsed_output
from intop.hosts.nginx_conf import REFUSALS
from intop.hosts.scripts import script

RUNNING = script("nginx.sh")
UNLIMITED = 2**30
"""Stands for `unlimited` and `infinity`: the kernel has no larger fs.nr_open."""


@dataclass(frozen=True, kw_only=True)
class RunningNginx:
    """All nginx of a host's network namespace that root has started, as they run."""

    masters: int
    """The number of such nginx."""
    nofile: int | None = None
    """The limit of open files that the first one was started with; None where it is not known."""
    workers: tuple[int, ...] = ()
    """The same limit of its workers, which may have another one by worker_rlimit_nofile."""
    unit: str = ""
    """Its service of systemd; "" where it has none."""
    unit_nofile: int | None = None
    """The limit of open files of that service."""
    facts: NginxFacts | None = None
    """None where it does not say its version."""
    not_roots: tuple[str, ...] = ()
    """The reasons why intop leaves further nginx alone, one for each."""


def running(host: Host) -> RunningNginx:
    """Return the nginx of a host. Raises CommandError when its answer makes no sense."""
    return parsed_output(host, RUNNING, parse_running, "its nginx can't be looked at")


def parse_running(text: str) -> RunningNginx:
    """Return the nginx in the lines that `RUNNING` prints. Raises ValueError."""
    facts_by_word = by_word(text)

    def first(word: str) -> str:
        return next(iter(facts_by_word.get(word, [])), "")

    nofile = _limit(first("nofile")) if "nofile" in facts_by_word else None
    shown = f"{first('version')}\n{first('build')}\n"
    facts = None
    if re.match("nginx version:", shown) and nofile is not None:
        facts = NginxFacts.of(
            shown,
            kernel=first("kernel"),
            cpus=max(1, count(first("cpus"))),
            page_bytes=count(first("page")),
            nofile=nofile,
        )
    unit_nofile = first("unit_nofile")
    return RunningNginx(
        masters=len(facts_by_word.get("master", [])),
        nofile=nofile,
        workers=tuple(_limit(limit) for limit in facts_by_word.get("worker", [])),
        unit=first("unit") if re.fullmatch(r"[\w@.:\\-]+\.service", first("unit")) else "",
        unit_nofile=_limit(unit_nofile) if unit_nofile else None,
        facts=facts,
        not_roots=tuple(facts_by_word.get("not_roots", [])),
    )


def _limit(text: str) -> int:
    if text in ("unlimited", "infinity"):
        return UNLIMITED
    return min(count(text), UNLIMITED)


def serving_conf(host: Host, confs: Sequence[str]) -> Conf:
    """Return the configuration of the first nginx that shows one, of all that a host showed.

    Raises CommandError where none does, or its configuration can't be read.
    """
    text = next(filter(None, confs), "")
    if not text:
        raise CommandError(host.address.name, "no nginx runs there that shows its configuration")
    try:
        return parse_conf(text)
    except NginxFileError as error:
        raise CommandError(host.address.name, str(error)) from error


def what_it_reads(host: Host) -> Conf:
    """Return all files of the host's one nginx, as it shows them.

    Raises:
        HostError: None runs, or several do; it does not show its configuration, or that can't be
            read.
    """
    confs = server_conf(host)
    if len(confs) != 1 or not confs[0]:
        raise HostError(
            host.address.name,
            f"{_why_not_one(host, confs)}: directives can be tuned where exactly one nginx runs as "
            "root, and takes its files",
        )
    try:
        return parse_conf(confs[0])
    except NginxFileError as error:
        raise HostError(host.address.name, str(error)) from error


def _why_not_one(host: Host, confs: Sequence[str]) -> str:
    """Return why a host has no configuration of one nginx. Raises CommandError."""
    if len(confs) == 1:
        refusal = "; ".join(lines(output(host, REFUSALS))) or "see what nginx -T says"
        return f"nginx does not show its configuration with the options of its title ({refusal})"
    if confs:
        return f"{len(confs)} nginx run in its network namespace"
    nowhere = "no nginx runs in its network namespace"
    if reasons := running(host).not_roots:
        return f"{nowhere} that root has started (one {reasons[0]})"
    return nowhere
