"""A server in place of nginx: its version, what it reads, and whether it would start with that."""

from collections.abc import Mapping

from intop.domain.server import Server, ServerName
from intop.hosts.answers import lines
from intop.hosts.host import Host, output
from intop.hosts.nginx_conf import MARK

VERSIONS: Mapping[ServerName, str] = {
    "apache": "{ apache2 -v || httpd -v; } 2>/dev/null | sed -n 's#^Server version: *##p'",
    "haproxy": "haproxy -v 2>/dev/null | "
    "sed -n 's#^HA-\\{0,1\\}Proxy version \\([^ ]*\\).*#haproxy/\\1#p'",
    "lighttpd": "lighttpd -v 2>/dev/null | sed -n 's#^\\(lighttpd/[^ ]*\\).*#\\1#p'",
    "varnish": "varnishd -V 2>&1 | sed -n 's#^varnishd (varnish-\\([^ )]*\\).*#varnish/\\1#p'",
    "caddy": "caddy version 2>/dev/null | sed -n '1s#^v\\{0,1\\}\\([^ ]*\\).*#caddy/\\1#p'",
    "h2o": "h2o -v 2>/dev/null | sed -n 's#^h2o version \\([^ ]*\\).*#h2o/\\1#p'",
}
"""POSIX sh that prints a name and a version, such as `haproxy/2.6.12`, as `nginx -v` does."""

_EACH = """
PATH=$PATH:/usr/sbin:/usr/local/sbin
value() {{ # what follows the option $1 of the server
    printf '%s\\n' "$words" | sed -n "/^$1\\$/{{n;p;}}; s/^$1=//p" | head -n 1
}}
on() {{ # where the server's files are, which may be a container's
    if [ "$process/ns/mnt" -ef /proc/self/ns/mnt ]; then
        timeout 10 "$@" < /dev/null
    else
        timeout 10 nsenter -t "${{process#/proc/}}" -m -- "$@" < /dev/null
    fi
}}
head_of() {{ echo "# configuration file $1:"; }}
file() {{ head_of "$1" && on cat "$1"; }}
{functions}
for process in /proc/[0-9]*; do
    read -r name < "$process/comm" || continue
    case $name in {programs}) ;; *) continue ;; esac
    [ "$process/ns/net" -ef /proc/self/ns/net ] || continue
    parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$process/status")
    # One that another process of the server has started is its worker.
    if read -r name < "/proc/$parent/comm"; then
        case $name in {programs}) continue ;; esac
    fi
    words=$(tr '\\0' '\\n' < "$process/cmdline")
    program=$(readlink "$process/exe")
    program=${{program% (deleted)}}
    {work}
done 2>/dev/null
:
"""

_FUNCTIONS: Mapping[ServerName, str] = {
    # Debian's configuration needs variables that its service sets.
    "apache": """
called() {
    while IFS='' read -r line; do
        case $line in APACHE_*) export "$line" ;; esac
    done <<SET
$(tr '\\0' '\\n' < "$process/environ")
SET
    conf=$(value -f)
    root=$(value -d)
    on "$program" ${root:+-d "$root"} ${conf:+-f "$conf"} "$@"
}
show() {
    called -t -D DUMP_INCLUDES | sed -n 's/^ *([^)]*) //p' | while read -r one; do file "$one"; done
}
check() { called -t; }
""",
    "haproxy": """
confs() { printf '%s\\n' "$words" | sed -n '/^-f$/{n;p;}'; }
show() { confs | while read -r one; do file "$one"; done; }
check() {
    set --
    while read -r one; do set -- "$@" -f "$one"; done <<CONFS
$(confs)
CONFS
    on "$program" -c "$@"
}
""",
    # It shows its process id, too.
    "lighttpd": """
show() { head_of "$(value -f)" && on "$program" -p -f "$(value -f)" | sed '/^ *var\\./d'; }
check() { on "$program" -tt -f "$(value -f)"; }
""",
    # Much of what it is set to stands in its options alone.
    "varnish": """
show() {
    [ -z "$(value -f)" ] || file "$(value -f)"
    printf '%s\\n' "$words"
}
check() { [ -z "$(value -f)" ] || on "$program" -C -f "$(value -f)"; }
""",
    "caddy": """
called() {
    by=$(value --adapter)
    on "$program" "$1" --config "$(value --config)" ${by:+--adapter "$by"}
}
show() { head_of "$(value --config)" && called adapt; }
check() { called validate; }
""",
    "h2o": """
conf() {
    conf=$(value -c)
    conf=${conf:-$(value --conf)}
    echo "${conf:-/etc/h2o/h2o.conf}"
}
show() { file "$(conf)"; }
check() { on "$program" -t -c "$(conf)"; }
""",
}
"""POSIX sh for each server: `show` prints what it reads, `check` says whether it would start."""

REFUSED = "refused "
_CHECK = f"""said=$(check 2>&1) ||
        printf '{REFUSED}%s\\n' "$(printf '%s' "$said" | tail -n 3 | tr '\\n' ' ')" """


def shown(server: Server) -> str:
    """POSIX sh that prints what each such server in the network namespace reads, as SHOW of
    `hosts/nginx_conf.py` does for nginx. Changes nothing; root is needed.
    """
    return _each(server, f"echo {MARK}; show")


def refusals(host: Host, server: Server) -> list[str]:
    """What each such server of the network namespace says against its own configuration, if it
    would not start with it. Raises CommandError and UnreachableError as `output` does.
    """
    said = lines(output(host, _each(server, _CHECK)))
    return [line.removeprefix(REFUSED).strip() for line in said if line.startswith(REFUSED)]


def _each(server: Server, work: str) -> str:
    return _EACH.format(
        functions=_FUNCTIONS[server.name], programs=" | ".join(server.programs), work=work
    )
