"""Passwords for sudo: from the environment, or asked for before anything else."""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.cluster import HostAddress
    from intop.hosts.host import Connect
    from intop.hosts.ssh import Secret

PASSWORD_VARIABLE = "INTOP_SUDO_PASSWORD"  # noqa: S105 - its name, not its value


def connecting(hosts: "Iterable[HostAddress]") -> "Connect":
    """The way to these hosts; where sudo needs a password, it is asked for now.

    Raises UsageError when nobody is there to ask.
    """
    from intop.hosts.ssh import Secret, with_passwords

    # Taken away, so that no program we start inherits it.
    given = os.environ.pop(PASSWORD_VARIABLE, None)
    found: dict[tuple[object, ...], Secret] = {}
    for host in hosts:
        if host.sudo != "ask":
            continue
        if given is None and not sys.stderr.isatty():
            raise UsageError(
                f'{host.name}: sudo = "ask" wants a password, and there is no terminal to ask at: '
                f"set {PASSWORD_VARIABLE}, which holds for all hosts"
            )
        if (place := _place(host)) not in found:
            found[place] = Secret(given) if given is not None else _asked(host, found)
    return with_passwords(lambda address: found[_place(address)])


def _place(host: "HostAddress") -> tuple[object, ...]:
    """Equal where the password is the same."""
    return host.hostname, host.port, host.user


def _asked(host: "HostAddress", found: "Mapping[tuple[object, ...], Secret]") -> "Secret":
    from intop.hosts.ssh import Secret

    before = list(found.values())
    text = f"Password for sudo on {host.name}"
    if before:
        text += " (Enter: the same)"
    answer: str = click.prompt(
        text, hide_input=True, err=True, default="" if before else None, show_default=False
    )
    return Secret(answer) if answer else before[-1]
