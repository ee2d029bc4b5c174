#!/bin/sh
# The guard of a tuned host: everything here runs on the host, and needs nothing but a POSIX
# shell, coreutils, grep, sed and /proc. Keys are paths below /proc/sys.
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
dir=$1
verb=$2
token=${3-}
lock=$dir/lock
tab=$(printf '\t')

uptime_s() { cut -d. -f1 /proc/uptime; }

sign_of_life() {
    uptime_s > "$lock/lease.new" && mv "$lock/lease.new" "$lock/lease"
}

ours() {
    if [ "$(cat "$lock/token" 2>/dev/null)" != "$token" ]; then
        echo "the lock is no longer ours: the watchdog has restored this host, or another session took it" >&2
        exit 76
    fi
}

# Prints "path<tab>value" for the paths on stdin. One process for all of them: on a small or
# emulated host a process for each would take longer than the measurement.
show() {
    paths=$(cat)
    # shellcheck disable=SC2086
    (cd /proc/sys && grep -s '' $paths /dev/null) | sed "s/:/$tab/"
}

same() {
    [ "$1" = "$2" ] || [ "$(printf '%s' "$1" | tr -s ' \t\n' ' ')" = "$(printf '%s' "$2" | tr -s ' \t\n' ' ')" ]
}

# Restores what differs from the snapshot in folder $1; prints a line for each key that stays wrong.
restore() {
    failed=0
    [ -f "$1/snapshot" ] || return 0
    # Two passes: a key may be refused until its partner is back.
    for pass in 1 2; do
        failed=0
        while IFS="$tab" read -r path value; do
            same "$(cat "/proc/sys/$path" 2>/dev/null)" "$value" && continue
            printf '%s\n' "$value" 2>/dev/null > "/proc/sys/$path" || :
            same "$(cat "/proc/sys/$path" 2>/dev/null)" "$value" && continue
            failed=1
            [ "$pass" = 2 ] && printf "could not be restored: printf '%%s' '%s' > /proc/sys/%s\n" "$value" "$path"
        done < "$1/snapshot"
        [ "$failed" = 0 ] && break
    done
    return "$failed"
}

expired() {
    # Without it, another session is just about to take the lock; unless it died there.
    boot=$(cat "$lock/boot" 2>/dev/null)
    if [ -z "$boot" ]; then
        [ $(($(date +%s) - $(stat -c %Y "$lock" 2>/dev/null || date +%s))) -gt 60 ]
        return
    fi
    [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 0
    lease=$(cat "$lock/seconds" 2>/dev/null || echo 30)
    last=$(cat "$lock/lease" 2>/dev/null || cat "$lock/taken" 2>/dev/null || echo 0)
    [ $(($(uptime_s) - last)) -gt "$lease" ]
}

# Moves the lock away first, so that nobody can write under it any more, then restores.
release() {
    mv "$lock" "$dir/restoring.$$" 2>/dev/null || return 1
    put_back "$dir/restoring.$$"
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
        if ! expired; then
            printf 'held by %s, lease %s s\n' "$(cat "$lock/owner" 2>/dev/null)" "$(cat "$lock/seconds" 2>/dev/null)"
            exit 75
        fi
        release >> "$dir/report" || :
        mkdir "$lock" || exit 75
    fi
    if ! settled; then
        rmdir "$lock"
        echo "being restored from an earlier session"
        exit 75
    fi
    uptime_s > "$lock/taken"
    cat /proc/sys/kernel/random/boot_id > "$lock/boot"
    printf '%s\n' "$4" > "$lock/seconds"
    printf '%s since %s\n' "$5" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" > "$lock/owner"
    show > "$lock/snapshot.new"
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
    input=$(cat)
    printf '%s\n' "$input" | while read -r path value; do
        [ -n "$path" ] || continue
        printf '%s\n' "$value" 2>/dev/null > "/proc/sys/$path" || echo "refused: $path" >&2
    done
    printf '%s\n' "$input" | while read -r path value; do printf '%s\n' "$path"; done | show
    exit 0
    ;;
renew)
    ours
    sign_of_life
    ;;
end)
    ours
    release
    ;;
status)
    if [ -d "$lock" ]; then
        printf 'held by %s, lease %s s\n' "$(cat "$lock/owner" 2>/dev/null)" "$(cat "$lock/seconds" 2>/dev/null)"
    fi
    cat "$dir/report" 2>/dev/null || :
    ;;
watch)
    while sleep 1; do
        [ "$(cat "$lock/token" 2>/dev/null)" = "$token" ] || exit 0
        if expired; then
            owner=$(cat "$lock/owner")
            said=$(release) && result="restored" || result="NOT fully restored"
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
