"""The configurations of the lab's servers, as functions from facts to text."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from intop.domain.balancing import Balancing, cpus_of
from intop.domain.lab_files import ENDING, WAITS_ENDING
from intop.lab import app
from intop.lab.content import TYPES

USUAL = Balancing()
MOST_BODY = "16m"
"""The largest upload that nginx takes; 1m is its own limit."""


def sshd_config(address: str, folder: Path, keys: Path, host: str, *, use_pam: bool) -> str:
    """Root enters with the lab's key and in no other way.

    The host has a home of its own: root's dot files on this machine may print, and take long.
    """
    return f"""\
Port 22
AddressFamily inet
ListenAddress {address}
HostKey {keys}/host-{host}
AuthorizedKeysFile {keys}/authorized_keys
PidFile {folder}/sshd.pid
AllowUsers root
PermitRootLogin prohibit-password
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitUserRC no
SetEnv HOME={folder}/home
UsePAM {"yes" if use_pam else "no"}
UseDNS no
StrictModes yes
MaxSessions 200
MaxStartups 200
LoginGraceTime 20
AllowTcpForwarding yes
X11Forwarding no
PrintMotd no
Subsystem sftp internal-sftp
"""


SYNC_FOLDER = "disk"
"""Below a host's folder, of the balancer's files that are on a disk, whatever the folder is on.
With disk_iops their writes wait for it."""
MEMORY_FOLDER = "memory"
"""The same of those that are on a tmpfs."""
LOG_FORMAT = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
    '"$http_referer" "$http_user_agent" $msec $connection $connection_requests $request_time'
)
"""The lines of access logs: nginx's combined ones, and what `workload learn` and `canary` read."""
BUFFERED_LOG = "access.log intop buffer=64k flush=1s"
CERTIFICATE = "tls.pem"


def _nginx_main(folder: Path, user: str, open_files: int, balancing: Balancing = USUAL) -> str:
    disk = folder / SYNC_FOLDER if balancing.disk_iops else folder
    log = {
        "off": "off",
        "memory": f"{folder}/{MEMORY_FOLDER}/{BUFFERED_LOG}",
        "disk": f"{folder}/{SYNC_FOLDER}/access.log intop",
    }[balancing.access_log]
    temp = "".join(
        f"    {kind}_temp_path {disk}/temp-{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # One worker each: four nginx, three applications and the load share the machine's cores.
    return f"""\
user {user};
worker_processes {balancing.workers};
{_affinity(balancing)}worker_rlimit_nofile {open_files};
pid {folder}/nginx.pid;
error_log {folder}/nginx.log error;
events {{
    worker_connections 16384;
}}
http {{
{temp}    log_format intop '{LOG_FORMAT}';
    access_log {log};
    server_tokens off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 65;
"""


def _affinity(balancing: Balancing) -> str:
    """Return the line that puts each worker on a processor in turn: a bit for each, 0 the last."""
    if not (cpus := cpus_of(balancing.server_cpus)):
        return ""
    mask = "".join("1" if n in cpus else "0" for n in range(cpus[-1], -1, -1))
    return f"worker_cpu_affinity auto {mask};\n"


STATUS_PORT, STATUS_PATH = 8099, "/nginx_status"
"""The port and path at which the load balancer's nginx gives its counts, to its own host."""


def balancer_config(
    folder: Path,
    user: str,
    backends: Sequence[str],
    *,
    open_files: int,
    balancing: Balancing = USUAL,
    files: Path | None = None,
) -> str:
    """Return the load balancer's nginx.conf: keep-alive on both sides, answers in memory.

    With `files` it answers from that folder in place of the backends.

    `max_fails=0`: a backend taken out for ten seconds after an overloaded trial would be felt
    in the next one. `backlog`, unless a lab says otherwise: above any value that
    net.core.somaxconn is given, or that would look inert. Uploads stay in memory, too.
    """
    # Without tickets, as guides for hardening have it, a session is resumed by the cache alone.
    tls = f"""\
    ssl_certificate {folder}/{CERTIFICATE};
    ssl_certificate_key {folder}/{CERTIFICATE};
    ssl_session_tickets off;
"""
    main = _nginx_main(folder, user, open_files, balancing)
    site = balancer_site(backends, balancing, files)
    return f"""\
{main}{tls if balancing.tls_key_bits else ""}{site}}}
"""


def balancer_site(
    backends: Sequence[str], balancing: Balancing = USUAL, files: Path | None = None
) -> str:
    """Return the part of the block `http` that makes an nginx the load balancer."""
    upstream, location = (
        _passing_on(backends, balancing)
        if files is None
        else (_types(), f"        root {files};\n")
    )
    sndbuf = f" sndbuf={balancing.sndbuf_kb}k" if balancing.sndbuf_kb else ""
    options = f"backlog={balancing.backlog}{sndbuf}"
    tls = f"        listen 443 ssl {options};\n" if balancing.tls_key_bits else ""
    return f"""\
{upstream}    server {{
        listen 80 {options};
{tls}        client_max_body_size {MOST_BODY};
        client_body_buffer_size 1m;
{location}    }}
    server {{
        listen 127.0.0.1:{STATUS_PORT};
        access_log off;
        location = {STATUS_PATH} {{
            stub_status;
        }}
    }}
"""


def _passing_on(backends: Sequence[str], balancing: Balancing) -> tuple[str, str]:
    """Return the block of the backends, and the location that passes requests on to them."""
    kept = balancing.upstream_keepalive
    keepalive = f"        keepalive {kept};\n" if kept else ""
    servers = "".join(f"        server {address}:80 max_fails=0;\n" for address in backends)
    count, kb = balancing.proxy_buffers, balancing.proxy_buffer_kb
    upstream = f"""\
    upstream backends {{
{servers}{keepalive}    }}
"""
    location = f"""\
        location / {{
            proxy_pass http://backends;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_buffer_size {kb}k;
            proxy_buffers {count} {kb}k;
        }}
"""
    return upstream, location


def _types() -> str:
    lines = "".join(f"        {kind} {ending};\n" for ending, kind in TYPES.items())
    return f"    types {{\n{lines}    }}\n"


def backend_config(
    folder: Path,
    user: str,
    static: Path,
    *,
    open_files: int,
    has_more: bool = False,
    has_waits: bool = False,
) -> str:
    """Return a backend's nginx.conf: files from `static`, `/dynamic` from the application.

    Where there are further files (`has_more`), those come first. Where some have waits, they are
    the application's, too.
    """
    more = f"            try_files $uri{ENDING} $uri $uri/ =404;\n" if has_more else ""
    waits = (
        f"            if (-f $document_root$uri{WAITS_ENDING}) {{ return 418; }}\n"
        "            error_page 418 = @application;\n"
        if has_waits
        else ""
    )
    passing_on = """\
            proxy_pass http://application;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_buffer_size 16k;
            proxy_buffers 16 16k;
"""
    handler = f"        location @application {{\n{passing_on}        }}\n" if has_waits else ""
    return f"""\
{_nginx_main(folder, user, open_files)}{_types()}    open_file_cache max=1000 inactive=60s;
    upstream application {{
        server unix:{folder}/app.sock max_fails=0;
        keepalive 16;
    }}
    server {{
        listen 80 backlog=65535;
        client_max_body_size {MOST_BODY};
        client_body_buffer_size 1m;
        root {static};
        location / {{
{waits}{more}            expires 1h;
        }}
        location = {app.PATH} {{
{passing_on}        }}
{handler}    }}
}}
"""


@dataclass(frozen=True, kw_only=True)
class Start:
    """The way in which a restart script starts a server."""

    title: str
    programs: Sequence[str]
    """Its names in /proc/PID/comm."""
    command: str
    """Starts it, in the shell."""
    serves: str
    """Succeeds in the shell once it serves."""
    log: str
    """The file that it writes to."""


def nginx_start(nginx: str) -> Start:
    """Start nginx, which goes into the background, and writes its pid file when it listens."""
    return Start(
        title="nginx",
        programs=("nginx",),
        # An emulated guest spares a process where there is no such file.
        command='[ ! -e "$folder/nginx.pid" ] || rm -f "$folder/nginx.pid"\n'
        f'{nginx} -e "$folder/nginx.log" -c "$folder/nginx.conf"',
        serves='[ -s "$folder/nginx.pid" ]',
        log="nginx.log",
    )


def foreground_start(title: str, programs: Sequence[str], command: Sequence[str]) -> Start:
    """Start a server that stays in the foreground, and says nothing when it listens."""
    log = "server.log"
    return Start(
        title=title,
        programs=programs,
        command=f'setsid --fork {shlex.join(command)} </dev/null >>"$folder/{log}" 2>&1',
        serves='[ -n "$(ss -Hltn "sport = :80")" ]',
        log=log,
    )


def restart_script(start: Start, folder: Path) -> str:
    """Return a script that ends every process of a server in its namespace and starts it.

    It finds them by namespace, not by a pid file, so a crash of the server doesn't confuse it.
    """
    return f"""\
#!/bin/sh
# Restart this host's {start.title}, so that it opens its listening sockets anew (somaxconn is read
# then). Written by intop lab up. Exits with 1 and says why when it doesn't come up.
folder={folder}

running() {{
    for process in /proc/[0-9]*; do
        read -r name <"$process/comm" || continue
        case $name in {" | ".join(start.programs)}) ;; *) continue ;; esac
        if [ "$process/ns/net" -ef /proc/self/ns/net ]; then echo "${{process#/proc/}}"; fi
    done 2>/dev/null
}}

stop() {{ # signal, times to look (20 ms each)
    pids=$(running)
    [ -z "$pids" ] && return 0
    kill "-$1" $pids 2>/dev/null
    looks=0
    while [ -n "$(running)" ]; do
        [ "$looks" -ge "$2" ] && return 1
        looks=$((looks + 1))
        sleep 0.02
    done
}}

fail() {{
    echo "{start.title} $1" >&2
    tail -n 5 "$folder/{start.log}" >&2
    exit 1
}}

stop TERM 150 || stop KILL 150 || fail "does not end"
{start.command} || fail "did not start"
looks=0
until {start.serves}; do
    [ "$looks" -ge 150 ] && fail "does not serve"
    looks=$((looks + 1))
    sleep 0.02
done
"""


def known_hosts_line(address: str, public_key: str) -> str:
    """Return the line for a host on port 22, without the key's comment."""
    kind, key = public_key.split()[:2]
    return f"{address} {kind} {key}\n"


def password_is_locked(shadow: str, user: str = "root") -> bool:
    """Whether /etc/shadow locks the account: sshd then lets it in only by way of PAM."""
    for line in shadow.splitlines():
        name, _, rest = line.partition(":")
        if name == user:
            return rest.startswith("!")
    return False
