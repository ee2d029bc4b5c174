version() { nginx -v 2>&1 | sed -n 's/^nginx version: *//p'; }
