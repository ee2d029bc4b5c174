# -- what a session sets ---------------------------------------------------------------------------

# Ends a write whose controller has not waited for its end.
end_writer() {
    stop_writer "$lock" && return
    echo "an earlier write does not end (process ${writer%-*}). $1" >&2
    exit 1
}

do_write() {
    by=${4-}
    drain=${5-}
    ours
    # One whose controller has not waited for its end.
    end_writer "Nothing more is set"
    end_kept
    overwrite "$lock/writer.$token" "$me" && sign_of_life || unwritable "Nothing more is set"
    # Whoever takes the lock away from now on ends us first.
    [ -e "$mark" ] || lost
    keep_watched || unwatched "nothing more is set"
    set -f
    IFS=$newline
    # All at once: `read` would take as long for each line as writing it.
    input=$(cat "$lock/paths" -)
    # shellcheck disable=SC2086
    set -- $input
    all=$1
    shift
    look_for_strangers "$lock"
    if [ -n "$strange" ]; then
        tell_foreign "$lock"
        # Where all are back at their values from before, the next write finds nothing wrong.
        if ! printf '%s\n' "$strange" | grep -qvxF -f "$lock/snapshot"; then
            (show) > "$lock/left.new" && mv "$lock/left.new" "$lock/left"
        fi
        exit 78
    fi
    texts=
    was=own
    if [ -e "$lock/nginx" ]; then
        tell_strange_files || exit 78
        line_of "$lock/nginx"
        was=$line
        values=
        for line; do
            case $line in /*) texts=$texts$line$newline ;; *) values=$values$line$newline ;; esac
        done
        # shellcheck disable=SC2086
        set -- $values
    fi
    written=3
    if [ -n "$texts" ]; then
        write_files "$texts" "${by:=reload}"
        written=$?
        case $written in 0 | 3) ;; *) exit "$written" ;; esac
        [ "$was" != restart ] || by=restart
        if [ "$written" = 0 ]; then
            recall_nginx "$lock"
            accepted_by_nginx || refuse_files "$was"
        fi
    fi
    if [ "$#" != 0 ]; then
        note=
        for line; do
            path=${line%% *}
            note=$note$path$newline
            ! partner_of "$path" || note=$note$partner$newline
        done
        { printf '%s' "$note" >> "$lock/inflight"; } 2>/dev/null || unwritable "Nothing more is set"
        for line; do
            path=${line%% *}
            value=${line#"$path"}
            case $path in
            /* | *..* | *[!A-Za-z0-9_/.-]*) false ;;
            *) printf '%s\n' "${value# }" 2>/dev/null > "/proc/sys/$path" ;;
            esac 2>/dev/null || echo "refused: $path" >&2
        done
    fi
    now=$(show)
    if [ "$#" != 0 ]; then
        {
            printf '%s\n' "$now" > "$lock/left.new" && mv "$lock/left.new" "$lock/left" &&
                true > "$lock/inflight"
        } 2>/dev/null || unwritable "What was set can't be noted there"
    fi
    if [ -n "$texts" ]; then
        if [ "$written" = 0 ] || [ "$was" != own ]; then
            take_effect "$by" "${drain:-0}"
        else
            recall_nginx "$lock"
            tell_shown
        fi
    fi
    printf '%s\n' "$now"
}
