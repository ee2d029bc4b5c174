version() { lighttpd -v 2>/dev/null | sed -n 's#^\(lighttpd/[^ ]*\).*#\1#p'; }
# It shows its process id, too.
show() { head_of "$(value -f)" && on "$program" -p -f "$(value -f)" | sed '/^ *var\./d'; }
check() { on "$program" -tt -f "$(value -f)"; }
