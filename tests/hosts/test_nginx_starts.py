"""A real nginx that was started in an unusual, but legal way: looked at, tuned and given back."""

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders.nginx_files import catalogue
from intop.domain.configuration import Configuration
from intop.errors import HostError
from intop.hosts.facts import server_conf
from intop.hosts.guard import guarded
from intop.hosts.nginx_files import tunable_nginx
from kit.namespace_host import SOMAXCONN, NamespaceHost, wait_until
from kit.nginx_host import workers

PROCESSES = "nginx:main.worker_processes"
BUFFER = "nginx:listen.rcvbuf"
MAIN = """\
user root;
worker_processes 1;
pid {quote}{prefix}/nginx.pid{quote};
error_log {quote}{prefix}/error.log{quote};
events {{ worker_connections 128; }}
http {{
    access_log off;
    client_body_temp_path {quote}{prefix}/body{quote};
    proxy_temp_path {quote}{prefix}/proxy{quote};
    fastcgi_temp_path {quote}{prefix}/fastcgi{quote};
    uwsgi_temp_path {quote}{prefix}/uwsgi{quote};
    scgi_temp_path {quote}{prefix}/scgi{quote};
    include {quote}{site}{quote};
}}
"""
SITE = "server {{\n    listen 127.0.0.1:{port};\n    location / {{ return 204; }}\n}}\n"


@dataclass(frozen=True)
class Start:
    """The options of an nginx, and where its files are in the folder in which it is started."""

    options: str
    prefix: str = "nginx"
    main: str = "nginx.conf"
    site: str = "site.conf"
    quote: str = '"'


ABSOLUTE = Start("-p {folder}/nginx -c nginx.conf")
RELATIVE = Start("-p nginx -c nginx.conf")
STARTS = {
    "an absolute prefix": ABSOLUTE,
    "a relative prefix": RELATIVE,
    "a slash at the end": Start("-p nginx/ -c nginx.conf"),
    "dots": Start("-p ./nginx/../nginx -c ../nginx/nginx.conf"),
    "attached words": Start("-pnginx -cnginx.conf"),
    "letters before": Start("-qp nginx -qc nginx.conf"),
    "a configuration elsewhere": Start("-p nginx -c conf/main.conf", main="conf/main.conf"),
    "an absolute configuration": Start("-c {folder}/nginx/nginx.conf"),
    "options twice": Start("-c none.conf -p none -p nginx -c nginx.conf"),
    "several -g": Start("-g 'pcre_jit off;' -p nginx -g 'pcre_jit on; env  A;' -c nginx.conf"),
    "blanks": Start(
        "-p 'my  web server' -c 'conf d/main  file.conf'",
        prefix="my  web server",
        main="conf d/main  file.conf",
        site="site d/one  more.conf",
    ),
    "quotes": Start(
        """-p "it's" -c 'a"b.conf'""", prefix="it's", main='a"b.conf', site='c"d.conf', quote="'"
    ),
    "signs of a shell": Start(
        "-p 'a;b&$(c)*' -c 'x`y`.conf'", prefix="a;b&$(c)*", main="x`y`.conf"
    ),
}
"""All options at once: nginx takes the last one of each letter."""
AMBIGUOUS = {
    "a blank at the end": Start("-p 'web ' -c nginx.conf", prefix="web "),
    "an option in a path": Start("-p 'web -conf' -c nginx.conf", prefix="web -conf"),
}
"""A title does not say where its words end."""


def write(folder: Path, start: Start, port: int) -> Path:
    """Write the files of an nginx. Returns its first one."""
    prefix = folder / start.prefix
    main = prefix / start.main
    site = main.parent / start.site
    for path in (main, site):
        path.parent.mkdir(parents=True, exist_ok=True)
    site.write_text(SITE.format(port=port))
    # In single quotes, a quote of that kind needs a backslash.
    there = str(prefix).replace(start.quote, f"\\{start.quote}")
    main.write_text(MAIN.format(prefix=there, site=start.site, quote=start.quote))
    return main


class Nginx:
    """An nginx that runs in a folder, and the command that starts it once more."""

    def __init__(
        self,
        host: NamespaceHost,
        folder: Path,
        start: Start,
        *,
        program: str = "nginx",
        after: str = "",
        port: int = 80,
    ) -> None:
        self.host, self.folder = host, folder
        self.main = write(folder, start, port)
        pid = shlex.quote(str(folder / start.prefix / "nginx.pid"))
        options = start.options.format(folder=folder)
        self.restart = (
            f"if read -r pid < {pid}; then\n"
            '    kill "$pid"\n'
            f"    while [ -e {pid} ]; do sleep 0.01; done\n"
            "fi 2>/dev/null\n"
            f"cd {shlex.quote(str(folder))} && {program} -e error.log {options} {after}"
        )
        serving = workers(host)
        # A daemon would hold the pipes of our command.
        started = host.run(f"ip link set lo up; ({self.restart}) > {folder}/said 2>&1")
        assert started.exit_code == 0, (folder / "said").read_text()
        wait_until(lambda: workers(host) == serving + 1, "nginx serves")


def check_a_session(nginx: Nginx) -> None:
    """By a reload, by a restart, and back."""
    before = nginx.main.read_bytes()
    tunable = tunable_nginx(nginx.host, catalogue())
    with guarded(nginx.host, [SOMAXCONN], nginx=tunable, restart=nginx.restart) as session:
        session.apply(Configuration({PROCESSES: "2"}))
        assert workers(nginx.host) == 2
        session.apply(Configuration({BUFFER: "64"}))
        assert workers(nginx.host) == 1
        session.apply(Configuration({PROCESSES: "3"}))
    assert before == nginx.main.read_bytes()
    assert workers(nginx.host) == 1


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_an_nginx_is_tuned_and_given_back_however_it_was_started(
    host: NamespaceHost, tmp_path: Path, start: Start
) -> None:
    check_a_session(Nginx(host, tmp_path / "there", start))


def test_an_nginx_in_the_foreground_of_a_supervisor_is_tuned(
    host: NamespaceHost, tmp_path: Path
) -> None:
    check_a_session(Nginx(host, tmp_path / "there", ABSOLUTE, after="-g 'daemon off;' &"))


@pytest.mark.parametrize("start", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_title_that_can_be_read_in_two_ways_is_refused_in_nginx_own_words(
    host: NamespaceHost, tmp_path: Path, start: Start
) -> None:
    Nginx(host, tmp_path / "there", start)
    assert server_conf(host) == ("",)
    with pytest.raises(
        HostError, match=r'title \(nginx: .* open\(\) "[^"]*/web/nginx\.conf" failed \(2: No'
    ):
        tunable_nginx(host, catalogue())


def test_a_title_without_room_for_its_options_is_no_configuration(
    host: NamespaceHost, tmp_path: Path
) -> None:
    """nginx has only its words and its environment to write its title into."""
    Nginx(host, tmp_path / "there", ABSOLUTE, program="env -i $(command -v nginx)")
    assert server_conf(host) == ("",)
    with pytest.raises(HostError, match="start nginx with a longer environment, such as a PATH"):
        tunable_nginx(host, catalogue())


def test_two_nginx_are_counted_and_neither_is_tuned(host: NamespaceHost, tmp_path: Path) -> None:
    Nginx(host, tmp_path / "there", ABSOLUTE)
    Nginx(host, tmp_path / "elsewhere", RELATIVE, port=81)
    assert ["listen 127.0.0.1:8" in shown for shown in server_conf(host)] == [True, True]
    with pytest.raises(HostError, match=r"lb: 2 nginx run in .*: .*where exactly one nginx runs"):
        tunable_nginx(host, catalogue())


def test_a_folder_that_is_gone_is_named_and_another_one_in_its_place_is_not_taken_for_it(
    host: NamespaceHost, tmp_path: Path
) -> None:
    """A release is deployed in a new folder, and the old one is removed."""
    nginx = Nginx(host, tmp_path / "there", RELATIVE)
    shutil.rmtree(nginx.folder)
    write(nginx.folder, RELATIVE, 81)
    assert server_conf(host) == ("",)
    with pytest.raises(HostError, match=r"open\(\) .*there \(deleted\)/nginx/nginx\.conf"):
        tunable_nginx(host, catalogue())


def test_where_it_was_started_does_not_matter_to_an_absolute_prefix(
    host: NamespaceHost, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    nginx = Nginx(host, tmp_path / "there", ABSOLUTE, program=f"cd {gone} && nginx")
    nginx.restart = nginx.restart.replace(f"cd {gone} && ", "")
    gone.rmdir()
    check_a_session(nginx)


def test_an_upgrade_of_the_program_leaves_two_until_the_old_one_ends(
    host: NamespaceHost, tmp_path: Path
) -> None:
    """By SIGUSR2, and from a folder that its relative prefix is in."""
    nginx = Nginx(host, tmp_path / "there", RELATIVE, program="$(command -v nginx)")
    pid = nginx.folder / "nginx/nginx.pid"
    old = pid.read_text().strip()
    assert host.run(f"kill -USR2 {old}").exit_code == 0
    wait_until(lambda: workers(host) == 2, "the new one serves")
    with pytest.raises(HostError, match=r"lb: 2 nginx run in "):
        tunable_nginx(host, catalogue())
    assert host.run(f"kill -QUIT {old}").exit_code == 0
    wait_until(lambda: len(server_conf(host)) == 1, "the old one ends")
    check_a_session(nginx)
