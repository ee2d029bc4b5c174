# Calls $1 for root's nginx in the network namespace, and for $2 others at most. `process`, `title` and
# `program` are there for what is called, and `runs_as` and `doubt` say whether it is root's.
masters() {
    more=${2:-0}
    for process in /proc/[0-9]*; do
        read -r name < "$process/comm" && [ "$name" = nginx ] || continue
        if ! is_roots "$process"; then
            # Neither another host's nor a worker.
            [ "$process/ns/net" -ef /proc/self/ns/net ] || continue
            read -r _ _ _ parent _ < "$process/stat" || continue
            ! { read -r name < "/proc/$parent/comm" && [ "$name" = nginx ]; } || continue
            [ "$more" != 0 ] || continue
            more=$((more - 1))
        fi
        look_at_server "$process" nginx || continue
        # That of a user's process may have no end, and take as long as he likes.
        title=$(timeout -k 1 1 head -c 100000 "$process/cmdline" | tr '\0' ' ')
        is_still "$process" || continue
        case $title in 'nginx: master process '*) "$1" ;; esac
    done 2>/dev/null
}
