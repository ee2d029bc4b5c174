# -- the beginning of a session --------------------------------------------------------------------

do_begin() {
    case $token in '' | *[!A-Za-z0-9_-]*)
        echo "not a token: $token" >&2
        exit 1
        ;;
    esac
    umask 077
    { mkdir -p "$dir" && [ -w "$dir" ]; } 2>/dev/null || unwritable "Nothing was changed"
    enlist || exit 73
    take_lock "armed.$token"
    taken=$?
    if [ "$taken" = 1 ]; then
        if another_version; then
            sh "$dir/$line" "$dir" status >/dev/null 2>&1
        else
            take_away
        fi
        # Where there is no folder after a vain try, others may have given the lock back in between.
        take_lock "armed.$token" || { [ ! -d "$lock" ] && take_lock "armed.$token"; }
        taken=$?
    fi
    case $taken in
    0) ;;
    2) unwritable "Nothing was changed" ;;
    *)
        holder
        exit 75
        ;;
    esac
    mark=$lock/armed.$token
    if find_rival; then
        drop_lock
        tell_rival
        exit 75
    fi
    if ! finish_restores; then
        drop_lock
        echo "being restored from an earlier session"
        exit 75
    fi
    missing=$(retry_unrestored)
    if [ -n "$missing" ]; then
        drop_lock
        printf '%s\n' "$missing"
        exit 80
    fi
    tidy
    find_applied || :
    asked=$(cat)
    files=
    case $newline$asked in *"$newline"/*)
        files=$(printf '%s\n' "$asked" | grep '^/')
        asked=$(printf '%s\n' "$asked" | grep -v '^/')
        ;;
    esac
    if [ -n "$applied" ] && [ "${6-}" = originals ]; then
        # Putting those back would take from somebody else what they have set since.
        if ! tell_strangers "$applied"; then
            drop_lock
            exit 78
        fi
        all="/dev/null $({ printf '%s\n' "$asked" && tr ' ' '\n' < "$applied/paths" | grep -vx /dev/null; } | sort -u)"
    else
        all="/dev/null $asked"
    fi
    # The kernel adds to this one when the other is written. In most namespaces it can only be read.
    widened=net/ipv4/tcp_allowed_congestion_control
    case $all in
    *"$widened"*) ;;
    *net/ipv4/tcp_congestion_control*) [ ! -w "/proc/sys/$widened" ] || all="$all $widened" ;;
    esac
    lines=$(show)
    paths=/dev/null
    set -f
    IFS=$newline
    for line in $lines; do
        paths="$paths ${line%%:*}"
    done
    look_at_clock
    keep taken "$uptime" && keep boot "$(boot_id)" && keep network "$network" && keep seconds "$4" &&
        keep owner "$5$newline$(date -u +%Y-%m-%dT%H:%M:%SZ)" &&
        keep script "$self" && keep restart "${7-}" || no_lock
    if [ -n "$files" ]; then
        take_files "$files" && { arm_boot || (exit 2); }
        case $? in
        0) ;;
        1) no_lock ;;
        *)
            drop_lock
            echo "$why. Nothing was changed" >&2
            exit 1
            ;;
        esac
    fi
    keep paths "$paths" && keep snapshot "$lines" &&
        [ "$(cat "$lock/paths" "$lock/snapshot")" = "$(printf '%s\n' "$paths" "$lines")" ] &&
        overwrite "$lock/watchdog" 0 && overwrite "$lock/writer.$token" 0 &&
        sign_of_life && keep token "$token" && [ "$(cat "$lock/token")" = "$token" ] || no_lock
    # A power failure empties what was not flushed. After a boot only nginx's files need the others.
    if ! flush "$lock/snapshot" ${files:+"$lock/token"} ${files:+"$lock/owner"} \
        ${files:+"$lock/boot"} "$lock" "$dir"; then
        drop_lock
        echo "the disk of the state folder $dir does not take the snapshot (sync failed). Nothing was changed" >&2
        exit 73
    fi
    if ! arm; then
        drop_lock
        unwatched "nothing was changed"
    fi
    # On a slow host the disk and systemd have taken a good part of the lease by now.
    [ ! -e "$lock/armed.$token" ] || sign_of_life
    if [ -s "$dir/report" ]; then
        heard=$(grep -c '' "$dir/report")
        keep told "$heard"
        sed -n "1,${heard}s/^/report$tab/p" "$dir/report"
    fi
    if [ -n "$applied" ]; then
        sed "s/^/applied$tab/" "$applied/about"
        [ "${6-}" != originals ] || sed "s/^/original$tab/" "$applied/snapshot"
    fi
    [ -z "$files" ] || show_files
    printf '%s\n' "$lines"
}
