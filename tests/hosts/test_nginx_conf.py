"""nginx's configuration as nginx shows it: read on a real one, and told apart by what counts."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.damage import anything, damaged
from builders.trials import FACTS, cluster
from intop.domain.trial import UNKNOWN
from intop.hosts.facts import facts, facts_and_conf, server_conf
from intop.hosts.nginx_conf import MARK, fingerprint, is_known, parse_shown
from intop.hosts.rig import ClusterFacts, Rig, cluster_facts, with_server_started
from kit.local_host import LocalHost
from kit.namespace_host import NamespaceHost, end_processes, wait_until

SHOWN = """\
# configuration file /etc/nginx/nginx.conf:
user www-data;   # who
events { worker_connections 768; }
http {
    # made at 12:31
    log_format main '$remote_addr # "$request" {';
    include /etc/nginx/mime.types;
    upstream backends { server 10.0.0.31:80; server 10.0.0.3:80 max_fails=0; }
    server {
        listen 10.0.0.20:80;
        location ~ "\\.(gif|png){1}$" { rewrite ^/a#b$ /${arg_x}/; proxy_pass http://backends; }
    }
}

# configuration file /etc/nginx/mime.types:
types { text/html html; }

"""
HOSTS = ("10.0.0.10", "10.0.0.20", "10.0.0.31", "web.example.org")


def of(text: str, hosts: tuple[str, ...] = HOSTS) -> str:
    return fingerprint((text,), hosts)


# What counts --------------------------------------------------------------------------------------


def edited(old: str, new: str) -> str:
    assert SHOWN.count(old) == 1
    return SHOWN.replace(old, new)


@pytest.mark.parametrize(
    "text",
    [
        edited("   # who", ""),
        edited("# made at 12:31", "# made at 13:02"),
        edited("events { worker_connections 768; }", "events\n{\n\tworker_connections  768 ;}\n"),
        SHOWN.replace("/etc/nginx/", "/run/intop/lab/lab-2/host-lb/"),
    ],
)
def test_what_nginx_does_not_heed_does_not_count(text: str) -> None:
    assert of(SHOWN) == of(text)
    assert text != SHOWN


@pytest.mark.parametrize(
    "text",
    [
        edited("768", "769"),
        edited('# "$request"', '# "$status"'),
        edited("/a#b$", "/a#c$"),
        edited("${arg_x}", "${arg_y}"),
        edited("max_fails=0", ""),
        edited("{1}", "{2}"),
        edited("html; }", "html htm; }"),
        # This one is no host of the study.
        edited("10.0.0.3:80", "10.0.0.4:80"),
        edited("user www-data;   # who", "# user www-data;   # who"),
        edited("log_format main '", "log_format  other '"),
    ],
)
def test_what_nginx_heeds_counts(text: str) -> None:
    assert of(SHOWN) != of(text)


def test_a_blank_within_quotes_counts() -> None:
    assert of("a 'b c';") != of("a 'b  c';")
    assert of("a b;") == of("a  b;")


def test_other_addresses_of_the_studys_hosts_are_the_same_configuration() -> None:
    moved = SHOWN.replace("10.0.0.20", "10.9.0.20").replace("10.0.0.31", "10.9.0.31")
    assert of(SHOWN) == of(moved, ("10.9.0.10", "10.9.0.20", "10.9.0.31", "elsewhere"))
    assert of(SHOWN) != of(moved)
    # But not where two of them changed places.
    assert of(SHOWN) != of(SHOWN, ("10.0.0.10", "10.0.0.31", "10.0.0.20"))


def test_an_address_is_taken_whole() -> None:
    """One begins as the other does: 10.0.0.3 and 10.0.0.31."""
    assert of("server 10.0.0.31:80;", ("10.0.0.3",)) != of("server 10.0.0.41:80;", ("10.0.0.4",))
    one, other = "server [fd00::1]:80;", "server [fd00::2]:80;"
    assert of(one, ("fd00::1",)) == of(other, ("fd00::2",))
    one, other = "server [fd00::12]:80;", "server [fd00::22]:80;"
    assert of(one, ("fd00::1",)) != of(other, ("fd00::2",))


def test_in_lua_a_hash_is_no_comment() -> None:
    block = "content_by_lua_block {{ ngx.say( #ngx.req {}) }}"
    assert of(block.format("1")) != of(block.format("2"))


def test_several_nginx_count_in_no_order_and_each_once() -> None:
    one, other = SHOWN, edited("768", "769")
    assert fingerprint((one, other), HOSTS) == fingerprint((other, one, other), HOSTS)
    assert fingerprint((one, other), HOSTS) != of(one)


@pytest.mark.parametrize("confs", [(), ("",), (SHOWN, "")])
def test_what_could_not_be_shown_is_unknown(confs: tuple[str, ...]) -> None:
    assert not is_known(confs)
    assert fingerprint(confs, HOSTS) == UNKNOWN


@given(anything | damaged(SHOWN))
def test_whatever_is_shown_has_a_fingerprint(text: str) -> None:
    assert len(of(f"{text}x")) == 8


@pytest.mark.parametrize("piece", ['"', "'", "\\", "${", "#", "a ", "{", "'\\\"", "\n"])
def test_a_megabyte_of_anything_takes_no_time(piece: str) -> None:
    assert len(of(piece * (1_000_000 // len(piece)))) == 8


# Beside the facts ---------------------------------------------------------------------------------

ANSWER = (Path(__file__).parents[1] / "data" / "hosts" / "facts-x86-namespace.txt").read_text()


@pytest.mark.parametrize(
    ("shown", "confs"),
    [
        ("", ()),
        (f"{MARK}\n", ("",)),
        (f"{MARK}\n{SHOWN}", (SHOWN.removesuffix("\n"),)),
        (f"{MARK}\na 1;\n{MARK}\n{MARK}\nb 2;\n", ("a 1;", "", "b 2;")),
        # Nothing in it is a fact.
        (f"{MARK}\nkernel=9.9\ncpus=77\n", ("kernel=9.9\ncpus=77",)),
    ],
)
def test_facts_and_configurations_are_one_answer(shown: str, confs: tuple[str, ...]) -> None:
    result = facts_and_conf(LocalHost(ANSWER + shown))
    assert (facts(LocalHost(ANSWER)), confs) == result
    assert confs == server_conf(LocalHost(shown))


@given(st.lists(st.text(max_size=20), max_size=10))
def test_lines_before_the_first_mark_are_no_configuration(output: list[str]) -> None:
    assert parse_shown([line for line in output if line != MARK]) == ()


# A real nginx -------------------------------------------------------------------------------------

CONF = """\
# {comment}
user {user};
pid nginx.pid;
error_log error.log;
events {{ worker_connections {connections}; }}
include more.conf;
"""
MORE = "http {{ server {{ listen {port}; access_log off; }} }}\n"


class Nginx:
    """An nginx in the namespace of a host, with all its files in one folder."""

    def __init__(self, host: NamespaceHost, folder: Path) -> None:
        self.host, self.folder = host, folder
        self.program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")
        assert self.program, "apt-get install nginx"
        folder.mkdir(exist_ok=True)

    def write(self, *, connections: int = 64, port: int = 80, comment: str = "one") -> None:
        main = CONF.format(connections=connections, comment=comment, user="root")
        (self.folder / "nginx.conf").write_text(main)
        (self.folder / "more.conf").write_text(MORE.format(port=port))

    @property
    def start_command(self) -> str:
        return f"{self.program} -p {self.folder}/ -e error.log -c nginx.conf -g 'daemon on;'"

    def start(self) -> None:
        assert self.host.run(self.start_command).exit_code == 0
        wait_until(lambda: server_conf(self.host), "nginx has its title")


@pytest.fixture
def nginx(host: NamespaceHost, tmp_path: Path) -> Nginx:
    made = Nginx(host, tmp_path / "nginx")
    made.write()
    return made


def test_a_running_nginx_shows_what_it_was_started_with(nginx: Nginx) -> None:
    """`ip netns exec` gives each command another mount namespace than nginx has."""
    nginx.start()
    described, (shown,) = facts_and_conf(nginx.host)
    assert described.nginx.startswith("nginx/")
    assert f"# configuration file {nginx.folder}/nginx.conf:" in shown
    assert f"# configuration file {nginx.folder}/more.conf:" in shown
    assert "worker_connections 64;" in shown
    before = {path: path.stat().st_mtime_ns for path in nginx.folder.iterdir()}
    first = of(shown)
    nginx.write(comment="two")
    assert first == fingerprint(server_conf(nginx.host), HOSTS)
    nginx.write(port=81)
    assert first != fingerprint(server_conf(nginx.host), HOSTS)
    assert set(before) == set(nginx.folder.iterdir())
    pid = nginx.folder / "nginx.pid"
    assert before[pid] == pid.stat().st_mtime_ns


def test_another_folder_is_the_same_configuration(nginx: Nginx, tmp_path: Path) -> None:
    nginx.start()
    first = fingerprint(server_conf(nginx.host), HOSTS)
    end_processes(nginx.host)
    other = Nginx(nginx.host, tmp_path / "elsewhere")
    other.write()
    other.start()
    assert first == fingerprint(server_conf(other.host), HOSTS)


def test_a_configuration_that_nginx_does_not_take_is_unknown(nginx: Nginx) -> None:
    nginx.start()
    (nginx.folder / "more.conf").write_text("nonsense;\n")
    assert server_conf(nginx.host) == ("",)


def test_the_nginx_of_another_namespace_is_none_of_the_hosts(nginx: Nginx) -> None:
    nginx.start()
    assert server_conf(nginx.host)
    assert server_conf(LocalHost(setup=":")) == ()


def test_an_nginx_that_does_not_run_is_started_before_it_is_unknown(nginx: Nginx) -> None:
    """A session that was killed may have been restarting it."""
    rig = Rig(cluster(server_restart=nginx.start_command), (nginx.host, nginx.host))
    asked = ClusterFacts(hosts={"lb": FACTS}, nginx_conf=server_conf(nginx.host))
    assert asked.nginx_conf == ()
    result = with_server_started(rig, asked)
    assert result.nginx_conf is not None
    assert is_known(result.nginx_conf)
    # One that runs is left alone.
    broken = replace(rig.cluster, server_restart="exit 3")
    assert result == with_server_started(Rig(broken, rig.hosts), result)
    end_processes(nginx.host)
    assert with_server_started(Rig(broken, rig.hosts), asked).nginx_conf == ()


def test_all_hosts_of_a_cluster_are_asked_by_one_command_each() -> None:
    asked: list[tuple[str, str]] = []

    class Asked(LocalHost):
        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0):
            asked.append((self.address.name, command))
            return super().run(command, stdin=stdin, timeout_s=timeout_s)

    made = cluster()
    hosts = []
    for address in made.hosts:
        host = Asked(f"{ANSWER}{MARK}\na 1;\n" if address.role == "load-balancer" else ANSWER)
        host.address = address
        hosts.append(host)
    result = cluster_facts(Rig(made, tuple(hosts)))
    assert result.nginx_conf == ("a 1;",)
    assert set(result.hosts) == {"lg", "lb", "b1"}
    assert sorted(result.hosts) == sorted(name for name, _ in asked)
    assert [name for name, command in asked if "masters show" in command] == ["lb"]
