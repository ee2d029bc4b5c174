"""Processes of a user without rights that look like a server in nginx's place, asked by root."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.local_user import USER, Disguise, LocalUser, local_user
from intop.domain.server import SERVERS, ServerName
from intop.hosts import other_servers
from intop.hosts.nginx_conf import parse_shown
from intop.hosts.other_servers import refusals, shown
from kit.namespace_host import NamespaceHost, namespace_host, wait_until

OTHERS: tuple[ServerName, ...] = tuple(name for name in SERVERS if name != "nginx")
OPTIONS: dict[ServerName, str] = {
    "apache": "-f {evil}",
    "haproxy": "-f {evil}",
    "lighttpd": "-D -f {folder}/lighttpd.conf",
    "varnish": "-F -f {evil}",
    "caddy": "run --config {evil}",
    "h2o": "-c {evil}",
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceHost]:
    with namespace_host(tmp_path_factory.mktemp("host")) as made:
        yield made


@pytest.fixture
def user(host: NamespaceHost) -> Iterator[LocalUser]:
    with local_user(["ip", "netns", "exec", host._namespace]) as made:
        yield made


def asked(host: NamespaceHost, name: ServerName) -> tuple[str, ...]:
    """What root asks each server of the host."""
    server = SERVERS[name]
    refusals(host, server)
    return parse_shown(host.run(shown(server)).stdout.splitlines())


@pytest.mark.parametrize(
    "program", ["a copy of sh", "a copy of cat", "a link to cat", "a link to su"]
)
@pytest.mark.parametrize("name", OTHERS)
def test_a_program_that_is_only_called_so_is_not_called(
    host: NamespaceHost, user: LocalUser, name: ServerName, program: str
) -> None:
    for called in SERVERS[name].programs:
        user.put_on(Disguise(program, "a program of his"), "", called)
    options = OPTIONS[name].format(evil=user.evil, folder=user.folder)
    # A shell reads its script from standard input, and waits.
    copy = user.program("a copy of sh", SERVERS[name].programs[0])
    user.start(f"exec {copy} -s {options}")
    assert asked(host, name) == ()
    # A shell may run it for him, as him.
    assert user.ran_as() <= {str(USER)}


@pytest.mark.parametrize("name", OTHERS)
def test_a_server_of_his_own_is_asked_with_his_rights_alone(
    host: NamespaceHost, user: LocalUser, name: ServerName
) -> None:
    """The program is root's, and the options are his: what they have it run runs as he does."""
    options = OPTIONS[name].format(evil=user.evil, folder=user.folder)
    server = SERVERS[name].programs[0]
    path = next(p for p in ("/usr/sbin", "/usr/bin") if (Path(p) / server).exists())
    # It may end at once: the shell that waits for it is replaced until it does.
    user.start(f"while :; do {path}/{server} {options}; sleep 0.1; done")
    for _ in range(5):
        asked(host, name)
    assert user.ran_as() <= {str(USER)}


def test_what_his_configuration_runs_has_his_rights(host: NamespaceHost, user: LocalUser) -> None:
    """lighttpd runs what its configuration names when it is checked, so this is no empty threat."""
    conf = user.folder / "lighttpd.conf"
    evil = conf.read_text()
    conf.write_text(f'server.document-root = "{user.folder}"\nserver.port = 8099\n')
    user.start(f"exec /usr/sbin/lighttpd -D -f {conf}")
    wait_until(lambda: asked(host, "lighttpd"), "lighttpd runs")
    conf.write_text(evil)
    asked(host, "lighttpd")
    assert {str(USER)} == user.ran_as()


HAPROXY = "defaults\n    timeout client 1s\nlisten x\n    mode tcp\n    bind unix@{folder}/socket\n"
CHANGED = """\
#!/bin/bash
# It is the process that root looks at, and now elsewhere: what is called cat there is su.
exec unshare --user --map-root-user --mount bash -c '
mount --bind /usr/bin/su /usr/bin/cat
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/pam /etc/pam.d/su
: > {folder}/moved
exec sleep 1000'
"""
WAITING = """\
#!/bin/bash
until read -r name < /proc/$1/comm && [ $name = haproxy ]; do sleep 0.1; done
sleep 1
# haproxy waits for the old one; root, who reads it in his name, is to wait for a new one.
mv {folder}/pipe {folder}/old
mkfifo {folder}/pipe
: > {folder}/ready
exec 3> {folder}/pipe
: > {folder}/old
until [ -e {folder}/moved ]; do sleep 0.1; done
"""


def test_a_server_of_his_that_moves_elsewhere_while_it_is_asked_has_no_set_id_program_called(
    host: NamespaceHost, user: LocalUser
) -> None:
    """In a mount namespace of his own, root's set-id programs would read files of his."""
    folder = user.folder
    os.mkfifo(folder / "pipe")
    os.chown(folder / "pipe", USER, USER)
    permit = "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\n"
    texts = {
        "conf": HAPROXY,
        "evil-user": "",
        "changed": CHANGED,
        "waiting": WAITING,
        "passwd": Path("/etc/passwd").read_text() + "evil-user:x:0:0::/:{folder}/evil\n",
        "pam": f"{permit}session optional pam_permit.so\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(0o755)
    # Once haproxy has read its files it starts again, by what its title says.
    user.start(
        f"cd {folder}; {folder}/waiting $$ & exec -a {folder}/changed /usr/sbin/haproxy -W "
        f"-f {folder}/conf -f {folder}/pipe -f evil-user"
    )
    wait_until((folder / "ready").exists, "haproxy reads its files")
    host.run(shown(SERVERS["haproxy"]))
    assert (folder / "moved").exists()
    assert user.ran_as() <= {str(USER)}


def test_files_of_his_that_never_end_cost_no_more_than_the_limit(
    host: NamespaceHost, user: LocalUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them takes the 10 s after which whatever runs in his name is ended."""
    monkeypatch.setattr(other_servers, "LIMIT_S", 2)
    pipe = user.folder / "pipe"
    os.mkfifo(pipe)
    os.chown(pipe, USER, USER)
    user.start(f"exec /usr/sbin/haproxy {4 * f'-f {pipe} '}")
    since = time.monotonic()
    shown_here = host.run(shown(SERVERS["haproxy"])).stdout
    assert f"# configuration file {pipe}:" in shown_here
    assert time.monotonic() - since < 20
