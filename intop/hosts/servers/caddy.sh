version() { caddy version 2>/dev/null | sed -n '1s#^v\{0,1\}\([^ ]*\).*#caddy/\1#p'; }
called() {
    by=$(value --adapter)
    on "$program" "$1" --config "$(value --config)" ${by:+--adapter "$by"}
}
show() { head_of "$(value --config)" && called adapt; }
check() { called validate; }
