"""Which sockets take the load, from what `ss` prints."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from builders.trials import cluster
from intop.errors import CommandError
from intop.hosts.host import output
from intop.hosts.sockets import (
    LISTENING,
    Sock,
    listening,
    load_sockets,
    nobody_listens,
    parse_sockets,
    port_of,
)
from kit.local_host import LocalHost
from kit.namespace_host import NamespaceHost

NGINX = (
    "LISTEN 0      511          0.0.0.0:80        0.0.0.0:*"
    '    users:(("nginx",pid=812,fd=6),("nginx",pid=811,fd=6))'
)
PROXY = 'LISTEN 0 4096 [::]:80 [::]:* users:(("docker-proxy",pid=9,fd=4))'


def listen(local: str) -> Sock:
    return Sock("LISTEN", local, "0.0.0.0:*")


def test_programs_are_told_once_each() -> None:
    result = parse_sockets([NGINX, PROXY])
    assert [sock.programs for sock in result] == [("nginx",), ("docker-proxy",)]
    assert [sock.local for sock in result] == ["0.0.0.0:80", ":::80"]


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://lb", 80),
        ("https://lb", 443),
        ("http://lb:8080", 8080),
        ("https://[2001:db8::1]:8443", 8443),
    ],
)
def test_the_port_is_the_urls(url: str, port: int) -> None:
    assert port == port_of(cluster(url=url))


@pytest.mark.parametrize(
    ("url", "local", "expected"),
    [
        ("http://198.18.0.20", "0.0.0.0:80", True),
        ("http://198.18.0.20", "*:80", True),
        ("http://198.18.0.20", ":::80", True),
        ("http://198.18.0.20", "198.18.0.20:80", True),
        ("http://198.18.0.20", "0.0.0.0:8080", False),
        ("http://198.18.0.20", "0.0.0.0:180", False),
        ("https://198.18.0.20", "0.0.0.0:443", True),
        ("http://198.18.0.20", "127.0.0.1:80", False),
        ("http://198.18.0.20", "::1:80", False),
        ("http://127.0.0.1", "127.0.0.1:80", True),
        ("http://localhost:81", "127.0.0.1:81", True),
    ],
)
def test_a_socket_takes_the_load_that_others_can_reach_on_its_port(
    url: str, local: str, expected: bool
) -> None:
    assert bool(load_sockets(cluster(url=url), [listen(local)])) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://198.18.0.20", ["198.18.0.20:80"]),
        ("http://198.18.0.21", ["0.0.0.0:80"]),
        ("http://[2001:db8::1]", [":::80"]),
        ("http://lb", ["198.18.0.20:80", "0.0.0.0:80", ":::80"]),
    ],
)
def test_of_several_sockets_the_one_for_the_urls_address_takes_the_load(
    url: str, expected: list[str]
) -> None:
    """nginx may listen on one address, and a container's proxy on all the others."""
    all_of_them = [listen(local) for local in ("198.18.0.20:80", "0.0.0.0:80", ":::80")]
    assert [s.local for s in load_sockets(cluster(url=url), all_of_them)] == expected


def test_behind_another_address_any_socket_may_take_the_load() -> None:
    assert [listen("10.0.0.2:80")] == load_sockets(
        cluster(url="http://198.18.0.20"), [listen("10.0.0.2:80")]
    )


def test_only_a_listening_socket_takes_the_load() -> None:
    connection = Sock("ESTAB", "198.18.0.20:80", "198.18.0.10:40000")
    assert load_sockets(cluster(), [connection]) == []


def test_without_ss_it_is_not_known() -> None:
    assert listening(LocalHost("unseen\n"), cluster()) is None
    assert listening(LocalHost(""), cluster()) == []
    assert "docker run --network host" in nobody_listens(cluster())


def test_a_host_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(CommandError, match=r"^lb: exit code"):
        listening(LocalHost(setup="exit 3"), cluster())


# In a real namespace ------------------------------------------------------------------------------

CODE = "import socket; s = socket.create_server(('', 80)); print(flush=True); input()"


@contextmanager
def server(*inside: str) -> Iterator[None]:
    """Something that listens on port 80, started by these words."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*inside, "python3", "-c", CODE], **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        yield
        process.communicate(b"\n", timeout=20)


def test_what_listens_in_the_hosts_namespace_is_seen_with_its_program(host: NamespaceHost) -> None:
    assert listening(host, cluster()) == []
    with server("ip", "netns", "exec", host._namespace):
        (sock,) = listening(host, cluster()) or []
        assert sock.programs == ("python3",)
        assert listening(host, cluster(url="http://lb:81")) == []


def test_what_listens_in_another_namespace_is_not(host: NamespaceHost) -> None:
    """As in a container with a network of its own, on the same machine."""
    with server("unshare", "--net"):
        assert "unseen" not in output(host, LISTENING)
        assert listening(host, cluster()) == []
