version() { varnishd -V 2>&1 | sed -n 's#^varnishd (varnish-\([^ )]*\).*#varnish/\1#p'; }
# Much of what it is set to stands in its options alone.
show() {
    [ -z "$(value -f)" ] || file "$(value -f)"
    printf '%s\n' "$words"
}
check() { [ -z "$(value -f)" ] || on "$program" -C -f "$(value -f)"; }
