"""The server of a cluster, in a study's file."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders.config_files import GOOD, LAB, NAME, REPLICAS, edited, problems, study
from intop.domain.cluster import Cluster, LabSpec
from intop.domain.server import NGINX, SERVERS

RESTART = 'nginx_restart = "systemctl restart nginx"'


def server_and_restart(tmp_path: Path, text: str) -> tuple[str, str]:
    (result,) = study(tmp_path, text).clusters["arm"]
    assert isinstance(result, Cluster)
    return result.server.name, result.server_restart


def test_it_is_nginx_unless_another_one_is_named(tmp_path: Path) -> None:
    result = study(tmp_path, GOOD)
    assert {NGINX.name} == {c.server.name for one in result.clusters.values() for c in one}
    assert result.without_nginx == {}
    assert server_and_restart(tmp_path, GOOD) == ("nginx", "systemctl restart nginx")
    assert server_and_restart(tmp_path, edited(RESTART, "")) == ("nginx", "systemctl restart nginx")
    own = edited(RESTART, 'server_restart = "service nginx restart"')
    assert server_and_restart(tmp_path, own) == ("nginx", "service nginx restart")


@pytest.mark.parametrize("name", [name for name in SERVERS if name != "nginx"])
def test_another_one_is_restarted_by_debians_service_or_as_the_file_has_it(
    tmp_path: Path, name: str
) -> None:
    text = edited(RESTART, f'server = "{name}"')
    unit = {"apache": "apache2"}.get(name, name)
    assert (name, f"systemctl restart {unit}") == server_and_restart(tmp_path, text)
    assert list(study(tmp_path, text).without_nginx) == ["arm"]
    text = edited(RESTART, f'server = "{name}"\nserver_restart = "/etc/restart"')
    assert (name, "/etc/restart") == server_and_restart(tmp_path, text)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('server = "iis"', "cluster.arm.server: input should be 'nginx', 'apache', 'haproxy'"),
        (
            f'server = "haproxy"\n{RESTART}',
            "nginx_restart: the server is haproxy: write server_restart, or leave it out for `sys",
        ),
        (
            f'server_restart = "x"\n{RESTART}',
            "nginx_restart and server_restart are the same: leave one out",
        ),
        (
            'server = "caddy"\nstub_status = "http://127.0.0.1/status"',
            "stub_status: is a page of nginx, and the server is caddy",
        ),
    ],
)
def test_what_does_not_fit_the_server_is_one_problem(
    tmp_path: Path, lines: str, message: str
) -> None:
    (problem,) = problems(tmp_path, edited(RESTART, lines))
    assert message in problem


@pytest.mark.parametrize("name", ["nginx_restart", "server_restart"])
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('""', "must be a command, not blanks"),
        (r'" \n\t "', "must be a command, not blanks"),
        ('"-HUP nginx"', "must not begin with -, which sh takes for an option"),
        ('"""\n  +x\n"""', "must not begin with +, which sh takes for an option"),
        (r'"nginx -s stop\r\nnginx"', "has a text with the control character U+000D"),
        (r'"nginx\u0000"', "has a text with the control character U+0000"),
    ],
)
def test_what_is_no_command_for_sh_is_one_problem(
    tmp_path: Path, name: str, command: str, message: str
) -> None:
    (problem,) = problems(tmp_path, edited(RESTART, f"{name} = {command}"))
    assert f"{name}: {message}" in problem or message in problem


def test_a_restart_of_several_lines_is_read_as_it_was_written(tmp_path: Path) -> None:
    command = "# Twice.\nservice nginx stop &&\n\tprintf '%s  \\t' \"$x\"\nservice nginx start\n"
    text = edited(RESTART, f"server_restart = '''\n{command}'''".replace("\\'", "'"))
    assert ("nginx", command) == server_and_restart(tmp_path, text)
    # A file from another system.
    assert ("nginx", command) == server_and_restart(tmp_path, text.replace("\n", "\r\n"))


def test_directives_are_tuned_for_nginx_only(tmp_path: Path) -> None:
    text = edited(RESTART, 'server = "haproxy"')
    text = edited(NAME, f'{NAME}\ntunes = ["kernel", "nginx"]', text)
    (problem,) = problems(tmp_path, text)
    assert problem == (
        "study.toml:3: study.tunes: only nginx has directives that are tuned, and the server of "
        "cluster arm is HAProxy: leave nginx out, or that cluster"
    )


def test_replicas_have_one_server(tmp_path: Path) -> None:
    first = 'lab = "two"'
    (problem,) = problems(tmp_path, edited(first, f'{first}\nserver = "caddy"', REPLICAS))
    assert "cluster.x86: replicas have one server, not nginx, caddy" in problem


def test_a_labs_server_and_whether_it_serves_files(tmp_path: Path) -> None:
    text = edited(LAB, f'{LAB}\nserver = "lighttpd"\nserves_files = true\nworkers = 2')
    (result,) = study(tmp_path, text).clusters["x86"]
    assert isinstance(result, LabSpec)
    assert SERVERS["lighttpd"] == result.server
    usual = LabSpec().balancing
    assert result.balancing == replace(usual, server="lighttpd", serves_files=True, workers=2)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('server = "varnish"\nserves_files = true', "varnish has no files of its own to serve"),
        ('server = "h2o"\naccess_log = true', "access_log: only where the server is nginx"),
        ('server = "caddy"\nbacklog = 9', "backlog: caddy takes what somaxconn allows"),
        ('server = "caddy"\nkind = "vm"', "only where all hosts are namespaces"),
    ],
)
def test_what_a_lab_does_not_have_with_its_server(tmp_path: Path, lines: str, message: str) -> None:
    (problem,) = problems(tmp_path, edited(LAB, f"{LAB}\n{lines}"))
    assert message in problem
