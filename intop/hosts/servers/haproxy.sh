version() { haproxy -v 2>/dev/null | sed -n 's#^HA-\{0,1\}Proxy version \([^ ]*\).*#haproxy/\1#p'; }
confs() { printf '%s\n' "$words" | sed -n '/^-f$/{n;p;}'; }
show() { confs | while read -r one; do file "$one"; done; }
check() {
    set --
    while read -r one; do set -- "$@" -f "$one"; done <<CONFS
$(confs)
CONFS
    on "$program" -c "$@"
}
