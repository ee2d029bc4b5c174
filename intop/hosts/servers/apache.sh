version() { { apache2 -v || httpd -v; } 2>/dev/null | sed -n 's#^Server version: *##p'; }
# Debian's configuration needs variables that its service sets.
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
