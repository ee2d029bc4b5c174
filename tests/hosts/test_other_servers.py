"""Servers in place of nginx, as they tell of themselves; on real ones: lab/test_servers_at_work."""

import pytest

from intop.domain.server import SERVERS, ServerName
from intop.hosts.facts import facts
from intop.hosts.other_servers import refusals, shown
from kit.local_host import LocalHost

SAID: dict[ServerName, tuple[str, str, str]] = {
    "apache": (
        "apache2",
        "Server version: Apache/2.4.71 (Debian)\nServer built:   2026-11-12T08:58:41",
        "Apache/2.4.71 (Debian)",
    ),
    "haproxy": (
        "haproxy",
        "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/\nStatus: long-term",
        "haproxy/2.6.12-1+deb12u4",
    ),
    "lighttpd": (
        "lighttpd",
        "lighttpd/1.4.69 (ssl) - a light and fast webserver",
        "lighttpd/1.4.69",
    ),
    "varnish": (
        "varnishd",
        "varnishd (varnish-7.1.1 revision 7cee1c581bead20e88d101ab3d72afb29f14d87a)\nCopyright",
        "varnish/7.1.1",
    ),
    "caddy": ("caddy", "v2.6.2 h1:wKoFIxpmOJLGl3QXoo6PNbYvGW4xLEgo32GPBEjWL8o=", "caddy/2.6.2"),
    "h2o": ("h2o", "h2o version 2.2.5\nOpenSSL: OpenSSL 3.0.2", "h2o/2.2.5"),
}
"""What each says of its version, as of Debian 12, and what is made of it."""


@pytest.mark.parametrize("name", SAID)
def test_its_version_is_read(name: ServerName) -> None:
    program, output, expected = SAID[name]
    setup = f'exec sh -c \'{program}() {{ echo "{output}"; }}\n\'"$0"'
    assert facts(LocalHost(setup=setup), SERVERS[name]).nginx == expected


def test_older_haproxies_write_their_name_otherwise() -> None:
    text = "HA-Proxy version 2.0.13-2ubuntu0.5 2022/03/02 - https://haproxy.org/"
    host = LocalHost(setup=f'exec sh -c \'haproxy() {{ echo "{text}"; }}\n\'"$0"')
    assert facts(host, SERVERS["haproxy"]).nginx == "haproxy/2.0.13-2ubuntu0.5"


def test_one_that_is_not_there_has_no_version() -> None:
    nowhere = LocalHost(setup="mount -t tmpfs none /usr/sbin; mount -t tmpfs none /usr/local")
    assert facts(nowhere, SERVERS["haproxy"]).nginx == ""
    assert set(SERVERS) == {"nginx", *SAID}


@pytest.mark.parametrize("name", SAID)
def test_where_none_runs_nothing_is_shown_or_refused(name: ServerName) -> None:
    host = LocalHost(setup=":")
    assert host.run(shown(SERVERS[name])).stdout == ""
    assert refusals(host, SERVERS[name]) == []
