"""A server in place of nginx: its version, its configuration, and its complaints about that."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from intop.domain.server import Server, ServerName
from intop.hosts.answers import lines
from intop.hosts.host import Host, output
from intop.hosts.nginx_conf import MARK
from intop.hosts.trust import FUNCTIONS

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

MOST = 4
"""The most processes without root's rights that are asked."""
LIMIT_S = 15
"""The time for which others than root can keep us busy, however slow their programs may be."""

_EACH = """{shared}
PATH=$PATH:/usr/sbin:/usr/local/sbin
value() {{ # what follows the option $1 of the server
    printf '%s\\n' "$words" | sed -n "/^$1\\$/{{n;p;}}; s/^$1=//p" | head -n 1
}}
of_process() {{ # its lines: what is a user's may have no end, and take as long as he likes
    timeout -k 1 1 head -c 1000000 "$process/$1" | tr '\\0' '\\n'
}}
on() {{ # where the server's files are, which may be a container's, and with its user's rights
    if [ -n "$runs_as" ]; then
        as_user "$@"
    elif [ "$process/ns/mnt" -ef /proc/self/ns/mnt ]; then
        timeout 10 "$@" < /dev/null
    else
        timeout 10 nsenter -t "${{process#/proc/}}" -m -- "$@" < /dev/null
    fi
}}
in_time() {{ # whether there is time left for what belongs to others than root
    read -r now _ < /proc/uptime
    [ -z "$runs_as" ] || [ "${{now%%.*}}" -lt "$until" ]
}}
as_user() {{ # what it prints goes through a file: nobody waits for what it leaves running
    in_time && answer=$(mktemp) || return
    user=${{runs_as% *}}
    group=${{runs_as#* }}
    (
        exec < /dev/null > "$answer"
        {errors}
        # He may be elsewhere by now, with files of his own for set-id programs of root's.
        if [ "$process/ns/mnt" -ef /proc/self/ns/mnt ]; then
            set -- --reuid "$user" --regid "$group" --clear-groups -- "$@"
        else
            set -- -- nsenter -t "${{process#/proc/}}" -m -S "$user" -G "$group" -- "$@"
        fi
        set -- setpriv --no-new-privs "$@"
        exec env -i PATH="$PATH" timeout -k 1 10 "$@"
    )
    code=$?
    head -c 1000000 "$answer"
    rm -f "$answer"
    return "$code"
}}
head_of() {{ echo "# configuration file $1:"; }}
file() {{ head_of "$1" && on cat "$1"; }}
{functions}
each() {{ # does the work for processes of root's, or for a few of others where $1 is given
    looked_into=0
    read -r now _ < /proc/uptime
    until=$((${{now%%.*}} + {limit}))
    for process in /proc/[0-9]*; do
        read -r name < "$process/comm" || continue
        case $name in {programs}) ;; *) continue ;; esac
        [ -n "${{1-}}" ] || is_roots "$process" || continue
        look_at_server "$process" "{names}" && [ -z "$doubt" ] && in_time || continue
        parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$process/status")
        # One that another process of the server has started is its worker.
        if read -r name < "/proc/$parent/comm"; then
            case $name in {programs}) continue ;; esac
        fi
        words=$(of_process cmdline)
        variables=$(of_process environ)
        is_still "$process" || continue
        looked_into=$((looked_into + 1))
        [ "$looked_into" -le "${{1:-1000}}" ] || break
        {work}
    done 2>/dev/null
    [ "$looked_into" != 0 ]
}}
each || each {most}
:
"""

_FUNCTIONS: Mapping[ServerName, str] = {
    # Debian's configuration needs variables that its service sets.
    "apache": """
called() {
    while IFS='' read -r line; do
        case $line in APACHE_*) export "$line" ;; esac
    done <<SET
$variables
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
"""POSIX sh for each server: `show` prints its configuration, `check` whether it would start."""

REFUSED = "refused"
_CHECK = f"""said=$(check 2>&1) || {{
            said=$(printf '%s' "$said" | tail -n 3 | tr '\\n' ' ')
            printf '{REFUSED} %s %s\\n' "${{runs_as%% *}}" "$said"
        }}"""


@dataclass(frozen=True)
class Refusal:
    """A server's complaint about its own configuration."""

    text: str
    user: str
    """The id of the user who asked; "" for root."""

    @property
    def is_sure(self) -> bool:
        """Whether the server would say so at its start, where it may have more rights."""
        return not (self.user and re.search("permi(ssion|tted)", self.text, re.IGNORECASE))


def shown(server: Server) -> str:
    """Return POSIX sh that prints the configuration of each such server in the network namespace.

    It prints as SHOW of `hosts/nginx_conf.py` does for nginx. It changes nothing, and needs root.
    """
    return _each(server, f"echo {MARK}; show")


def refusals(host: Host, server: Server) -> list[Refusal]:
    """Return the complaints of each such server of the network namespace about its configuration.

    A server that would start with it says nothing. Raises CommandError and UnreachableError as
    `output` does.
    """
    answer = (line.split(" ", 2) for line in lines(output(host, _each(server, _CHECK, "&1"))))
    return [
        Refusal(text=words[2].strip(), user=words[1])
        for words in answer
        if words[0] == REFUSED and len(words) == 3
    ]


def _each(server: Server, work: str, errors: str = "/dev/null") -> str:
    """`errors` is where a program's messages go that runs without root's rights."""
    return _EACH.format(
        shared=FUNCTIONS,
        functions=_FUNCTIONS[server.name],
        programs=" | ".join(server.programs),
        names=" ".join(server.programs),
        most=MOST,
        limit=LIMIT_S,
        errors=f"exec 2>{errors}",
        work=work,
    )
