# A line `tool PATH` for each candidate, then its version and help after `| `.
for name in wrk2 wrk luajit; do
    path=$(command -v "$name") || continue
    printf 'tool %s\n' "$path"
    "$path" -v </dev/null 2>&1 | sed 's/^/| /'
done
:
