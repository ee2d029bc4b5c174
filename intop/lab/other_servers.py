"""The load balancers of labs where that is not nginx: how Debian's other servers are set up there.

Each passes requests on to the backends in turn, keeps connections, and listens with the longest
backlog that it can: a shorter one than net.core.somaxconn would make that key look inert. What is
not said here is as the server has it by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from intop.domain.server import ServerName
from intop.lab.content import TYPES

MODULES = "/usr/lib/apache2/modules"
KEPT_REQUESTS = 1000
"""Requests on one connection, for those that limit it: as many as nginx has by itself."""
KEPT_S = 65
THREADS = 64
"""Threads of each of Apache's processes."""
MOST_THREADS = 1024
"""Threads of all of Apache's processes: a request that is served has one to itself."""

H2O_BACKENDS = 1
"""H2O knows a single server to pass a path on to, up to version 2.2."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A load balancer's site: what it serves, and with which means."""

    folder: Path
    user: str
    group: str
    backends: Sequence[str]
    """Addresses to which it passes requests on."""
    files: Path | None
    """A folder whose files it answers with in place of the backends."""
    workers: int
    backlog: int
    open_files: int

    @property
    def conf(self) -> Path:
        """The file of its configuration."""
        return self.folder / "server.conf"

    @property
    def connections(self) -> int:
        """The most clients that it may have: each has a connection to a backend."""
        return (self.open_files - 100) // 2


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The way to set a server up and to start it."""

    package: str
    """Debian's package that brings its program."""
    program: str
    conf: Callable[[Site], str]
    """The text of its configuration."""
    command: Callable[[Site], Sequence[str]]
    """Runs it in the foreground."""


# -- configurations ------------------------------------------------------------------------------


def apache(site: Site) -> str:
    """Debian's usual way of work (the event MPM), without what its package switches on beside."""
    modules = ["mpm_event", "authz_core"]
    if site.files is not None:
        modules += ["mime"]
        types = "".join(f"AddType {kind} .{ending}\n" for ending, kind in TYPES.items())
        body = f"""\
TypesConfig /dev/null
{types}DocumentRoot {site.files}
<Directory {site.files}>
    Require all granted
</Directory>
"""
    else:
        modules += ["slotmem_shm", "proxy", "proxy_http", "proxy_balancer", "lbmethod_byrequests"]
        members = "".join(f"    BalancerMember http://{b}:80 retry=0\n" for b in site.backends)
        body = f"""\
<Proxy balancer://backends>
{members}</Proxy>
ProxyPass / balancer://backends/
ProxyPreserveHost On
"""
    loaded = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in modules)
    return f"""\
ServerRoot {site.folder}
ServerName lab
DefaultRuntimeDir {site.folder}
PidFile {site.folder}/server.pid
ErrorLog {site.folder}/server.log
LogLevel error
{loaded}User {site.user}
Group {site.group}
Listen 80
ListenBacklog {site.backlog}
StartServers {max(2, site.workers)}
ThreadsPerChild {THREADS}
ServerLimit {MOST_THREADS // THREADS}
MaxRequestWorkers {MOST_THREADS}
KeepAliveTimeout {KEPT_S}
MaxKeepAliveRequests {KEPT_REQUESTS}
{body}"""


def haproxy(site: Site) -> str:
    """A thread for each worker. It has no files to serve."""
    servers = "".join(f"    server b{n} {b}:80\n" for n, b in enumerate(site.backends, 1))
    return f"""\
global
    user {site.user}
    group {site.group}
    nbthread {site.workers}
    maxconn {site.connections}
defaults
    mode http
    timeout connect 5s
    timeout client {KEPT_S}s
    timeout server {KEPT_S}s
    http-reuse always
    option forwardfor
frontend clients
    bind :80 backlog {site.backlog}
    default_backend backends
backend backends
    balance roundrobin
{servers}"""


def lighttpd(site: Site) -> str:
    """A process for each worker. It keeps no connection to a backend."""
    workers = f"server.max-worker = {site.workers}\n" if site.workers > 1 else ""
    if site.files is not None:
        types = ", ".join(f'".{ending}" => "{kind}"' for ending, kind in TYPES.items())
        body = f"mimetype.assign = ({types})\n"
    else:
        hosts = ", ".join(f'("host" => "{b}", "port" => 80)' for b in site.backends)
        body = f"""\
server.modules = ("mod_proxy")
server.upload-dirs = ("/var/tmp")  # it holds large answers; TMPDIR may be a folder of ours alone
proxy.balance = "round-robin"
proxy.server = ("" => ({hosts}))
"""
    return f"""\
server.port = 80
server.document-root = "{site.files or site.folder}"
server.username = "{site.user}"
server.groupname = "{site.group}"
server.listen-backlog = {site.backlog}
server.max-fds = {site.open_files}
server.max-connections = {site.connections}
server.max-keep-alive-requests = {KEPT_REQUESTS}
server.max-keep-alive-idle = {KEPT_S}
{workers}{body}"""


def varnish(site: Site) -> str:
    """Backends in turn, for what is not in its memory. It has no files to serve."""
    backends = "".join(
        f'backend b{n} {{ .host = "{b}"; .port = "80"; }}\n' for n, b in enumerate(site.backends, 1)
    )
    added = "".join(f"    backends.add_backend(b{n});\n" for n, _ in enumerate(site.backends, 1))
    return f"""\
vcl 4.1;
import directors;
{backends}sub vcl_init {{
    new backends = directors.round_robin();
{added}}}
sub vcl_recv {{
    set req.backend_hint = backends.backend();
}}
"""


def caddy(site: Site) -> str:
    """Return Caddy's configuration, without certificates and without an administration port."""
    if site.files is not None:
        body = f"""\
    root * {site.files}
    file_server
"""
    else:
        upstreams = " ".join(f"{b}:80" for b in site.backends)
        body = f"""\
    reverse_proxy {upstreams} {{
        lb_policy round_robin
        transport http {{
            keepalive_idle_conns_per_host 64
        }}
    }}
"""
    return f"""\
{{
    admin off
    auto_https off
    grace_period 1s
    log {{
        level ERROR
    }}
    servers {{
        protocols h1
    }}
}}
:80 {{
{body}}}
"""


def h2o(site: Site) -> str:
    """A thread for each worker. It passes on to one backend only."""
    body = (
        f'proxy.reverse.url: "http://{site.backends[0]}:80/"\n        proxy.preserve-host: ON'
        if site.files is None
        else f"file.dir: {site.files}"
    )
    return f"""\
user: {site.user}
num-threads: {site.workers}
max-connections: {site.connections}
listen:
  host: 0.0.0.0
  port: 80
hosts:
  default:
    paths:
      /:
        {body}
"""


# -- programs ------------------------------------------------------------------------------------


def _as_user(site: Site) -> tuple[str, ...]:
    """Return what to put before a command to have the web server's account listen on port 80."""
    port = "net_bind_service"
    capabilities = (f"--inh-caps=+{port}", f"--ambient-caps=+{port}")
    account = (f"--reuid={site.user}", f"--regid={site.group}", "--clear-groups")
    return ("setpriv", *account, *capabilities)


RECIPES: Mapping[ServerName, Recipe] = {
    "apache": Recipe(
        package="apache2-bin",  # the package apache2 adds a site and a service
        program="apache2",
        conf=apache,
        command=lambda site: ("apache2", "-D", "FOREGROUND", "-f", str(site.conf)),
    ),
    "haproxy": Recipe(
        package="haproxy",
        program="haproxy",
        conf=haproxy,
        command=lambda site: ("haproxy", "-db", "-f", str(site.conf)),
    ),
    "lighttpd": Recipe(
        package="lighttpd",
        program="lighttpd",
        conf=lighttpd,
        command=lambda site: ("lighttpd", "-D", "-f", str(site.conf)),
    ),
    "varnish": Recipe(
        package="varnish",
        program="varnishd",
        conf=varnish,
        command=lambda site: (
            *("varnishd", "-F", "-a", "0.0.0.0:80", "-f", str(site.conf)),
            # Its package makes this user, which shares a group with that of its worker.
            *("-n", str(site.folder / "varnish"), "-j", "unix,user=vcache"),
            *("-s", "malloc,256m", "-p", f"listen_depth={site.backlog}"),
        ),
    ),
    "caddy": Recipe(
        package="caddy",
        program="caddy",
        conf=caddy,
        command=lambda site: (
            *("env", f"GOMAXPROCS={site.workers}", *_as_user(site)),
            *("caddy", "run", "--config", str(site.conf), "--adapter", "caddyfile"),
        ),
    ),
    "h2o": Recipe(
        package="h2o",
        program="h2o",
        conf=h2o,
        command=lambda site: ("h2o", "-c", str(site.conf)),
    ),
}
