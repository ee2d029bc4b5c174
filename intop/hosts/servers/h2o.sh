version() { h2o -v 2>/dev/null | sed -n 's#^h2o version \([^ ]*\).*#h2o/\1#p'; }
conf() {
    conf=$(value -c)
    conf=${conf:-$(value --conf)}
    echo "${conf:-/etc/h2o/h2o.conf}"
}
show() { file "$(conf)"; }
check() { on "$program" -t -c "$(conf)"; }
