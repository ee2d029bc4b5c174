"""Names that the user's OpenSSH configuration has for addresses."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from intop.domain.cluster import HostAddress
from intop.errors import UnreachableError
from intop.hosts.ssh.config import route

CONFIG = Path("~/.ssh/config")
_HOST = re.compile(r"^[ \t]*host[ \t=]+(.+)$", re.IGNORECASE | re.MULTILINE)
_NAME = re.compile(r"[\w.-]+")


def by_alias(addresses: Iterable[str], config: Path | None = None) -> tuple[str, ...]:
    """Return each address, or the first name in the configuration that leads there.

    `config` is a file in place of the user's own.
    """
    file = None if config is None else str(config)
    aliases: dict[str, str] = {}
    with suppress(OSError, UnicodeDecodeError):
        for names in _HOST.findall((config or CONFIG.expanduser()).read_text()):
            for name in filter(_NAME.fullmatch, names.split()):
                with suppress(UnreachableError):
                    alias = HostAddress(hostname=name, role="backend", ssh_config=file)
                    aliases.setdefault(route(alias).hostname, name)
    return tuple(aliases.get(address, address) for address in addresses)
