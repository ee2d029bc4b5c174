"""intop init: a study's file from options, and from what a load balancer shows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from intop.config.cluster import host_address
from intop.config.study import load_study
from intop.domain.cluster import Cluster
from intop.errors import CommandError, IntopError, UnreachableError, UsageError
from intop.inspect import discovery
from intop.inspect.discovery import Discovered
from intop.resources import shipped
from intop.run.context import clusters_of
from kit.local_host import LocalHost
from kit.studies import Study

Call = Callable[..., tuple[int, str, str]]

SHOWN = Discovered(
    arch="arm",
    urls=("http://web1", "https://web1"),
    backends=("10.0.0.31", "10.0.0.32"),
    access_logs=("/var/log/nginx/access.log",),
    restart="systemctl restart nginx",
)
HOSTS = ("--balancer", "root@web1:2222", "--generator", "load1")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def shows(monkeypatch: pytest.MonkeyPatch) -> Callable[[Discovered], None]:
    """Set what the load balancer shows."""

    def show(discovered: Discovered) -> None:
        monkeypatch.setattr(discovery, "discover", lambda *_: discovered)
        monkeypatch.setattr(discovery, "reached", lambda *_: next(iter(discovered.urls), ""))

    return show


def test_the_labs_study_is_a_copy(call: Call) -> None:
    code, _, err = call("init", "--lab")
    assert code == 0
    assert "next: intop lab up && intop tune" in err
    assert Path("intop.toml").read_bytes() == (shipped("configs") / "lab.toml").read_bytes()


def test_what_the_balancer_shows_is_the_default(
    call: Call, shows: Callable[[Discovered], None]
) -> None:
    shows(SHOWN)
    code, _, err = call("init", *HOSTS, "--backend", "10.0.0.31", "--path", "/a", "--no-doctor")
    assert code == 0
    assert "nginx logs to /var/log/nginx/access.log" in err
    study = load_study(Path("intop.toml"))
    ((arch, (cluster,)),) = study.clusters.items()
    assert arch == "arm"
    assert isinstance(cluster, Cluster)
    assert (cluster.url, cluster.server_restart) == ("http://web1", "systemctl restart nginx")
    balancer = cluster.load_balancer
    assert (balancer.hostname, balancer.user, balancer.port) == ("web1", "root", 2222)
    assert [backend.hostname for backend in cluster.backends] == ["10.0.0.31"]
    assert list(study.workloads) == ["slt"]
    assert study.workloads["slt"].rate_rps == 100


def test_the_keys_are_those_of_all_hosts(call: Call, shows: Callable[[Discovered], None]) -> None:
    shows(SHOWN)
    files = ("--key-file", "~/.ssh/intop", "--known-hosts", "~/.ssh/known")
    code, *_ = call("init", *HOSTS, *files, "--sudo", "--no-doctor")
    assert code == 0
    ((cluster,),) = load_study(Path("intop.toml")).clusters.values()
    assert isinstance(cluster, Cluster)
    assert {host.key_file for host in cluster.hosts} == {files[1]}
    assert {host.known_hosts for host in cluster.hosts} == {files[3]}
    assert [host.name for host in cluster.hosts if host.sudo] == ["web1"]


def test_hosts_behind_one_address_have_names(
    call: Call, shows: Callable[[Discovered], None]
) -> None:
    shows(SHOWN)
    hosts = ("--balancer", "root@vm:2222", "--generator", "vm:2223", "--backend", "vm:2224")
    code, *_ = call("init", *hosts, "--no-doctor")
    assert code == 0
    ((cluster,),) = load_study(Path("intop.toml")).clusters.values()
    assert isinstance(cluster, Cluster)
    assert [host.name for host in cluster.hosts] == ["vm:2223", "vm:2222", "vm:2224"]


def test_an_address_that_the_generator_does_not_reach_is_not_written(
    call: Call,
    shows: Callable[[Discovered], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shows(SHOWN)
    monkeypatch.setattr(discovery, "reached", lambda *_: "")
    with pytest.raises(UsageError, match="say --url"):
        call("init", *HOSTS)
    assert "load1: connects to none of http://web1, https://web1" in capsys.readouterr().err
    assert not Path("intop.toml").exists()


def test_a_generator_that_cannot_be_asked_is_named(
    call: Call, shows: Callable[[Discovered], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise UnreachableError("load1", "is switched off")

    shows(SHOWN)
    monkeypatch.setattr(discovery, "reached", fails)
    code, _, err = call("init", *HOSTS, "--no-doctor")
    assert code == 0
    assert "load1: is switched off. So it could not try" in err
    assert 'url = "http://web1"' in Path("intop.toml").read_text()


def test_options_come_before_what_is_shown(call: Call, shows: Callable[[Discovered], None]) -> None:
    shows(SHOWN)
    own = ("--url", "https://shop.example", "--restart", "rc-service nginx restart")
    code, *_ = call("init", *HOSTS, *own, "--dynamic", "/api", "--rate", "500", "--no-doctor")
    assert code == 0
    study = load_study(Path("intop.toml"))
    ((cluster,),) = study.clusters.values()
    assert isinstance(cluster, Cluster)
    assert (cluster.url, cluster.server_restart) == (own[1], own[3])
    assert {w.rate_rps for w in study.workloads.values()} == {500}
    assert list(study.workloads) == ["slt", "dlt"]
    assert [backend.hostname for backend in cluster.backends] == list(SHOWN.backends)


@pytest.mark.parametrize(
    ("words", "shown", "message"),
    [
        ((), SHOWN, "say --balancer"),
        (HOSTS[:2], SHOWN, "say --generator"),
        (HOSTS, replace(SHOWN, backends=()), "say --backend"),
        (HOSTS, replace(SHOWN, urls=()), "say --url"),
        (HOSTS, replace(SHOWN, restart=""), "say --restart"),
        (("--lab", *HOSTS), SHOWN, "--lab needs no hosts: leave --balancer, --generator out"),
        (("--balancer", "a b"), SHOWN, "is no host"),
        ((*HOSTS, "--path", "/a b"), SHOWN, "--path: a path begins with /"),
        ((*HOSTS, "--dynamic", "/a b"), SHOWN, "--dynamic: a path begins with /"),
        ((*HOSTS, "--url", "web1"), SHOWN, "--url: "),
        ((*HOSTS, "--restart", "-x"), SHOWN, "--restart: must not begin with -"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    words: tuple[str, ...],
    shown: Discovered,
    message: str,
    call: Call,
    shows: Callable[[Discovered], None],
) -> None:
    shows(shown)
    with pytest.raises(UsageError, match=message):
        call("init", *words)
    assert not Path("intop.toml").exists()


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        (Discovered(arch=""), "neither X86 nor ARM"),
        (Discovered(arch="x86", is_root=False), "sysctls need root there"),
    ],
)
def test_a_host_that_cannot_be_tuned_is_refused(
    shown: Discovered, message: str, call: Call, shows: Callable[[Discovered], None]
) -> None:
    shows(shown)
    with pytest.raises(IntopError, match=message):
        call("init", *HOSTS, "--url", "http://a", "--restart", "r")


def test_a_file_that_is_there_stays(call: Call) -> None:
    Path("intop.toml").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        call("init", "--lab")
    assert Path("intop.toml").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_one_error(call: Call) -> None:
    with pytest.raises(UsageError, match="can't be written"):
        call("init", "--lab", "--output", "/proc/intop.toml")


def test_it_ends_with_a_doctor(
    call: Call, shows: Callable[[Discovered], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from intop.cli import doctor

    asked: list[object] = []
    monkeypatch.setattr(doctor.command, "callback", lambda **given: asked.append(given["config"]))
    shows(SHOWN)
    call("init", *HOSTS)
    assert asked == [Path("intop.toml")]


CONF = """\
# configuration file /etc/nginx/nginx.conf:
events { }
http {
    upstream app { server 10.0.0.31:8080; server [fd00::2]:80 backup; server unix:/run/app.sock; }
    access_log /var/log/nginx/access.log main;
    server {
        listen 80; listen [::]:80; listen 443 ssl; listen 127.0.0.1:8081; listen unix:/run/n.sock;
        location / { proxy_pass http://app; }
        location /local { proxy_pass http://127.0.0.1:9001; }
        location /api { proxy_pass http://10.0.0.40:9000/v1; access_log off; }
        location /dynamic { proxy_pass http://$backend; access_log syslog:server=log; }
    }
}
stream { server { listen 53; proxy_pass 10.0.0.50:53; } }
"""


def test_a_configuration_names_ports_backends_and_logs() -> None:
    from intop.domain.nginx.access_logs import access_logs
    from intop.domain.nginx.conf import parse_shown

    conf = parse_shown(CONF)
    assert list(dict.fromkeys(discovery.urls_of(conf, ("web1",)))) == [
        "http://web1",
        "https://web1",
    ]
    assert list(discovery.backends_of(conf)) == ["10.0.0.31", "fd00::2", "10.0.0.40"]
    assert [log.path for log in access_logs(conf)] == ["/var/log/nginx/access.log"]
    assert next(iter(discovery.urls_of(conf, ("fd00::9",)))) == "http://[fd00::9]"


LISTENS = """\
# configuration file /etc/nginx/nginx.conf:
events { }
http {
    server { listen 10.0.0.20:8080; listen [fd00::1]:81; listen app.internal; listen "$host:80"; }
    server { listen *:9000 ssl; }
}
"""


def test_an_address_that_nginx_listens_on_is_the_one_to_ask() -> None:
    from intop.domain.nginx.conf import parse_shown

    assert list(discovery.urls_of(parse_shown(LISTENS), ("web1", "10.0.0.20"))) == [
        "http://10.0.0.20:8080",
        "http://[fd00::1]:81",
        "http://app.internal",
        "https://web1:9000",
        "https://10.0.0.20:9000",
    ]


def test_an_alias_of_ssh_is_no_name_for_others(tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host web1\n  HostName 10.0.0.20\n")
    host = LocalHost(
        "2: eth0    inet 10.0.0.20/24 brd 10.0.0.255 scope global eth0\n"
        "2: eth0    inet6 fd00::20/64 scope global\n"
        "3: eth1    inet 10.1.0.20/24 scope global eth1\n"
        "4: docker0    inet 172.17.0.1/16 scope global docker0\n"
    )
    host.address = host_address("root@web1", ssh_config=str(config))
    assert list(dict.fromkeys(discovery._names(host))) == ["10.0.0.20", "fd00::20", "10.1.0.20"]


def test_a_generator_without_bash_has_tried_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = LocalHost()
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="has no bash, or no timeout"):
        discovery.reached(host.address, lambda _: host, ["http://192.0.2.1"])


def test_a_balancer_of_the_lab_shows_its_cluster(make_study: Callable[..., Study]) -> None:
    from intop.hosts.ssh import connect

    study = load_study(make_study("x86").folder / "intop.toml")
    (cluster,) = clusters_of(study, "x86")
    shown = discovery.discover(cluster.load_balancer, connect)
    assert shown.arch
    assert (shown.problem, shown.restart, shown.is_root) == ("", "", True)
    assert sorted(shown.backends) == sorted(backend.hostname for backend in cluster.backends)
    assert cluster.url in shown.urls
    urls = ("http://192.0.2.1:9", cluster.url)
    assert discovery.reached(cluster.load_generator, connect, urls) == cluster.url
    assert discovery.reached(cluster.load_generator, connect, urls[:1]) == ""
