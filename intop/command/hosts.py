"""The hosts of a command: those of a study, or named ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from intop.command.options import arch_option, config_option, study_of, together
from intop.command.output import say
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.cluster import HostAddress
    from intop.domain.host_state import Answer


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
        help="This host in place of a study's; may be said several times.",
    ),
    click.option("--state-dir", help="With --host: the guard's folder.  [default: /var/lib/intop]"),
    click.option(
        "--config-root",
        help="With --host: the folder that stands for / where its sysctl.d is.  [default: /]",
    ),
    reach_options,
)
"""The options that choose hosts."""


def chosen_hosts(
    config: Path | None, arch: str | None, words: Sequence[str], **options: Any
) -> tuple[list["HostAddress"], list["Answer[None]"]]:
    """Return the chosen hosts, and an error for each lab among them that isn't up."""
    from intop.inspect.host_states import tuned_hosts

    hosts = named_hosts(words, **options)
    if not hosts:
        return tuned_hosts(study_of(config), arch, say)
    source = click.get_current_context().get_parameter_source("config")
    if arch is not None or source is ParameterSource.COMMANDLINE:
        raise UsageError("--host names the hosts itself: leave --config and --arch out")
    return hosts, []


def named_hosts(words: Sequence[str], **options: Any) -> list["HostAddress"]:
    """Return the hosts of --host. Raises UsageError for its options without it."""
    from intop.config.cluster import host_address

    given = {name: value for name, value in options.items() if value is not None}
    if given and not words:
        option = next(iter(given)).replace("_", "-")
        raise UsageError(f"--{option} belongs to --host: a study's file says it for its hosts")
    if given.get("sudo") == "yes":
        given["sudo"] = True
    return [host_address(word, **given) for word in words]
