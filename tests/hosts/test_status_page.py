"""The page of nginx's module stub_status, as a real nginx has it, and what stands in its place."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builders.doctored import cluster
from intop.errors import CommandError
from intop.hosts import status_page
from intop.hosts.host import Completed
from kit.local_host import LocalHost
from kit.namespace_host import NamespaceHost, wait_until

CONF = """\
user root; pid {folder}/nginx.pid;
events {{}}
http {{
    access_log off;
    server {{
        listen 127.0.0.1:8080;
        {temporary}
        location = /nginx_status {{ stub_status; allow 127.0.0.1; deny all; }}
        location = /denied {{ stub_status; deny all; }}
        location = /moved {{ return 301 /nginx_status; }}
        location = /text {{ return 200 "It works!\\n"; }}
        location = /closed {{ return 444; }}
    }}
}}
"""
TEMPORARY = "client_body proxy fastcgi uwsgi scgi"


@contextmanager
def served(host: NamespaceHost, folder: Path) -> Iterator[None]:
    """A real nginx on port 8080 of the host, which ends with its namespace."""
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in TEMPORARY.split())
    (folder / "nginx.conf").write_text(CONF.format(folder=folder, temporary=temporary))
    started = host.run(
        f"ip link set lo up && nginx -p {folder} -e {folder}/error.log -c {folder}/nginx.conf "
        "> /dev/null 2>&1"
    )
    assert started.exit_code == 0, (folder / "error.log").read_text()
    wait_until(lambda: host.run("ss -Hltn sport = :8080").stdout, "nginx serves")
    yield


def test_doctor_says_what_stands_in_the_place_of_nginx_s_page(
    host: NamespaceHost, tmp_path: Path
) -> None:
    expected = {
        ":8080/nginx_status": "",
        ":8080/missing": "answers 404 Not Found",
        ":8080/denied": "answers 403 Forbidden",
        ":8080/moved": "answers 301 Moved Permanently",
        ":8080/text": "answers with another text than stub_status has ('It works!')",
        ":8080/closed": "does not answer within 0.5 s",
        ":8081/nginx_status": "does not answer within 0.5 s",
    }
    with served(host, tmp_path):
        warnings = {
            path: status_page.warnings(host, cluster(stub_status=f"http://127.0.0.1{path}"))
            for path in expected
        }
    assert {
        path: lines[0].partition(path)[2].partition(", so trials")[0].strip() if lines else ""
        for path, lines in warnings.items()
    } == expected
    (line,) = warnings[":8081/nginx_status"]
    assert "listens on 127.0.0.1:8081 the block location = /nginx_status { stub_status;" in line


class Mute(LocalHost):
    """A host without bash."""

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        return Completed(127, "", "sh: 1: bash: not found\n")


def test_a_host_without_bash_has_an_error_of_its_own() -> None:
    page = "http://127.0.0.1/nginx_status"
    with pytest.raises(CommandError, match=r"can't be read by bash .*bash: not found"):
        status_page.warnings(Mute(), cluster(stub_status=page))
