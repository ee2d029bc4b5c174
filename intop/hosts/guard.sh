#!/bin/sh
# The guard of a tuned host: everything here runs on the host, and needs nothing but a POSIX
# shell, coreutils, grep, sed and /proc. Keys are paths below /proc/sys.
#
# On a small or emulated host a process takes longer than all else here, so there is none for each
# key, and few in what runs every second or every trial. `read` does not do for /proc/sys: shells
# read byte by byte, and most keys end after their first byte then.
#
#   guard.sh DIR begin TOKEN LEASE OWNER   paths on stdin; takes the lock, stores the snapshot,
#                                          arms the watchdog, prints the snapshot
#   guard.sh DIR write TOKEN               "path value" lines on stdin; writes, prints read-back
#   guard.sh DIR renew TOKEN               a sign of life
#   guard.sh DIR end TOKEN                 restores the snapshot, checks it, gives the lock back
#   guard.sh DIR status                    who holds the host, and what a watchdog left to say
#   guard.sh DIR watch TOKEN               the watchdog itself
#
# Exit codes: 0 done, 1 failed, 75 held by somebody else, 76 the lock is not (or no longer) ours.
set -u
# A value is bytes, whatever the host's language.
export LC_ALL=C
dir=$1
verb=$2
token=${3-}
lock=$dir/lock
tab=$(printf '\t')
newline='
'

# The first line of file $1 in `line`; fails when there is none.
line_of() {
    line=
    { read -r line < "$1"; } 2>/dev/null
}

# The seconds since the kernel's start in `uptime`.
look_at_clock() {
    read -r uptime _ < /proc/uptime
    uptime=${uptime%%.*}
}

sign_of_life() {
    look_at_clock
    printf '%s\n' "$uptime" > "$lock/lease.new" && mv "$lock/lease.new" "$lock/lease"
}

ours() {
    line_of "$lock/token"
    [ "$line" = "$token" ] || lost
}

lost() {
    echo "the lock is no longer ours: the watchdog has restored this host, or another session took it" >&2
    exit 76
}

# Who has the lock; it is being made while nobody is named.
holder() {
    if line_of "$lock/owner"; then
        owner=$line
        line_of "$lock/seconds"
        printf 'held by %s, lease %s s\n' "$owner" "$line"
    else
        echo "being taken by another session"
    fi
}

# Prints "path:value" for the paths that it is given, as the kernel writes them; a value of several
# lines has as many.
show() {
    (cd /proc/sys && grep -s '' "$@" /dev/null)
}

# The same as lines of a snapshot, "path<tab>value".
snapshot() {
    show "$@" | sed "s/:/$tab/"
}

# Prints the lines of the snapshot in folder $1 that are not so now. `paths` has its paths.
differing() {
    # shellcheck disable=SC2086
    snapshot $paths | grep -vxF -f - "$1/snapshot"
    # 1 says that no line differs. When they can't be compared, all of them are to be written.
    case $? in 0 | 1) ;; *) cat "$1/snapshot" ;; esac
}

# Restores what differs from the snapshot in folder $1; prints a line for each key that stays wrong.
# It writes no file but the keys: a full disk must not be in its way.
restore() (
    [ -f "$1/snapshot" ] || exit 0
    set -f
    IFS=$newline
    paths=$(cut -f 1 "$1/snapshot") || exit 1
    # Two passes: a key may be refused until its partner is back.
    for pass in 1 2; do
        wrong=$(differing "$1") || exit 1
        [ -n "$wrong" ] || exit 0
        for line in $wrong; do
            printf '%s\n' "${line#*"$tab"}" 2>/dev/null > "/proc/sys/${line%%"$tab"*}" || :
        done
    done
    wrong=$(differing "$1") || exit 1
    for line in $wrong; do
        printf "could not be restored: printf '%%s' '%s' > /proc/sys/%s\n" "${line#*"$tab"}" "${line%%"$tab"*}"
    done
    [ -z "$wrong" ]
)

# Whether the lock's holder has been silent for too long. A lock that just goes away is not lapsed.
lapsed() {
    line_of "$lock/lease" || line_of "$lock/taken" || return 1
    last=$line
    line_of "$lock/seconds" || line=30
    limit=$line
    look_at_clock
    [ $((uptime - last)) -gt "$limit" ]
}

# Whether folder $1 is there for so long that its maker must have died over it.
left_behind() {
    [ $(($(date +%s) - $(stat -c %Y "$1" 2>/dev/null || date +%s))) -gt 60 ]
}

expired() {
    # Without it, another session is just about to take the lock; unless it died there.
    if ! line_of "$lock/boot"; then
        left_behind "$lock"
        return
    fi
    [ "$line" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 0
    lapsed
}

# Moves the lock away first, so that nobody can write under it any more, then restores. Fails with
# 2 when somebody else has taken it away.
release() {
    mv "$lock" "$dir/restoring.$$" 2>/dev/null || return 2
    put_back "$dir/restoring.$$"
}

# Releases a lock that has expired, or fails with 2. One at a time: a second one, who looked before
# the first had it, would else take away the lock that the first has made anew.
take_away() {
    if ! mkdir "$dir/taking" 2>/dev/null; then
        left_behind "$dir/taking" && rmdir "$dir/taking" 2>/dev/null
        return 2
    fi
    released=2
    if expired; then
        release
        released=$?
    fi
    rmdir "$dir/taking"
    return "$released"
}

# Ends what a killed restorer left undone. Fails while a living one is still at it: what is read
# meanwhile is not the host's own.
settled() {
    for old in "$dir"/restoring.*; do
        [ -d "$old" ] || continue
        case $(tr '\0' ' ' 2>/dev/null < "/proc/${old##*.}/cmdline") in *guard.sh*) return 1 ;; esac
        put_back "$old" >> "$dir/report" || :
    done
}

# Restores from the lock that was moved to folder $1, and removes that.
put_back() {
    old=$1
    if [ "$(cat "$old/boot" 2>/dev/null)" = "$(cat /proc/sys/kernel/random/boot_id)" ]; then
        restore "$old"
        result=$?
    else
        result=0
    fi
    if [ "$result" != 0 ]; then
        cp "$old/snapshot" "$dir/snapshot.unrestored"
    fi
    rm -rf "$old"
    return "$result"
}

case $verb in
begin)
    umask 077
    mkdir -p "$dir" || exit 1
    if ! mkdir "$lock" 2>/dev/null; then
        expired && take_away >> "$dir/report"
        if ! mkdir "$lock" 2>/dev/null; then
            holder
            exit 75
        fi
    fi
    if ! settled; then
        rmdir "$lock"
        echo "being restored from an earlier session"
        exit 75
    fi
    look_at_clock
    printf '%s\n' "$uptime" > "$lock/taken"
    cat /proc/sys/kernel/random/boot_id > "$lock/boot"
    printf '%s\n' "$4" > "$lock/seconds"
    printf '%s since %s\n' "$5" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" > "$lock/owner"
    # shellcheck disable=SC2046
    snapshot $(cat) > "$lock/snapshot.new"
    mv "$lock/snapshot.new" "$lock/snapshot"
    printf '%s\n' "$token" > "$lock/token"
    sync "$lock/snapshot" "$lock" 2>/dev/null || sync
    sign_of_life
    nohup sh "$0" "$dir" watch "$token" </dev/null >/dev/null 2>&1 &
    printf '%s\n' "$!" > "$lock/watchdog"
    cat "$lock/snapshot"
    ;;
write)
    ours
    sign_of_life
    # All at once: `read` would take as long for each line as writing it.
    input=$(cat)
    paths=
    set -f
    IFS=$newline
    for line in $input; do
        path=${line%% *}
        value=${line#"$path"}
        printf '%s\n' "${value# }" 2>/dev/null > "/proc/sys/$path" || echo "refused: $path" >&2
        paths=$paths$newline$path
    done
    # shellcheck disable=SC2086
    show $paths
    exit 0
    ;;
renew)
    ours
    sign_of_life
    ;;
end)
    ours
    release
    result=$?
    [ "$result" != 2 ] || lost
    exit "$result"
    ;;
status)
    [ ! -d "$lock" ] || holder
    cat "$dir/report" 2>/dev/null || :
    ;;
watch)
    while sleep 1; do
        line_of "$lock/token"
        [ "$line" = "$token" ] || exit 0
        # Of the other reasons to take a lock away, none comes while we live.
        if lapsed; then
            owner=$(cat "$lock/owner")
            said=$(take_away)
            case $? in
            0) result="restored" ;;
            2) continue ;; # another session is at it, and will have the lock
            *) result="NOT fully restored" ;;
            esac
            printf '%s: no sign of life from %s; this host was %s by its watchdog. %s\n' \
                "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$owner" "$result" "$said" >> "$dir/report"
            exit 0
        fi
    done
    ;;
*)
    echo "unknown verb: $verb" >&2
    exit 1
    ;;
esac
