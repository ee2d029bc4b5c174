# -- the lock --------------------------------------------------------------------------------------

sign_of_life() {
    look_at_clock
    overwrite "$lock/lease" "$uptime"
}

# The seconds since the last sign of life in `silent`, the lease in `limit`.
listen() {
    number_of "$lock/lease" || number_of "$lock/taken" || return 1
    heard=$line
    number_of "$lock/seconds" || line=30
    limit=$line
    look_at_clock
    silent=$((uptime - heard))
}

# Whether the lock's holder has been silent for too long. A lock that just goes away is not lapsed.
# One from the future was left before the clock began again, as it does with a container: nobody renews it.
lapsed() {
    listen && { [ "$silent" -gt "$limit" ] || [ "$silent" -lt 0 ]; } || return 1
    # It is overwritten in place, and read byte by byte: what was read may be half of each.
    listen && { [ "$silent" -gt "$limit" ] || [ "$silent" -lt 0 ]; }
}

# Ends unless the lock is ours and its lease has not lapsed.
ours() {
    mark=$lock/armed.$token
    line_of "$lock/token"
    [ "$line" = "$token" ] && [ -e "$mark" ] || lost
    if lapsed; then
        take_away
        case $? in
        1) echo "the lease has lapsed: this host heard nothing from us for $silent s, and is NOT fully restored: intop status" >&2 ;;
        2) lost ;;
        *) echo "the lease has lapsed: this host heard nothing from us for $silent s, and has been restored" >&2 ;;
        esac
        exit 76
    fi
    acknowledge
}

# Ends for a lock that is not ours, when all is restored. It may still lie there, claimed by somebody
# who restores, or has died over it.
lost() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        left=
        if line_of "$lock/token" && [ "$line" = "$token" ]; then
            take_away
            case $? in 1 | 2) left=yes ;; esac
        fi
        if finish_restores && [ -z "$left" ]; then
            echo "the lock is no longer ours: the watchdog has restored this host, or another session took it" >&2
            exit 76
        fi
        short_sleep
    done
    echo "the lock is no longer ours, and this host is still being restored: intop status says when it is" >&2
    exit 1
}

# The controller goes on, so it has heard the report that its begin has printed.
acknowledge() {
    number_of "$lock/told" || return 0
    {
        sed -n "1,${line}p" "$dir/report" > "$dir/report.told" && sed "1,${line}d" "$dir/report" > "$dir/report.new" &&
            mv "$dir/report.told" "$dir/report.old" && mv "$dir/report.new" "$dir/report" &&
            { [ -s "$dir/report" ] || rm -f "$dir/report"; } && rm -f "$lock/told"
    } 2>/dev/null || rm -f "$dir/report.told" "$dir/report.new" 2>/dev/null
}

# Who has the lock; it is being made while nobody is named.
holder() {
    if { IFS='' read -r owner && IFS='' read -r since; } 2>/dev/null < "$lock/owner"; then
        line_of "$lock/seconds"
        limit=$line
        where=
        ! is_elsewhere "$lock" || where=", in the network namespace net:[$elsewhere]"
        printf 'held by %s since %s, lease %s s%s\n' "$owner" "$since" "$limit" "$where"
    else
        echo "being taken by another session"
    fi
}

# Takes the lock, with file $1 in it, in one move. Fails with 1 when somebody has it, with 2 when the
# folder can't be written.
take_lock() {
    making=$dir/making.$me
    { rm -rf "$making" && mkdir "$making" && printf '%s\n' "$me" > "$making/$1"; } 2>/dev/null || {
        rm -rf "$making" 2>/dev/null
        return 2
    }
    mv -T "$making" "$lock" 2>/dev/null && return 0
    rm -rf "$making" 2>/dev/null
    return 1
}

# The lock's own script in `line`, where that is another version: it knows best what it has left.
another_version() {
    line_of "$lock/script" && [ "$line" != "$self" ] && [ -f "$dir/$line" ]
}

# Adds our folder to the list of this network namespace, `list`.
enlist() {
    look_at_network
    list=$lists/$network
    # A namespace with our number is gone.
    for old in "$lists/${network%%-*}" "$lists/${network%%-*}"-*; do
        [ "$old" = "$list" ] || rm -f "$old" 2>/dev/null
    done
    grep -qxF -e "$dir" "$list" 2>/dev/null && return 0
    { mkdir -p -m 700 "$lists" && printf '%s\n' "$dir" >> "$list"; } 2>/dev/null && return 0
    echo "$list can't be written, where this host's sessions are listed" >&2
    return 1
}

# Another folder of the list with something to give back in `rival`; fails when there is none.
find_rival() {
    while IFS='' read -r rival; do
        [ -d "$rival" ] && ! [ "$rival" -ef "$dir" ] || continue
        for each in "$rival"/lock "$rival"/restoring.* "$rival"/unrestored.*; do
            [ -d "$each" ] || continue
            # What is of an earlier boot is over, but for files. One that is just being made has no boot yet.
            ! line_of "$each/boot" || is_of_now "$each" || [ -e "$each/nginx" ] || continue
            return 0
        done
    done 2>/dev/null < "$list"
    return 1
}

# Says who `rival` belongs to.
tell_rival() (
    lock=$rival/lock
    if [ -d "$lock" ]; then
        said=$(holder)
    else
        said="not given back"
    fi
    # On one line: it becomes part of a message.
    echo "$said, in another state folder, $rival: end that session, or roll back by: sh $rival/guard.sh $rival rollback"
)

# The file that says whose the lock is in `mark`; it is empty when there is none.
find_mark() {
    for mark in "$lock"/armed.* "$lock"/claimed.*; do
        [ ! -e "$mark" ] || return 0
    done
    mark=
    return 1
}

# Whether the lock belongs to nobody who lives. What `mark` is then, release() takes.
expired() {
    # There is none for the moment in which a lock goes.
    find_mark || return 1
    case $mark in */claimed.*)
        ! at_work "${mark##*.}"
        return
        ;;
    esac
    if [ ! -e "$lock/token" ]; then
        # It is being made, unless its maker died there; nothing is written before it has a token.
        line_of "$mark" && ! at_work "$line"
        return
    fi
    is_of_now "$lock"
    case $? in
    1) return 0 ;;
    2) return 1 ;;
    esac
    lapsed
}

# Restores, and gives back the lock that `mark` belongs to. It is moved away first, so that nobody
# can write under it any more. Fails with 2 when another process has taken it, with 3 when all is
# restored and the lock can't be removed, and with 4 when a keep was through, so that its values stay.
release() {
    if [ -n "$mark" ]; then
        name=${mark##*/}
        case $name in
        armed.*) name=${name#armed.} ;;
        *)
            name=${name#claimed.}
            name=${name%.*}
            ;;
        esac
        mv "$mark" "$lock/claimed.$name.$me" 2>/dev/null || [ -e "$mark" ] || return 2
    fi
    name_aside
    if mv "$lock" "$aside" 2>/dev/null; then
        put_back "$aside"
        return
    fi
    [ -d "$lock" ] || return 2
    # The folder has become read-only: then nobody else can take the lock either.
    stuck=
    stop_writer "$lock" || stuck=$writer
    settle_keep "$lock"
    [ "$?" != 4 ] || return 4
    restore "$lock" && [ -z "$stuck" ] || return 1
    return 3
}

# Restores a host whose lock has expired, and reports that. Fails with 2 when that is not so, or
# somebody else is at it; else as release().
take_away() {
    expired || return 2
    tell_end "$lock"
    ! listen || [ -z "$owner" ] || [ -n "$rebooted" ] || why="no sign of life from $owner since $since for $silent s"
    said=$(release)
    code=$?
    [ "$code" != 2 ] || return 2
    report_end "$code"
    report_rest "$said"
    return "$code"
}

# Gives back a lock that was just taken; by force another one may have taken it away already.
drop_lock() {
    [ -e "$mark" ] || return
    disarm_boot "$lock"
    discard "$lock"
}

no_lock() {
    drop_lock
    unwritable "Nothing was changed"
}

do_renew() {
    ours
    sign_of_life || unwritable "The lease can't be renewed"
    keep_watched || unwatched "the next write is refused"
}

do_end() {
    mark=$lock/armed.$token
    line_of "$lock/token"
    [ "$line" = "$token" ] && [ -e "$mark" ] || lost
    acknowledge
    release
    result=$?
    case $result in
    2) lost ;;
    3) unwritable "Every key is as it was found, but the lock can't be removed" ;;
    4)
        echo "the values of this session were kept already" >&2
        exit 79
        ;;
    esac
    exit "$result"
}
