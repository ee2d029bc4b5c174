#!/bin/sh
# The guard of a tuned host: everything here runs on the host, and needs nothing but a POSIX
# shell, coreutils, grep, sed and /proc. Keys are paths below /proc/sys.
#
# On a small or emulated host a process takes longer than all else here, so there is none for each
# key, and few in what runs every second or every trial. `read` does not do for /proc/sys: shells
# read byte by byte, and most keys end after their first byte then.
#
#   guard.sh DIR begin TOKEN LEASE OWNER   paths on stdin; takes the lock, stores the snapshot,
#                                          arms the watchdog, prints reports and the snapshot
#   guard.sh DIR write TOKEN               "path value" lines on stdin; writes, prints what all
#                                          guarded keys are then
#   guard.sh DIR renew TOKEN               a sign of life
#   guard.sh DIR end TOKEN                 restores the snapshot, checks it, gives the lock back
#   guard.sh DIR status                    who holds the host, what is changed, what was reported
#   guard.sh DIR rollback [force]          restores without a token, and gives the lock back
#   guard.sh DIR watch TOKEN               the watchdog itself
#
# Exit codes: 0 done, 1 failed, 73 the folder can't be written, 75 held by somebody else, 76 the
# lock is not (or no longer) ours, 77 nothing to roll back, 78 somebody else has changed a key.
#
# In DIR: `lock` while a session has the host, `restoring.PID` while process PID restores,
# `unrestored.PID` with what it could not, `report` for the next session, `report.old` thereafter.
# In each of the folders: `snapshot`, the keys before; `left`, the keys as our last write left them;
# `inflight`, the keys that a write has begun with; `armed.TOKEN`, which whoever takes the lock away
# renames first, so that only one can.
set -u
# A value is bytes, whatever the host's language.
export LC_ALL=C
dir=$1
verb=$2
token=${3-}
lock=$dir/lock
force=
silent=0
tab=$(printf '\t')
newline='
'

# -- small things ----------------------------------------------------------------------------------

# The first line of file $1 in `line`; fails when there is none.
line_of() {
    line=
    { IFS=' ' read -r line < "$1"; } 2>/dev/null
}

# The same for a whole number.
number_of() {
    line_of "$1" || return 1
    case $line in '' | *[!0-9]*) return 1 ;; esac
}

# Overwrites the first line of the short file $1 by the word $2 in place: that takes no process, and
# no room on a disk that is full meanwhile. What was longer goes on in further lines.
overwrite() {
    { printf '%s\n' "$2" 1<> "$1"; } 2>/dev/null
}

# Makes file $1 of the lock with the text $2.
keep() {
    { printf '%s\n' "$2" > "$lock/$1"; } 2>/dev/null
}

# The seconds since the kernel's start in `uptime`.
look_at_clock() {
    read -r uptime _ < /proc/uptime
    uptime=${uptime%%.*}
}

boot_id() {
    cat /proc/sys/kernel/random/boot_id 2>/dev/null
}

# Whether process $1 is one of ours, with $2 among its words. Shells leave out the NULs between.
at_work() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
    words=
    { IFS='' read -r words < "/proc/$1/cmdline"; } 2>/dev/null || :
    case $words in *guard.sh*"$2"*) ;; *) return 1 ;; esac
}

short_sleep() {
    sleep 0.1 2>/dev/null || sleep 1
}

# Ends for a folder that can't be written; $1 says what that means for the keys.
unwritable() {
    case $({ echo . > "$dir/try"; } 2>&1) in
    *ead-only*) why="it is read-only" ;;
    *) why="there is no room left" ;;
    esac
    rm -f "$dir/try" 2>/dev/null
    echo "the state folder $dir can't be written: $why. $1" >&2
    exit 73
}

lost() {
    echo "the lock is no longer ours: the watchdog has restored this host, or another session took it" >&2
    exit 76
}

# -- keys and their values -------------------------------------------------------------------------

# The kernel sets one of such two to zero when the other is written; a zero that is written itself
# is refused, or zeroes the other one.
partner_of() {
    case $1 in
    vm/dirty_bytes) partner=vm/dirty_ratio ;;
    vm/dirty_ratio) partner=vm/dirty_bytes ;;
    vm/dirty_background_bytes) partner=vm/dirty_background_ratio ;;
    vm/dirty_background_ratio) partner=vm/dirty_background_bytes ;;
    vm/overcommit_kbytes) partner=vm/overcommit_ratio ;;
    vm/overcommit_ratio) partner=vm/overcommit_kbytes ;;
    *) return 1 ;;
    esac
}

# Prints "path:value" for the paths in `all`, which begin with /dev/null, as the kernel writes
# them; a value of several lines has as many. It ends the shell, so it is for $() and pipes.
show() {
    set -f
    IFS=" $newline"
    # shellcheck disable=SC2086
    cd /proc/sys && exec grep -s '' $all
}

# Prints the lines of the snapshot in folder $1 that are not so now. `all` has its paths.
differing() {
    show | grep -vxF -f - "$1/snapshot"
    # 1 says that no line differs. When they can't be compared, all of them are to be written.
    case $? in 0 | 1) ;; *) cat "$1/snapshot" ;; esac
}

# From here to the next heading all is called with `set -f` and IFS=$newline.

# Prints the lines $1 but those whose paths are among the lines $2.
without() {
    for line in $1; do
        case $newline$2$newline in
        *"$newline${line%%:*}$newline"*) ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
}

# Prints the paths of the lines $1.
paths_of() {
    for line in $1; do
        printf '%s\n' "${line%%:*}"
    done
}

# The value of path $2 among the lines $1 in `value`; fails when it is not there.
value_in() {
    for entry in $1; do
        case $entry in "$2":*)
            value=${entry#*:}
            return 0
            ;;
        esac
    done
    value=
    return 1
}

# The value $1 with single blanks in `plain`.
make_plain() {
    IFS="$tab "
    # shellcheck disable=SC2086
    set -- $1
    IFS=' '
    plain="$*"
    IFS=$newline
}

# In `command` what gives path $1 the value $2, typed by root. `befores` has the snapshot.
make_command() {
    at=$1
    make_plain "$2"
    if [ "$plain" = 0 ] && partner_of "$1" && value_in "$befores" "$partner" && [ "$value" != 0 ]; then
        at=$partner
        make_plain "$value"
    fi
    gone=
    [ -e "/proc/sys/$at" ] || gone=" # once it is there again: the kernel has no such key now"
    IFS=/
    # shellcheck disable=SC2086
    set -- $at
    IFS=.
    word="$*=$plain"
    IFS=$newline
    case $word in *[!A-Za-z0-9_@%+=:,./-]*)
        rest=$word
        word="'"
        while :; do
            case $rest in *\'*) ;; *) break ;; esac
            word="$word${rest%%\'*}'\"'\"'"
            rest=${rest#*\'}
        done
        word="$word$rest'"
        ;;
    esac
    command="sysctl -w $word$gone"
}

# In `strange` what those keys are now, a line each, that are neither as our last write left them
# nor those of a write that was cut off: somebody else has changed them. $2 names a second file of
# values that nobody minds, or none.
look_for_strangers() {
    left=$1/left
    [ -f "$left" ] || left=$1/snapshot
    strange=$(show | grep -vxF -f "$left" -f "${2:-$left}")
    if [ -n "$strange" ] && flying=$(cat "$1/inflight" 2>/dev/null) && [ -n "$flying" ]; then
        strange=$(without "$strange" "$flying")
    fi
}

# Prints `strange` of folder $1, with both values and the command that puts back the one before.
tell_foreign() {
    lefts=$(cat "$left")
    befores=$(cat "$1/snapshot")
    for line in $strange; do
        path=${line%%:*}
        make_plain "${line#*:}"
        now=$plain
        value_in "$lefts" "$path"
        make_plain "$value"
        was=$plain
        value_in "$befores" "$path"
        make_command "$path" "$value"
        printf 'foreign\t%s\t%s\t%s\t%s\n' "$path" "$was" "$now" "$command"
    done
}

# Prints the lines $1 of a snapshot in the form of our answers, $2 before each.
tell_values() {
    for line in $1; do
        make_plain "${line#*:}"
        printf '%s\t%s\t%s\n' "$2" "${line%%:*}" "$plain"
    done
}

# -- restoring -------------------------------------------------------------------------------------

# Restores what differs from the snapshot in folder $1; prints a line for each key that stays wrong.
# What somebody else has changed is left alone, unless by force. No file is written before the keys
# are: a full disk must not be in its way.
restore() (
    [ -f "$1/snapshot" ] || exit 0
    set -f
    IFS=$newline
    all=$(cat "$1/paths") || exit 1
    strange=
    alone=
    if [ "$force" != force ]; then
        look_for_strangers "$1" "$1/snapshot"
        for line in $strange; do
            alone=$alone$newline${line%%:*}
            # Writing its partner would change it, too.
            ! partner_of "${line%%:*}" || alone=$alone$newline$partner
        done
    fi
    first=
    last=
    pass=0
    # A key may be refused until another one is back, so there are two passes, and more as long
    # as that helps.
    while :; do
        wrong=$(differing "$1") || exit 1
        [ -z "$alone" ] || wrong=$(without "$wrong" "$alone")
        [ "$pass" != 0 ] || first=$wrong
        [ -n "$wrong" ] || break
        [ "$pass" -lt 2 ] || [ "$wrong" != "$last" ] || break
        [ "$pass" -lt 9 ] || break
        last=$wrong
        pass=$((pass + 1))
        for line in $wrong; do
            path=${line%%:*}
            value=${line#*:}
            # Most often its partner's value makes it zero.
            [ "$value" != 0 ] || [ "$pass" != 1 ] || ! partner_of "$path" || continue
            printf '%s\n' "$value" 2>/dev/null > "/proc/sys/$path" || :
        done
    done 2>/dev/null
    if [ "$verb" = rollback ]; then
        back=$first
        [ -z "$wrong" ] || back=$(without "$first" "$(paths_of "$wrong")")
        tell_values "$back" restored
    fi
    [ -n "$wrong$strange" ] || exit 0
    [ -z "$strange" ] || tell_foreign "$1"
    befores=$(cat "$1/snapshot")
    for line in $wrong; do
        make_command "${line%%:*}" "${line#*:}"
        make_plain "${line#*:}"
        printf 'unrestored\t%s\t%s\t%s\n' "${line%%:*}" "$plain" "$command"
    done
    # What is not back is all that is left to do.
    todo=
    all=/dev/null
    bad=$newline$(paths_of "$wrong")$newline$alone$newline
    for line in $befores; do
        case $bad in *"$newline${line%%:*}$newline"*)
            todo=$todo$line$newline
            all="$all ${line%%:*}"
            ;;
        esac
    done
    {
        printf '%s' "$todo" > "$1/snapshot.new" && printf '%s\n' "$all" > "$1/paths.new" &&
            mv "$1/snapshot.new" "$1/snapshot" && mv "$1/paths.new" "$1/paths"
    } 2>/dev/null
    exit 1
)

# Ends a write that is still under way in folder $1: it must not go on after the restore.
stop_writer() {
    for file in "$1"/writer.*; do
        line_of "$file" || continue
        pid=$line
        [ "$pid" != $$ ] || continue
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            at_work "$pid" "${file##*/writer.}" || break
            kill -9 "$pid" 2>/dev/null
            short_sleep
        done
    done
}

# Restores from the lock that was moved to folder $1. What can't be restored is kept there under
# another name, for a later rollback.
put_back() {
    stop_writer "$1"
    result=0
    if line_of "$1/boot" && [ "$line" = "$(boot_id)" ]; then
        restore "$1"
        result=$?
    fi
    if [ "$result" != 0 ] && [ -f "$1/paths" ] && [ ! -e "$1/paths.new" ]; then
        kept=$dir/unrestored.$$
        while [ -e "$kept" ]; do kept=$kept.1; done
        mv "$1" "$kept" 2>/dev/null && return "$result"
    fi
    rm -rf "$1" 2>/dev/null
    return "$result"
}

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
lapsed() {
    listen && [ "$silent" -gt "$limit" ] || return 1
    # It is overwritten in place, and read byte by byte: what was read may be half of each.
    listen && [ "$silent" -gt "$limit" ]
}

# Ends unless the lock is ours and its lease has not lapsed.
ours() {
    mark=$lock/armed.$token
    line_of "$lock/token"
    [ "$line" = "$token" ] && [ -e "$mark" ] || lost
    if lapsed; then
        take_away
        echo "the lease has lapsed: this host heard nothing from us for $silent s, and has been restored" >&2
        exit 76
    fi
}

# Who has the lock; it is being made while nobody is named.
holder() {
    if { IFS='' read -r owner && IFS='' read -r since; } 2>/dev/null < "$lock/owner"; then
        line_of "$lock/seconds"
        printf 'held by %s since %s, lease %s s\n' "$owner" "$since" "$line"
    else
        echo "being taken by another session"
    fi
}

# Whether the lock's folder is there for so long that its maker must have died over it.
left_behind() {
    [ $(($(date +%s) - $(stat -c %Y "$lock" 2>/dev/null || date +%s))) -gt 60 ]
}

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
    find_mark || {
        left_behind
        return
    }
    case $mark in */claimed.*)
        ! at_work "${mark##*.}" ""
        return
        ;;
    esac
    if [ ! -e "$lock/token" ]; then
        # It is being made, unless its maker died there; nothing is written before it has a token.
        line_of "$mark" || {
            left_behind
            return
        }
        ! at_work "$line" ""
        return
    fi
    line_of "$lock/boot"
    [ "$line" = "$(boot_id)" ] || return 0
    lapsed
}

# Restores, and gives back the lock that `mark` belongs to. It is moved away first, so that nobody
# can write under it any more. Fails with 2 when another process has taken it, and with 3 when all
# is restored and the lock can't be removed.
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
        mv "$mark" "$lock/claimed.$name.$$" 2>/dev/null || [ -e "$mark" ] || return 2
    fi
    aside=$dir/restoring.$$
    [ ! -d "$aside" ] || put_back "$aside"
    if mv "$lock" "$aside" 2>/dev/null; then
        put_back "$aside"
        return
    fi
    [ -d "$lock" ] || return 2
    # The folder has become read-only: then nobody else can take the lock either.
    stop_writer "$lock"
    restore "$lock" || return 1
    return 3
}

# Restores a host whose lock has expired, and reports that. Fails with 2 when that is not so, or
# somebody else is at it; else as release().
take_away() {
    expired || return 2
    owner=
    since=
    if [ -e "$lock/token" ] && line_of "$lock/boot" && [ "$line" = "$(boot_id)" ]; then
        { IFS='' read -r owner && IFS='' read -r since; } 2>/dev/null < "$lock/owner"
        listen || :
    fi
    said=$(release)
    code=$?
    [ "$code" != 2 ] || return 2
    if [ -n "$owner" ]; then
        who="the next command"
        [ "$verb" != watch ] || who="its watchdog"
        result="restored"
        [ "$code" != 1 ] || result="NOT fully restored"
        report "no sign of life from $owner since $since for $silent s; this host was $result by $who"
        report_rest "$said"
    fi
    return "$code"
}

# Leaves a line for the next session.
report() {
    { printf '%s: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" >> "$dir/report"; } 2>/dev/null || :
}

# Reports what restore() said of keys that are not back.
report_rest() {
    [ -n "$1" ] || return 0
    rest_ifs=$IFS
    IFS=$newline
    set -f
    for said_line in $1; do
        said_key=${said_line#*"$tab"}
        said_key=$(printf '%s' "${said_key%%"$tab"*}" | sed 's,/,.,g')
        case $said_line in
        foreign"$tab"*) report "somebody else has changed $said_key, so it was left alone; to put it back, as root: ${said_line##*"$tab"}" ;;
        unrestored"$tab"*) report "could not be restored: $said_key; as root: ${said_line##*"$tab"}" ;;
        esac
    done
    set +f
    IFS=$rest_ifs
}

# Ends what a killed restorer left undone, and tries a last time what could not be restored: what is
# not back then is what the next session begins with. Fails while a living restorer is at it: what
# is read meanwhile is not the host's own.
settled() {
    for old in "$dir"/restoring.* "$dir"/unrestored.*; do
        [ -d "$old" ] || continue
        case $old in */restoring.*) ! at_work "${old##*.}" "" || return 1 ;; esac
        report_rest "$(put_back "$old")"
    done
    for old in "$dir"/unrestored.*; do
        [ ! -d "$old" ] || rm -rf "$old"
    done
}

# -- the watchdog ----------------------------------------------------------------------------------

watched() {
    line_of "$lock/watchdog" && at_work "$line" "$token"
}

# A unit of systemd is started anew when it is killed, and outlives any login. But what systemd
# starts is in its own namespaces: a host that is only a network namespace has other keys.
arm() {
    if [ -d /run/systemd/system ] && [ /proc/1/ns/net -ef /proc/self/ns/net ] &&
        [ /proc/1/ns/mnt -ef /proc/self/ns/mnt ] &&
        systemd-run --quiet --collect --unit="intop-guard-$token" --property=Restart=on-failure \
            sh "$0" "$dir" watch "$token" </dev/null >/dev/null 2>&1; then
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            ! watched || return 0
            short_sleep
        done
    fi
    apart=
    ! command -v setsid >/dev/null 2>&1 || apart=setsid
    nohup $apart sh "$0" "$dir" watch "$token" </dev/null >/dev/null 2>&1 &
    overwrite "$lock/watchdog" "$!"
}

# Arms the watchdog anew when it is gone. Said once: there may be something that ends each of them.
keep_watched() {
    watched && return
    arm
    [ ! -e "$lock/rearmed" ] || return 0
    keep rearmed yes
    report "the watchdog of this host was gone, and was armed anew; look for what has ended it"
}

# -- the verbs -------------------------------------------------------------------------------------

# Gives back a lock that was just taken; by force another one may have taken it away already.
drop_lock() {
    if [ -e "$mark" ]; then
        rm -rf "$lock"
    else
        rmdir "$lock" 2>/dev/null
    fi
}

no_lock() {
    drop_lock
    unwritable "Nothing was changed"
}

# Prints what differs in folder $1, and what somebody else has changed.
tell_state() (
    [ -f "$1/snapshot" ] || exit 0
    line_of "$1/boot"
    [ "$line" = "$(boot_id)" ] || exit 0
    set -f
    IFS=$newline
    all=$(cat "$1/paths") || exit 0
    now=$(show)
    wrong=$(differing "$1")
    for line in $wrong; do
        path=${line%%:*}
        make_plain "${line#*:}"
        before=$plain
        value_in "$now" "$path"
        make_plain "$value"
        printf 'key\t%s\t%s\t%s\n' "$path" "$before" "$plain"
    done
    look_for_strangers "$1" "$1/snapshot"
    [ -z "$strange" ] || tell_foreign "$1"
)

case $verb in
begin)
    case $token in '' | *[!A-Za-z0-9_-]*)
        echo "not a token: $token" >&2
        exit 1
        ;;
    esac
    umask 077
    { mkdir -p "$dir" && [ -w "$dir" ]; } 2>/dev/null || unwritable "Nothing was changed"
    if ! mkdir "$lock" 2>/dev/null; then
        [ ! -d "$lock" ] || take_away
        # Where there is no folder after a vain try, others may have given the lock back in between.
        if ! mkdir "$lock" 2>/dev/null && { [ -d "$lock" ] || ! mkdir "$lock" 2>/dev/null; }; then
            [ -d "$lock" ] || unwritable "Nothing was changed"
            holder
            exit 75
        fi
    fi
    mark=$lock/armed.$token
    { printf '%s\n' "$$" > "$mark"; } 2>/dev/null || no_lock
    if ! settled; then
        drop_lock
        echo "being restored from an earlier session"
        exit 75
    fi
    all="/dev/null $(cat)"
    lines=$(show)
    paths=/dev/null
    set -f
    IFS=$newline
    for line in $lines; do
        paths="$paths ${line%%:*}"
    done
    look_at_clock
    keep taken "$uptime" && keep boot "$(boot_id)" && keep seconds "$4" &&
        keep owner "$5$newline$(date -u +%Y-%m-%dT%H:%M:%SZ)" &&
        keep paths "$paths" && keep snapshot "$lines" &&
        [ "$(cat "$lock/paths" "$lock/snapshot")" = "$(printf '%s\n' "$paths" "$lines")" ] &&
        overwrite "$lock/watchdog" 0 && overwrite "$lock/writer.$token" 0 &&
        sign_of_life && keep token "$token" && [ "$(cat "$lock/token")" = "$token" ] || no_lock
    sync "$lock/snapshot" "$lock" 2>/dev/null || sync
    arm
    if [ -s "$dir/report" ]; then
        sed "s/^/report$tab/" "$dir/report"
        mv "$dir/report" "$dir/report.old" 2>/dev/null
    fi
    printf '%s\n' "$lines"
    ;;
write)
    ours
    # One whose controller has not waited for its end.
    stop_writer "$lock"
    overwrite "$lock/writer.$token" "$$" && sign_of_life || unwritable "Nothing more is set"
    # Whoever takes the lock away from now on ends us first.
    [ -e "$mark" ] || lost
    keep_watched
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
                : > "$lock/inflight"
        } 2>/dev/null || unwritable "What was set can't be noted there"
    fi
    printf '%s\n' "$now"
    ;;
renew)
    ours
    sign_of_life || unwritable "The lease can't be renewed"
    keep_watched
    ;;
end)
    mark=$lock/armed.$token
    line_of "$lock/token"
    [ "$line" = "$token" ] && [ -e "$mark" ] || lost
    release
    result=$?
    case $result in
    2) lost ;;
    3) unwritable "Every key is as it was found, but the lock can't be removed" ;;
    esac
    exit "$result"
    ;;
status)
    [ -d "$dir" ] || exit 0
    if [ -w "$dir" ]; then
        [ ! -d "$lock" ] || take_away
        for old in "$dir"/restoring.*; do
            if [ -d "$old" ] && ! at_work "${old##*.}" ""; then
                report_rest "$(put_back "$old")"
            fi
        done
    fi
    if [ -d "$lock" ]; then
        if { IFS='' read -r owner && IFS='' read -r since; } 2>/dev/null < "$lock/owner"; then
            printf 'holder\t%s\nsince\t%s\n' "$owner" "$since"
        else
            printf 'holder\tanother session, which is just taking it\n'
        fi
        if listen; then
            printf 'lease_s\t%s\nsilent_s\t%s\n' "$limit" "$silent"
        fi
        if line_of "$lock/token"; then
            token=$line
            state=dead
            ! watched || state=alive
            printf 'watchdog\t%s\n' "$state"
        fi
    fi
    for folder in "$lock" "$dir"/restoring.* "$dir"/unrestored.*; do
        tell_state "$folder"
    done
    [ ! -s "$dir/report" ] || sed "s/^/report$tab/" "$dir/report"
    ;;
rollback)
    force=$token
    code=77
    set -- "$dir"/restoring.* "$dir"/unrestored.*
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -d "$lock" ] || break
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
        *) break ;;
        esac
    done
    for old; do
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            case $old in */restoring.*) at_work "${old##*.}" "" || break ;; *) break ;; esac
            sleep 1
        done
        [ -d "$old" ] || continue
        put_back "$old"
        result=$?
        [ "$code" = 1 ] || code=$result
    done
    exit "$code"
    ;;
watch)
    # When memory runs out, somebody has to give the host back.
    { echo -900 > /proc/self/oom_score_adj; } 2>/dev/null
    overwrite "$lock/watchdog" "$$"
    while sleep 1 || sleep 1; do
        line_of "$lock/token"
        [ "$line" = "$token" ] || exit 0
        lapsed || continue
        # Fails with 2 when another session is at it, and will have the lock.
        take_away
        [ "$?" = 2 ] || exit 0
    done
    ;;
*)
    echo "unknown verb: $verb" >&2
    exit 1
    ;;
esac
