"""A server in place of nginx: its version, its configuration, and its complaints about that."""

import re
from dataclasses import dataclass

from intop.domain.server import Server
from intop.hosts.answers import lines
from intop.hosts.host import Host, output
from intop.hosts.scripts import script

MOST = 4
"""The most processes without root's rights that are asked."""
LIMIT_S = 15
"""The time for which others than root can keep us busy, however slow their programs may be."""

REFUSED = "refused"


@dataclass(frozen=True)
class Refusal:
    """A server's complaint about its own configuration."""

    text: str
    user: str
    """The id of the user who asked; "" for root."""

    @property
    def is_sure(self) -> bool:
        """Whether the server would say so at its start, where it may have more rights."""
        return not (self.user and re.search("permi(ssion|tted)", self.text, re.IGNORECASE))


def shown(server: Server) -> str:
    """Return POSIX sh that prints the configuration of each such server in the network namespace.

    It prints as SHOW of `hosts/nginx_conf.py` does for nginx. It changes nothing, and needs root.
    """
    return _each(server, "show_each")


def refusals(host: Host, server: Server) -> list[Refusal]:
    """Return the complaints of each such server of the network namespace about its configuration.

    A server that would start with it says nothing. Raises CommandError and UnreachableError as
    `output` does.
    """
    answer = (line.split(" ", 2) for line in lines(output(host, _each(server, "check_each"))))
    return [
        Refusal(text=words[2].strip(), user=words[1])
        for words in answer
        if words[0] == REFUSED and len(words) == 3
    ]


def _each(server: Server, work: str) -> str:
    names = " ".join(server.programs)
    every = script("other_servers.sh", names=names, most=MOST, limit=LIMIT_S, work=work)
    return script(f"servers/{server.name}.sh") + every
