# -- without a session: undoing, and accepting -----------------------------------------------------

# Undoes what is applied; the record goes last, so that a death leaves the rest to the next one.
# What somebody else has changed since, be it a key or our file, is left alone unless by force.
undo_applied() {
    drop_replaced
    result=0
    had_file=
    if is_elsewhere "$applied"; then
        tell_elsewhere >&2
        return 1
    fi
    if look_at_file "$applied"; then
        had_file=yes
        if [ "$file_is" = ours ] || { [ "$file_is" = edited ] && [ "$force" = force ]; }; then
            file_is=removed
            # What is not gone from the disk is there again after a power failure.
            rm -f "$file" 2>/dev/null && flush "${file%/*}" || file_is=stuck
        fi
        printf 'file\t%s\t%s\n' "$file" "$file_is"
        case $file_is in edited | stuck) result=1 ;; esac
    fi
    # Values don't survive a reboot, but in a file that sets them again. nginx's files do.
    find_age "$applied"
    [ -z "$had_file" ] || anew=
    if [ "$anew" != yes ] || [ -e "$applied/nginx" ]; then
        if ! restore "$applied"; then
            if [ -e "$applied/less/token" ]; then
                # What the kernel has taken of a value is ours, and nobody else's.
                grep -vxF -f "$applied/left" "$applied/less/left" 2>/dev/null >> "$applied/left"
                # A key that is gone can't be waited for: it comes back with its module's own value.
                while IFS='' read -r line; do
                    [ ! -e "/proc/sys/${line%%:*}" ] || result=1
                done < "$applied/less/snapshot"
                [ ! -e "$applied/less/nginx" ] || result=1
            else
                # No room was left to note what is left to do.
                result=1
            fi
            [ "$result" = 1 ] || gone=yes
        fi
    fi
    anew=
    if [ "$result" = 0 ]; then
        if ! mv -T "$applied" "$dir/undone.$me" 2>/dev/null; then
            echo "what was applied is undone, but its record $applied can't be removed: the folder can't be written" >&2
            return 1
        fi
        flush "$dir" || report "$dir can't be brought to the disk (sync failed): a power failure may bring back the record of what was applied"
        rm -rf "$dir/undone.$me" 2>/dev/null
        [ "${gone-}" != yes ] || result=1
    elif [ -n "$had_file" ]; then
        # What is left to do is of this boot, and has no file any more.
        overwrite "$applied/boot" "$(boot_id)"
        look_at_network
        overwrite "$applied/network" "$network"
        case $file_is in removed | missing) rm -f "$applied/file" 2>/dev/null ;; esac
    fi
    return "$result"
}

# Leaves to the record of what is applied the keys of folder $1 that its session found applied: the
# record knows their values from before, and the folder only ours.
leave_to_applied() (
    set -f
    IFS=$newline
    firsts=$newline$(paths_of "$(cat "$applied/snapshot")")$newline
    covered=
    for line in $(grep -xF -f "$applied/left" "$1/snapshot"); do
        case $firsts in *"$newline${line%%:*}$newline"*) covered=$covered${line%%:*}$newline ;; esac
    done
    [ -n "$covered" ] || exit 0
    # What the session has written of them is ours there, too.
    for line in $(cat "$1/left"); do
        case $newline$covered in
        *"$newline${line%%:*}$newline"*) printf '%s\n' "$line" >> "$applied/left" || exit 1 ;;
        esac
    done
    rest=$(without "$(cat "$1/snapshot")" "$covered")
    if [ -z "$rest" ] && [ ! -e "$1/nginx" ]; then
        disarm_boot "$1"
        discard "$1"
        exit 0
    fi
    all=/dev/null
    for path in $(paths_of "$rest"); do all="$all $path"; done
    # The paths come first: a death in between leaves a key that is tried again, and found covered.
    printf '%s\n' "$all" > "$1/paths.new" && printf '%s\n' "$rest" > "$1/snapshot.new" &&
        mv "$1/paths.new" "$1/paths" && mv "$1/snapshot.new" "$1/snapshot"
) 2>/dev/null

do_rollback() {
    force=$token
    code=77
    tidy
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -d "$lock" ] || break
        if is_elsewhere "$lock"; then
            tell_elsewhere >&2
            exit 75
        fi
        if ! expired; then
            if [ "$force" != force ]; then
                holder >&2
                exit 75
            fi
            # Another restorer needs no help, but some time.
            case $mark in */claimed.*)
                sleep 1
                continue
                ;;
            esac
        fi
        release
        code=$?
        case $code in
        2)
            code=77
            sleep 1
            ;;
        3)
            code=0
            echo "the lock in $dir can't be removed: the folder is read-only" >&2
            break
            ;;
        4)
            code=77
            break
            ;;
        *) break ;;
        esac
    done
    for old in "$dir"/restoring.*; do
        [ -d "$old" ] || continue
        # Another restorer needs no help, but some time.
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            if adopt "$old"; then
                put_back "$aside"
                result=$?
                [ "$code" = 1 ] || code=$result
                old=$aside
                break
            fi
            [ -d "$old" ] || break
            sleep 1
        done
        if [ -d "$old" ]; then
            echo "this host is still being restored, from $old: roll it back again" >&2
            exit 1
        fi
    done
    if find_applied && is_of_now "$applied"; then
        for old in "$dir"/unrestored.*; do
            [ ! -d "$old" ] || leave_to_applied "$old"
        done
    fi
    set --
    # The first one comes last: its values are the oldest. Ours have just been tried.
    for old in "$dir"/unrestored.*; do
        case $old in *."$me" | *."$me".*) ;; *) set -- "$old" "$@" ;; esac
    done
    for old; do
        [ -d "$old" ] || continue
        put_back "$old"
        result=$?
        [ "$code" = 1 ] || code=$result
    done
    if find_applied; then
        # So that no session begins with what is half undone. Where a lock can't be made, none can.
        taken=
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            if take_lock "claimed.rollback.$me"; then
                taken=yes
                break
            fi
            [ -d "$lock" ] && [ -w "$dir" ] || break
            sleep 1
        done
        if [ -z "$taken" ] && [ -d "$lock" ] && [ -w "$dir" ]; then
            holder >&2
            exit 75
        fi
        # Also without a lock of ours: what another folder's session found is not to be changed.
        if [ "$force" != force ] && { enlist 2>/dev/null || :; } && find_rival; then
            [ -z "$taken" ] || discard "$lock"
            tell_rival >&2
            exit 75
        fi
        undo_applied
        result=$?
        [ "$code" = 1 ] || code=$result
        [ -z "$taken" ] || discard "$lock"
    fi
    exit "$code"
}

do_accept() {
    [ ! -d "$lock" ] || take_away
    if [ -d "$lock" ]; then
        holder >&2
        exit 75
    fi
    if ! finish_restores; then
        echo "being restored from an earlier session" >&2
        exit 75
    fi
    code=77
    for old in "$dir"/unrestored.*; do
        [ -d "$old" ] || continue
        tell_state "$old"
        drop_beside "$old"
        disarm_boot "$old"
        discard "$old" || unwritable "Nothing was forgotten"
        code=0
    done
    exit "$code"
}
