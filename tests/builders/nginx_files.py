"""An nginx of several files that all directives of the catalogue have a place in."""

import platform
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from intop.config.directives import load_directives
from intop.domain.nginx.conf import Conf, parse_shown
from intop.domain.nginx.directive import NginxFacts
from intop.domain.nginx.standing import Directives

CATALOGUE = Path(__file__).parents[2] / "configs" / "nginx.toml"

FACTS = NginxFacts(
    version=(1, 22, 1),
    build=("--with-threads", "--with-pcre-jit"),
    kernel="6.1.0-30-amd64",
    cpus=2,
    page_kib=4,
    nofile=1024,
)

MAIN = """\
# The whole of it.
user root;  # a comment; with } in it
worker_processes auto;
pid nginx.pid;
error_log stderr;
events {
\tworker_connections 1024;
}
http {
    log_format short '$remote_addr "$request" { $status };';
    access_log access.log short;
    sendfile on;
    keepalive_timeout 65 60;
    include conf.d/*.conf;
}
"""

SITE = """\
upstream backends {
    least_conn;
    server 127.0.0.1:18081;
    server 127.0.0.1:18082;
}
upstream one { server 127.0.0.1:18083; }

server {
    listen 127.0.0.1:18080 default_server;
    listen [::1]:18080;
    listen unix:site.sock;
    listen 127.0.0.1:18443 ssl http2;
    server_name ~^(?<name>.+)\\.example$;
    ssl_certificate pair.pem;
    ssl_certificate_key pair.pem;
    location / {
        include snippets/proxy.conf;
        proxy_pass http://backends;
    }
    location /large {
        include snippets/proxy.conf;
        proxy_buffers 16 16k;
        proxy_buffer_size 16k;
        proxy_pass http://backends;
    }
    location /stream {
        proxy_buffering off;
        proxy_pass http://one;
    }
}
server {
    listen 127.0.0.1:18080;
    server_name b.example;
    location ~ "^/x{1,3}" { access_log off; sendfile off; return 204; }
}
"""

PROXY = "proxy_set_header Host $host;\nproxy_set_header X-Real-IP $remote_addr;\n"

TEXTS: Mapping[str, str] = {
    "nginx.conf": MAIN,
    "conf.d/site.conf": SITE,
    "snippets/proxy.conf": PROXY,
}


@cache
def catalogue() -> Directives:
    """What comes with intop."""
    return load_directives(CATALOGUE)


def conf(texts: Mapping[str, str] = TEXTS, folder: str = "/etc/nginx") -> Conf:
    """These files below a folder."""
    return Conf.of(f"{folder}/nginx.conf", {f"{folder}/{p}": text for p, text in texts.items()})


def of_http(body: str, *, main: str = "", events: str = "") -> Conf:
    """One file with this in its block `http`."""
    return conf({"nginx.conf": f"{main}events {{{events}}}\nhttp {{\n{body}}}\n"})


class RealNginx:
    """Debian's nginx over files in a folder: none is started.

    In a network namespace it opens its sockets there.
    """

    def __init__(self, folder: Path, pair: str, namespace: str = "") -> None:
        self.folder = folder
        self.inside = ["nsenter", f"--net=/run/netns/{namespace}"] if namespace else []
        (folder / "pair.pem").write_text(pair)
        (folder / "body").mkdir()
        shown = subprocess.run(["nginx", "-V"], capture_output=True, text=True, check=True).stderr
        self.facts = NginxFacts.of(
            shown, kernel=platform.release(), cpus=2, page_bytes=4096, nofile=1024
        )

    def write(self, texts: Mapping[str, str]) -> None:
        """Files by their paths, byte by byte."""
        for path, text in texts.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(text.encode(errors="surrogateescape"))

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Nginx with options such as -t or -T."""
        words = [*self.inside, "nginx", *options, "-p", str(self.folder)]
        ended = subprocess.run(
            [*words, "-e", "stderr", "-c", "nginx.conf"], capture_output=True, check=False
        )
        return subprocess.CompletedProcess(
            ended.args, ended.returncode, _text(ended.stdout), _text(ended.stderr)
        )

    def shown(self) -> Conf:
        """What nginx says is effective. Raises AssertionError with its words where it refuses."""
        ended = self.run("-T")
        assert ended.returncode == 0, complaint(ended.stderr)
        return parse_shown(ended.stdout)


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def complaint(stderr: str) -> str:
    """Why nginx refuses its files."""
    return "\n".join(re.findall(r"\[emerg\] .*|^nginx: .*", stderr, re.MULTILINE))
