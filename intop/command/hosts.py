"""The hosts of a command: those of a study, or named ones."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from intop.command.options import arch_option, config_option, study_of, together
from intop.command.output import say
from intop.errors import IntopError, LabError, UsageError

if TYPE_CHECKING:
    from intop.config.study import Study
    from intop.domain.cluster import HostAddress
    from intop.domain.host_state import Answer

SSH_PORT = 22
LOGIN = ("key_file", "sudo")
"""Settings that belong to one user of a host."""

reach_options = together(
    click.option(
        "--sudo",
        is_flag=False,
        flag_value="yes",
        type=click.Choice(["yes", "ask", "doas"]),
        help="With --host: by sudo there; --sudo=ask asks for its password; doas: by doas.",
    ),
    click.option("--key-file", help="With --host: the private key, else the agent's or yours."),
    click.option("--known-hosts", help="With --host: the file of known host keys."),
)
"""The way to hosts that are named."""

host_options = together(
    config_option,
    arch_option,
    click.option(
        "--host",
        "words",
        multiple=True,
        metavar="[USER@]HOST[:PORT]",
        help="Only this host, by the study's settings where it is the study's; may be said several "
        "times.",
    ),
    click.option(
        "--state-dir",
        help="With --host: the guard's folder.  [default: the study's, else /var/lib/intop]",
    ),
    click.option(
        "--config-root",
        help="With --host: the folder that stands for / where its sysctl.d is.  [default: the "
        "study's, else /]",
    ),
    reach_options,
)
"""The options that choose hosts."""


def chosen_hosts(
    config: Path | None, arch: str | None, words: Sequence[str], **options: Any
) -> tuple[list["HostAddress"], list["Answer[None]"]]:
    """Return the chosen hosts, and an error for each lab among them that isn't up."""
    from intop.inspect.host_states import tuned_hosts

    hosts = named_hosts(words, config, **options)
    if not hosts:
        return tuned_hosts(study_of(config), arch, say)
    if arch is not None:
        raise UsageError("--host names the hosts itself: leave --arch out")
    return hosts, []


def named_hosts(words: Sequence[str], config: Path | None, **options: Any) -> list["HostAddress"]:
    """Return the hosts of --host, with the study's settings for those that are the study's.

    Options come before these settings. Raises UsageError for options without --host, and
    for a word that means several of the study's hosts.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if given and not words:
        option = next(iter(given)).replace("_", "-")
        raise UsageError(f"--{option} belongs to --host: a study's file says it for its hosts")
    if not words:
        return []
    if given.get("sudo") == "yes":
        given["sudo"] = True
    study = _study(config)
    return [_named_host(word, study, given) for word in words]


def _study(config: Path | None) -> "Study | None":
    """Return the study, if there is any.

    A broken file that --config does not name keeps nobody from a host, and is only reported.
    """
    from intop.config.location import default_path

    path = config or default_path()
    source = click.get_current_context().get_parameter_source("config")
    if source is ParameterSource.COMMANDLINE:
        return study_of(path)
    if not path.exists():
        return None
    try:
        return study_of(path)
    except IntopError as error:
        say(f"{path} can't be read, so --host does without its settings: {error}")
        return None


def _named_host(word: str, study: "Study | None", given: Mapping[str, Any]) -> "HostAddress":
    from intop.config.cluster import host_address

    named = host_address(word, **given)
    known = [] if study is None else [host for host in _balancers(study) if _is(host, named)]
    if study is None or not known:
        return named
    if len(known) > 1:
        names = ", ".join(host.name for host in known)
        raise UsageError(f"--host {word} may be {names} of {study.path}: name one of them")
    (host,) = known
    say(f"{word} is {host.name} of {study.path}, and reached as that file says")
    own = {name: getattr(named, name) for name in given}
    if named.user not in (None, host.user):
        own |= {name: getattr(named, name) for name in ("user", *LOGIN)}
    return replace(host, **own)


def _balancers(study: "Study") -> "Iterator[HostAddress]":
    """Yield the load balancers of a study, without those of labs that are down."""
    from intop.run.context import cluster_of

    for replicas in study.clusters.values():
        for replica in replicas:
            with suppress(LabError):
                yield cluster_of(replica).load_balancer


def _is(host: "HostAddress", named: "HostAddress") -> bool:
    """Return whether a host of the study is meant, by its name or its address."""
    if named.name == host.name:
        return True
    is_same_port = named.port in (None, host.port or SSH_PORT)
    return is_same_port and named.hostname in (host.hostname, host.name)
