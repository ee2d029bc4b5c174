"""Passwords for sudo: from the environment, or asked for before anything else."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.domain.cluster import HostAddress
    from intop.hosts.host import Connect, Host
    from intop.hosts.ssh import Secret

MOST_OF_A_PASSWORD = 255
PASSWORD_VARIABLE = "INTOP_SUDO_PASSWORD"  # noqa: S105 - its name, not its value


def connecting(hosts: "Iterable[HostAddress]") -> "Connect":
    """Return the way to these hosts. The passwords of sudo are asked for now.

    Raises UsageError when nobody is there to ask.
    """
    # Taken away, so that no program we start inherits it.
    given = os.environ.pop(PASSWORD_VARIABLE, "") or None
    passwords: dict[tuple[object, ...], Secret] = {}
    for host in hosts:
        if host.sudo != "ask":
            continue
        if given is None and not sys.stderr.isatty():
            raise UsageError(
                f'{host.name}: sudo = "ask" wants a password, and there is no terminal to ask at: '
                f"set {PASSWORD_VARIABLE}, which holds for all hosts"
            )
        if (place := _place(host)) not in passwords:
            before = list(passwords.values())
            passwords[place] = _asked(host, before) if given is None else _secret(given)

    def connect_to(address: "HostAddress") -> "Host":
        # Imported here: a command whose hosts are not up does without paramiko.
        from intop.hosts.ssh import with_passwords

        return with_passwords(lambda asked: passwords[_place(asked)])(address)

    return connect_to


def _place(host: "HostAddress") -> tuple[object, ...]:
    """Equal where the password is the same."""
    return host.hostname, host.port, host.user


def _asked(host: "HostAddress", before: "Sequence[Secret]") -> "Secret":
    text = f"Password for sudo on {host.name}"
    if before:
        text += " (Enter: the same)"
    answer: str = click.prompt(
        text, hide_input=True, err=True, default="" if before else None, show_default=False
    )
    return _secret(answer) if answer else before[-1]


def _secret(password: str) -> "Secret":
    from intop.hosts.ssh import Secret

    # What sudo doesn't read as the password would be left for the command.
    if set(password) & set("\n\r\0") or len(password) > MOST_OF_A_PASSWORD:
        raise UsageError(
            f"a password for sudo is one line of at most {MOST_OF_A_PASSWORD} characters"
        )
    return Secret(password)
