"""The servers that can be the system under test: those of Debian, with nginx as the usual one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ServerName = Literal["nginx", "apache", "haproxy", "lighttpd", "varnish", "caddy", "h2o"]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server, wherever it runs."""

    name: ServerName
    title: str
    """Its name in messages."""
    programs: tuple[str, ...]
    """The kernel's names for its processes (/proc/PID/comm)."""
    unit: str
    """Debian's service of systemd."""
    caches: bool = False
    """It answers from its own memory, so that backends may hear nothing of a load."""

    @property
    def restart(self) -> str:
        """The command that restarts it, where nobody names another one.

        A reload would not do: most keep the sockets that they listen on over it, and the kernel
        reads net.core.somaxconn when a socket begins to listen.
        """
        return f"systemctl restart {self.unit}"


NGINX = Server(name="nginx", title="nginx", programs=("nginx",), unit="nginx")

SERVERS: Mapping[ServerName, Server] = {
    server.name: server
    for server in (
        NGINX,
        # Debian's name, and its own.
        Server(name="apache", title="Apache", programs=("apache2", "httpd"), unit="apache2"),
        Server(name="haproxy", title="HAProxy", programs=("haproxy",), unit="haproxy"),
        Server(name="lighttpd", title="lighttpd", programs=("lighttpd",), unit="lighttpd"),
        # Its first process, and the one that serves.
        Server(
            name="varnish",
            title="Varnish",
            programs=("varnishd", "cache-main"),
            unit="varnish",
            caches=True,
        ),
        Server(name="caddy", title="Caddy", programs=("caddy",), unit="caddy"),
        Server(name="h2o", title="H2O", programs=("h2o",), unit="h2o"),
    )
}
