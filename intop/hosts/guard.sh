#!/bin/sh
# The guard of a tuned host: everything here runs on the host, and needs nothing but a POSIX
# shell, coreutils, grep, sed and /proc. Keys are paths below /proc/sys.
#
# On a small or emulated host a process takes longer than all else here, so there is none for each
# key, and few in what runs every second or every trial. `read` does not do for /proc/sys: shells
# read byte by byte, and most keys end after their first byte then.
#
#   guard.sh DIR begin TOKEN LEASE OWNER own|originals [RESTART]
#                                          paths of keys on stdin, and of nginx's files, which begin
#                                          with a slash; takes the lock, stores the snapshot,
#                                          arms the watchdog, prints reports, what is applied, and
#                                          the snapshot; originals: also guards the keys of what is
#                                          applied, and prints their values from before that;
#                                          RESTART: what restarts nginx, and what a report says
#                                          to type for that
#   guard.sh DIR write TOKEN [reload|restart DRAIN]
#                                          "path value" lines on stdin; writes, prints what all
#                                          guarded keys are then; "/N SUM TEXT" lines give the N-th
#                                          of nginx's files a text, "/N own" its own, and nginx
#                                          takes them by a reload or restart; its old workers are
#                                          waited for as long as DRAIN s
#   guard.sh DIR renew TOKEN               a sign of life
#   guard.sh DIR end TOKEN                 restores the snapshot, checks it, gives the lock back
#   guard.sh DIR keep TOKEN [FILE SHA256]  ends the session with its values left as they are, and
#                                          FILE, if any, in place; what and why on stdin (see there)
#   guard.sh DIR status                    who holds the host, what is changed, what is applied
#                                          and has become of that, what was reported
#   guard.sh DIR rollback [force]          restores without a token, gives the lock back, undoes
#                                          what is applied
#   guard.sh DIR accept                    forgets what could not be restored: the values of now are
#                                          the host's own
#   guard.sh DIR watch TOKEN               the watchdog itself; ends with 3 when its work is done
#   guard.sh DIR boot UNIT                 what a reboot has cut off, called by UNIT at the start
#
# Exit codes: 0 done, 1 failed, 73 the folder can't be written, 75 held by somebody else, 76 the
# lock is not (or no longer) ours, 77 nothing to roll back, 78 somebody else has changed a key,
# 79 the values stay, and something else of a keep could not be done, 80 values of an earlier session
# are not back, 81 nginx refuses the files, which are as they were found. Each answer ends with a line "end", a tab and the code: without it, it was cut off.
#
# In DIR: `lock` while a session has the host, `restoring.ID` while process ID restores,
# `unrestored.N.ID` with what it could not, which the watchdog tries again every minute, `report` for the next session, `report.old` thereafter,
# and this script as guard-HASH.sh; guard.sh is a link to the last one that was installed. An ID is a
# process's number and its start: numbers come again. What is made is made beside its place, what
# goes is moved away first (`making.ID`, `undone.ID`): nothing of it is ever there half.
#
# In each of the folders: `snapshot`, the keys before; `left`, the keys as our last write left them;
# `inflight`, the keys that a write has begun with; `armed.TOKEN`, which whoever takes the lock away
# renames first, so that only one can; `token`, which comes last: nothing is written before.
#
# `applied.N` is the record of what stays, the one with the highest N; what a later apply replaces
# has a lower one, and goes. It has a snapshot and `left` as above, `about` with a name and a word in
# each line, and `file` with path and SHA-256 of our file, if any. A keep makes it as lock/record, and
# renames it: that is when what it does becomes true. Where nginx's files stay changed, it has those
# of a session's folder that a restore needs, and `directives`, a line of key, value before and value
# each. Until then whoever takes the lock away undoes
# it, and thereafter ends it, by lock/input (a keep has begun) and lock/draft (its file's names).
#
# Each network namespace has keys of its own, and one list of the folders in which sessions began.
# Who begins looks into all of them, after taking the lock in its own: of two at once, one sees the other.
# `boot` and `network` say whose keys a folder is about: with a namespace its keys are gone, as with a boot.
set -u
# A value is bytes, whatever the host's language.
export LC_ALL=C
dir=$1
verb=$2
token=${3-}
lock=$dir/lock
lists=/run/intop-guard
units=/etc/systemd/system
force=
anew=
network=
silent=0
tab=$(printf '\t')
newline='
'
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# The script's own name, which is not the link's: the file behind that changes.
self=${0##*/}
if [ -L "$0" ]; then
    self=$(readlink "$0")
    self=${self##*/}
fi

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

# Our network namespace in `network`: its number, which comes again, and that of the socket that the
# kernel made with it, which does not.
look_at_network() {
    [ -z "$network" ] || return 0
    network=$(readlink /proc/self/ns/net)
    network=${network#*'['}
    network=${network%']'}
    while IFS=' ' read -r _ protocol port _ _ _ _ _ _ inode _; do
        [ "$protocol $port" = "0 0" ] || continue
        network=$network-$inode
        break
    done 2>/dev/null < /proc/self/net/netlink
}

# Whether the keys that folder $1 is about are those of this boot and network namespace. Fails with 1
# when they are gone, and with 2 when they are still there, in the namespace with the number `elsewhere`.
is_of_now() {
    is_of_this_boot "$1" || return 1
    # An older version has not noted it.
    line_of "$1/network" || return 0
    look_at_network
    [ "$line" != "$network" ] || return 0
    elsewhere=${line%%-*}
    [ "$elsewhere" != "${network%%-*}" ] || return 1
    is_a_network "$elsewhere" || return 1
    return 2
}

# Whether folder $1 is of this boot. One that can't be told is: what is still to be restored stays.
is_of_this_boot() {
    line_of "$1/boot" || return 1
    this_boot=$(boot_id)
    [ -z "$this_boot" ] || [ -z "$line" ] || [ "$line" = "$this_boot" ]
}

# Whether there is a network namespace with the number $1. In a user namespace of their own anybody can
# make one, to whom the kernel may give the number of one that is gone: those don't count.
is_a_network() (
    set +f
    readlink /proc/[0-9]*/ns/net 2>/dev/null | grep -qxF "net:[$1]" &&
        for each in /proc/[0-9]*; do
            ! [ "$each/ns/net" -ef /proc/self/ns/net ] && is_of_our_users "$each" || continue
            [ "$(readlink "$each/ns/net" 2>/dev/null)" != "net:[$1]" ] || exit 0
        done
    grep -lsF "net:[$1]" /proc/[0-9]*/mountinfo | {
        while IFS='' read -r each; do
            ! is_of_our_users "${each%/mountinfo}" || exit 0
        done
        exit 1
    }
)

# The ID of process $1 in `process`; fails for one that has ended.
identify() {
    process=
    { IFS='' read -r process < "/proc/$1/stat"; } 2>/dev/null || return 1
    # Its name, in brackets, may have any in it.
    process=${process##*') '}
    case $process in '' | [ZX]*) return 1 ;; esac
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do process=${process#* }; done
    process=$1-${process%% *}
}

# Whether the process with the ID $1 is there.
at_work() {
    case $1 in -* | *- | *-*-* | *[!0-9-]*) return 1 ;; *-*) ;; *) return 1 ;; esac
    identify "${1%-*}" && [ "$process" = "$1" ]
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

# Brings files and folders to the disk. What is not there, is not there after a power failure.
flush() {
    sync "$@" 2>/dev/null
}

# Takes the folder $1 away, in one move.
discard() {
    undone=$dir/undone.$me
    while [ -e "$undone" ]; do undone=$undone.1; done
    mv "$1" "$undone" 2>/dev/null || return 1
    rm -rf "$undone" 2>/dev/null
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
#
# Of a value of several numbers the kernel takes the first ones, if it refuses a later one. Such a
# mixture is ours, too: a restore that has died over it, or that found no room, has noted nothing.
look_for_strangers() {
    left=$1/left
    [ -f "$left" ] || left=$1/snapshot
    strange=$(show | grep -vxF -f "$left" -f "${2:-$left}")
    if [ -n "$strange" ] && flying=$(cat "$1/inflight" 2>/dev/null) && [ -n "$flying" ]; then
        strange=$(without "$strange" "$flying")
    fi
    case $strange in *[" $tab"]*)
        ours=$(cat "$1/snapshot" "$left")
        strange=$(for line in $strange; do is_mixture "$line" || printf '%s\n' "$line"; done)
        ;;
    esac
}

# Whether each number of line $1 stands at its place in some value of its path among the lines `ours`.
is_mixture() (
    mine=
    for entry in $ours; do
        case $entry in "${1%%:*}:"*)
            make_plain "${entry#*:}"
            mine=$mine$plain' '$newline
            ;;
        esac
    done
    make_plain "${1#*:}"
    case $plain in *' '*) ;; *) exit 1 ;; esac
    numbers="$plain "
    while [ -n "$numbers" ]; do
        known=
        rest=
        for entry in $mine; do
            [ "${entry%% *}" != "${numbers%% *}" ] || known=yes
            rest=$rest${entry#* }$newline
        done
        [ -n "$known" ] || exit 1
        mine=$rest
        numbers=${numbers#* }
    done
)

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

# Prints what somebody else has changed since folder $1 was written, and fails when there is anything.
tell_strangers() (
    set -f
    IFS=$newline
    all=$(cat "$1/paths") || exit 0
    look_for_strangers "$1" "$1/snapshot"
    [ -n "$strange" ] || exit 0
    tell_foreign "$1"
    exit 1
)

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
    # What the kernel had was lost by the reboot, or with the network namespace.
    lost=
    case $anew in
    yes) all=/dev/null ;;
    network)
        kept=/dev/null
        for path in $(printf '%s' "$all" | tr ' ' "$newline"); do
            case $path in
            net/*) lost=$lost$path$newline ;;
            /dev/null) ;;
            *) kept="$kept $path" ;;
            esac
        done
        all=$kept
        ;;
    esac
    strange=
    alone=
    left=$1/left
    [ -f "$left" ] || left=$1/snapshot
    if [ "$force" != force ]; then
        look_for_strangers "$1" "$1/snapshot"
        # What has come to stay since is no value of that session any more, even if it looks so.
        case ${1##*/} in unrestored.*)
            set +f
            settled=
            ! find_applied || settled=$(show | grep -xF -f "$applied/left" | grep -vxF -f "$1/snapshot")
            set -f
            settled=$(without "$settled" "$(paths_of "$strange")")
            [ -z "$settled" ] || strange=${strange:+$strange$newline}$settled
            ;;
        esac
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
        wrong=
        [ "$anew" = yes ] || wrong=$(differing "$1") || exit 1
        [ -z "$lost" ] || wrong=$(without "$wrong" "$lost")
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
    # After the keys: a socket gets what they are when nginx opens it.
    restore_files "$1"
    [ -n "$wrong$strange$less_files$less_nginx" ] || exit 0
    [ -z "$strange" ] || tell_foreign "$1"
    befores=$(cat "$1/snapshot")
    lefts=$(cat "$left")
    # What we have made of them is nobody else's.
    mine=$(without "$(show)" "$alone")
    for line in $wrong; do
        make_command "${line%%:*}" "${line#*:}"
        make_plain "${line#*:}"
        printf 'unrestored\t%s\t%s\t%s\n' "${line%%:*}" "$plain" "$command"
    done
    # What is not back is all that is left to do: `less` takes the folder's place. Its token comes last.
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
        rm -rf "$1/less" && mkdir "$1/less" && printf '%s' "$todo" > "$1/less/snapshot" &&
            printf '%s\n' "$all" > "$1/less/paths" && printf '%s\n' "$lefts" "$mine" > "$1/less/left" &&
            cat "$1/boot" > "$1/less/boot" && for each in network inflight unit; do
                [ ! -e "$1/$each" ] || cat "$1/$each" > "$1/less/$each" || exit 1
            done &&
            [ "$(cat "$1/less/snapshot" "$1/less/left")" = "$(printf '%s' "$todo" && printf '%s\n' "$lefts" "$mine")" ] &&
            keep_less_files "$1" "$1/less" && set +f && flush "$1"/less/* && cat "$1/token" > "$1/less/token"
    } 2>/dev/null
    exit 1
)

@trust.sh@

@guard_files.sh@
# -- whoever is still at work ----------------------------------------------------------------------

# Ends a write that is still under way in folder $1: it must not go on after the restore. Fails for
# one that does not end, such as one that waits for its disk.
stop_writer() {
    for file in "$1"/writer.*; do
        line_of "$file" || continue
        writer=$line
        [ "$writer" != "$me" ] || continue
        look_at_clock
        patience=$((uptime + 3))
        while at_work "$writer"; do
            kill -9 "${writer%-*}" 2>/dev/null
            look_at_clock
            [ "$uptime" -le "$patience" ] || return 1
            short_sleep
        done
    done
}

# -- what stays ------------------------------------------------------------------------------------

# The record of what is applied in `applied`, its number in `number`; fails when there is none.
find_applied() {
    applied=
    number=0
    for each in "$dir"/applied.*; do
        case ${each##*.} in '' | *[!0-9]*) continue ;; esac
        if [ -d "$each" ] && [ "${each##*.}" -gt "$number" ]; then
            applied=$each
            number=${each##*.}
        fi
    done
    [ -n "$applied" ]
}

# Removes the records that `applied` has replaced.
drop_replaced() {
    for each in "$dir"/applied.*; do
        [ "$each" = "$applied" ] || rm -rf "$each" 2>/dev/null
    done
}

# What record $1 says of our file in `file` and `sum`, and what has become of that in `file_is`;
# fails when it has none.
look_at_file() {
    file=
    sum=
    { IFS='' read -r file && IFS='' read -r sum; } 2>/dev/null < "$1/file" || return 1
    file_is=edited
    if [ ! -e "$file" ]; then
        file_is=missing
    elif [ "$(sha256sum 2>/dev/null < "$file")" = "$sum  -" ]; then
        file_is=ours
    fi
}

# What a keep has begun in folder $1 is ended when its record is there, and then this fails with 4;
# else it is undone but for the values.
settle_keep() {
    [ -e "$1/input" ] && line_of "$1/token" || return 0
    kept_by=$line
    # Half a name may be that of another file.
    { IFS='' read -r draft && IFS='' read -r final; } 2>/dev/null < "$1/draft" || draft=
    if find_applied && line_of "$applied/token" && [ "$line" = "$kept_by" ]; then
        if [ -n "$draft" ] && [ -e "$draft" ]; then
            mv "$draft" "$final" 2>/dev/null || report "$final could not be put in place: mv $draft $final"
            flush "${final%/*}" || report "${final%/*} can't be brought to the disk (sync failed): see whether $final is there after a power failure"
        fi
        drop_replaced
        return 4
    fi
    [ -z "$draft" ] || rm -f "$draft" 2>/dev/null
    return 0
}

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

# Prints the record of what is applied, what has become of our file, and each key with its value
# before, as we left it, and now.
tell_applied() (
    find_applied || exit 0
    sed "s/^/applied$tab/" "$applied/about"
    is_of_now "$applied"
    [ "$?" != 1 ] || printf 'rebooted\tyes\n'
    ! look_at_file "$applied" || printf 'file\t%s\t%s\n' "$file" "$file_is"
    set -f
    IFS=$newline
    all=$(cat "$applied/paths") || exit 0
    now=$(show)
    lefts=$(cat "$applied/left")
    told=
    for line in $(cat "$applied/snapshot"); do
        path=${line%%:*}
        case $newline$told in *"$newline$path$newline"*) continue ;; esac
        told=$told$path$newline
        make_plain "${line#*:}"
        before=$plain
        value_in "$lefts" "$path"
        make_plain "$value"
        was=$plain
        value_in "$now" "$path"
        make_plain "$value"
        printf 'stays\t%s\t%s\t%s\t%s\n' "$path" "$before" "$was" "$plain"
    done
    tell_staying_files "$applied"
)

# In `anew` what folder $1 is about and is gone by itself: all keys (`yes`), those of a network namespace
# (`network`), or nothing.
find_age() {
    anew=
    ! is_of_now "$1" || return 0
    anew=yes
    ! is_of_this_boot "$1" || anew=network
}

# Whether the keys that folder $1 is about are in another network namespace: here they have other values.
is_elsewhere() {
    is_of_now "$1"
    [ "$?" = 2 ]
}

tell_elsewhere() {
    echo "the values are those of another network namespace, net:[$elsewhere], and can be restored in that one only: find a process of it by lsns -t net, and type: nsenter -t PID -n sh $dir/guard.sh $dir rollback"
}

# Restores from the lock that was moved to folder $1, or ends a keep there (4). What can't be restored
# is kept there under another name, for a later rollback. Where a write does not end, the folder stays
# as it is: the watchdog and every command try again.
put_back() {
    if is_elsewhere "$1"; then
        tell_elsewhere >&2
        return 1
    fi
    stuck=
    stop_writer "$1" || stuck=$writer
    settle_keep "$1"
    result=$?
    if [ "$result" != 4 ] && [ -e "$1/token" ]; then
        find_age "$1"
        if [ "$anew" != yes ] || [ -e "$1/nginx" ]; then
            restore "$1"
            result=$?
        fi
        anew=
    fi
    if [ -n "$stuck" ]; then
        echo "a write does not end (process ${stuck%-*}), so this host may change again; what is in $1 is restored when it does" >&2
        return 1
    fi
    [ "$result" != 4 ] || drop_beside "$1"
    case $result in
    0 | 4)
        # Not before: a power failure may come at any time.
        disarm_boot "$1"
        discard "$1"
        ;;
    *)
        # What nginx still lacks, its unit restores at the next start.
        [ -e "$1/less/nginx" ] || [ ! -e "$1/less/token" ] || disarm_boot "$1"
        keep_unrestored "$1"
        ;;
    esac
    return "$result"
}

# Keeps what is left to do in folder $1 until a rollback or an accept, in one move: no full disk and
# no death leaves half of it. The first one has the lowest number.
keep_unrestored() {
    next=1000
    case $1 in
    "$dir"/unrestored.*)
        next=${1#"$dir"/unrestored.}
        next=${next%%.*}
        ;;
    *)
        for each in "$dir"/unrestored.*; do
            each=${each#"$dir"/unrestored.}
            each=${each%%.*}
            case $each in '' | *[!0-9]*) continue ;; esac
            [ "$each" -lt "$next" ] || next=$((each + 1))
        done
        ;;
    esac
    kept=$dir/unrestored.$next.$me
    while [ -e "$kept" ]; do kept=$kept.1; done
    if [ -e "$1/less/token" ] && mv "$1/less" "$kept" 2>/dev/null; then
        discard "$1"
    else
        case $1 in "$dir"/unrestored.*) ;; *) mv "$1" "$kept" 2>/dev/null ;; esac
    fi
}

# Removes what processes that have died were making or taking away.
tidy() {
    for old in "$dir"/making.* "$dir"/undone.*; do
        [ -e "$old" ] || continue
        maker_of "$old"
        at_work "$maker" || rm -rf "$old" 2>/dev/null
    done
}

# The name of a folder that nobody has, for what we restore, in `aside`.
name_aside() {
    aside=$dir/restoring.$me
    while [ -e "$aside" ]; do aside=$aside.1; done
}

# The ID of whoever has made folder $1, as in its name, in `maker`.
maker_of() {
    maker=${1##*/}
    maker=${maker#*.}
    maker=${maker%%.*}
}

# Takes the restore in folder $1 from a process that has died; the folder is `aside` then. Fails
# while it lives, and when another process was faster.
adopt() {
    maker_of "$1"
    aside=$1
    [ "$maker" != "$me" ] || return 0
    ! at_work "$maker" || return 1
    name_aside
    mv "$1" "$aside" 2>/dev/null && return 0
    # Where nothing can be moved, nobody else can begin either.
    aside=$1
    [ -d "$1" ]
}

# Carries every restore to its end whose process has died. Fails while there is one.
finish_restores() {
    unfinished=0
    for old in "$dir"/restoring.*; do
        [ -d "$old" ] || continue
        if adopt "$old"; then
            tell_end "$aside"
            said=$(put_back "$aside")
            code=$?
            if [ ! -d "$aside" ]; then
                report_end "$code"
                report_rest "$said"
                continue
            fi
        fi
        unfinished=1
    done
    return "$unfinished"
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

# What there will be to report of the session in folder $1: `owner`, `since`, `why`, and `restart`
# where nginx may have opened sockets under its values.
tell_end() {
    owner=
    since=
    restart=
    rebooted=
    [ -e "$1/token" ] && line_of "$1/boot" || return 0
    find_age "$1"
    rebooted=$anew
    anew=
    [ -z "$rebooted" ] || [ -e "$1/nginx" ] || return 0
    { IFS='' read -r owner && IFS='' read -r since; } 2>/dev/null < "$1/owner"
    case $rebooted in
    yes) why="this host was started anew under the session of $owner since $since" ;;
    network) why="the network namespace of the session of $owner since $since is gone" ;;
    esac
    [ -z "$rebooted" ] || return 0
    why="whoever gave back the session of $owner since $since has died over it"
    [ ! -e "$1/left" ] || restart=$(cat "$1/restart" 2>/dev/null)
    # A report is a line.
    case $restart in *"$newline"*) restart="by the study's nginx_restart or server_restart" ;; esac
}

# Reports the end of a session that release() or put_back() has ended with $1.
report_end() {
    [ -n "$owner" ] || return 0
    who="the next command"
    case $verb in
    watch) who="its watchdog" ;;
    boot) who="its unit of systemd, before nginx was started" ;;
    esac
    result="was restored"
    [ "$1" != 1 ] || result="was NOT fully restored"
    [ "$1" != 4 ] || result="keeps what was applied, and was given back"
    report "$why; this host $result by $who"
    case $said in *"nginx${tab}restarted"*) restart= ;; esac
    [ -z "$restart" ] || [ "$1" = 4 ] ||
        report "the server keeps what its sockets got of a trial's values until it is restarted, as root: $restart"
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
        nginx"$tab"*) ;;
        unrestored"$tab"/* | unrestored"${tab}nginx$tab"*)
            said_why=${said_line#*"$tab"*"$tab"}
            report "$(printf '%s' "$said_line" | cut -f 2): ${said_why%%"$tab"*}; to restore it, as root: ${said_line##*"$tab"}"
            ;;
        foreign"$tab"*) report "somebody else has changed $said_key, so it was left alone; to put it back, as root: ${said_line##*"$tab"}" ;;
        unrestored"$tab"*) report "could not be restored: $said_key; as root: ${said_line##*"$tab"}" ;;
        esac
    done
    set +f
    IFS=$rest_ifs
}

# Tries again what could not be restored, the first one last, as its values are the oldest. Prints what
# is still not back of keys that are there. What somebody else has changed is theirs, and no default of
# ours; but it stays noted until it is given back or accepted.
retry_unrestored() {
    set --
    for old in "$dir"/unrestored.*; do set -- "$old" "$@"; done
    for old; do
        [ -d "$old" ] || continue
        put_back "$old" | while IFS='' read -r line; do
            path=${line#*"$tab"}
            case $line in
            unrestored"$tab"/* | unrestored"${tab}nginx$tab"*) printf '%s\n' "$line" ;;
            unrestored"$tab"*) [ ! -e "/proc/sys/${path%%"$tab"*}" ] || printf '%s\n' "$line" ;;
            esac
        done
    done
}

# Tries again in a minute what could not be restored, unless somebody has the host then, who does it,
# too. Fails when nothing is left to try.
retry_later() {
    count_unrestored || return 1
    before=$remaining
    # A signal ends the wait, and not only the sleep.
    sleep 60 &
    wait "$!" || exit 70
    take_lock "claimed.retry.$me" || return 0
    missing=$(retry_unrestored 2>/dev/null)
    discard "$lock"
    count_unrestored || :
    [ "$remaining" -ge "$before" ] || report "what could not be restored of a session is as it was found now: the watchdog tried it again"
    # All else is somebody else's, or gone. Each later session would leave a watchdog for it, too.
    [ -n "$missing" ]
}

# How many sessions are not fully restored in `remaining`; fails when there is none.
count_unrestored() {
    remaining=0
    for old in "$dir"/unrestored.*; do
        [ ! -d "$old" ] || remaining=$((remaining + 1))
    done
    [ "$remaining" != 0 ]
}

# -- the watchdog ----------------------------------------------------------------------------------

watched() {
    line_of "$lock/watchdog" && at_work "$line"
}

# Waits until the watchdog has said that it is at work; not for long when process $1 is gone.
wait_for_watchdog() {
    look_at_clock
    patience=$((uptime + 10))
    until watched; do
        look_at_clock
        [ -z "${1-}" ] || identify "$1" || [ "$patience" -lt $((uptime + 2)) ] || patience=$((uptime + 1))
        [ "$uptime" -le "$patience" ] || return 1
        short_sleep
    done
}

# A unit that is there already waits to be started anew: then it is. An nginx that the watchdog has
# restarted stays when its unit ends.
start_unit() {
    systemd-run --quiet --collect --unit="intop-guard-$token" --property=Restart=always \
        --property=RestartSec=1 --property=StartLimitIntervalSec=0 \
        --property=RestartPreventExitStatus=3 --property=SuccessExitStatus=3 --property=KillMode=process \
        sh "$here/$self" "$dir" watch "$token" || systemctl --quiet restart "intop-guard-$token"
}

# Whether systemd can start what is to work here. What it starts is in its own namespaces: a host
# that is only a network namespace has other keys.
has_systemd() {
    [ -d /run/systemd/system ] && [ /proc/1/ns/net -ef /proc/self/ns/net ] &&
        [ /proc/1/ns/mnt -ef /proc/self/ns/mnt ]
}

# systemd starts its unit again whatever ends it, and the unit outlives any login. Fails when there is
# no watchdog afterwards.
arm() {
    if has_systemd && start_unit </dev/null >/dev/null 2>&1 && wait_for_watchdog; then
        return 0
    fi
    apart=
    ! command -v setsid >/dev/null 2>&1 || apart=setsid
    nohup $apart sh "$here/$self" "$dir" watch "$token" </dev/null >/dev/null 2>&1 &
    started=$!
    wait_for_watchdog "$started"
}

# Arms the watchdog anew when it is gone. Said once: there may be something that ends each of them.
keep_watched() {
    watched && return
    arm || return 1
    [ ! -e "$lock/rearmed" ] || return 0
    keep rearmed yes
    report "the watchdog of this host was gone, and was armed anew; look for what has ended it"
}

# A reboot gives the keys back and ends the watchdog, but leaves nginx's files as a trial had them: a
# unit of the next start restores them before nginx reads them. Fails with `why` when there is none.
arm_boot() {
    has_systemd || return 0
    case $(stat -f -c %T "$dir") in tmpfs | ramfs)
        why="the state folder $dir is in memory, and a reboot would lose what restores nginx's files"
        return 1
        ;;
    esac
    unit=intop-guard-$token-boot.service
    # In double quotes systemd expands some characters, which are doubled or escaped against that.
    words=
    for word in "$here/$self" "$dir"; do
        words="$words \"$(printf '%s' "$word" | sed 's/[\\"]/\\&/g; s/[%$]/&&/g')\""
    done
    if { mkdir -p "$units/multi-user.target.wants" && keep unit "$unit" && flush "$lock/unit" "$lock" &&
        printf '%s\n' '[Unit]' 'Description=intop: give nginx its files back, which a reboot has cut off' \
            Before=nginx.service '[Service]' Type=oneshot TimeoutStartSec=180 \
            "ExecStart=/bin/sh$words boot $unit" > "$units/$unit" && chmod 0644 "$units/$unit" &&
        ln -sf "../$unit" "$units/multi-user.target.wants/$unit" &&
        flush "$units/$unit" "$units" "$units/multi-user.target.wants"; } 2>/dev/null; then
        return 0
    fi
    why="$units can't be written, where the unit would be that restores nginx's files after a reboot"
    return 1
}

# Removes the unit of the session in folder $1.
disarm_boot() {
    ! line_of "$1/unit" || drop_unit "$line"
}

drop_unit() {
    rm -f "$units/multi-user.target.wants/$1" "$units/$1" 2>/dev/null
}

unwatched() {
    echo "no watchdog can be armed, by systemd-run or nohup, so nobody would restore this host: $1" >&2
    exit 1
}

# -- the verbs -------------------------------------------------------------------------------------

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

# Prints what differs in folder $1, and what somebody else has changed.
tell_state() (
    [ -f "$1/snapshot" ] || exit 0
    set -f
    IFS=$newline
    tell_files "$1"
    is_of_now "$1" || exit 0
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

# Ends a write whose controller has not waited for its end.
end_writer() {
    stop_writer "$lock" && return
    echo "an earlier write does not end (process ${writer%-*}). $1" >&2
    exit 1
}

# Ends a session whose keep has died when its values had come to stay: what is set from now on would
# stay, too, and no record would know of it. Called when no write is under way.
end_kept() {
    [ -e "$lock/input" ] && find_applied && line_of "$applied/token" && [ "$line" = "$token" ] || return 0
    release
    echo "the values of this session were kept already: it is over" >&2
    exit 76
}

unflushed() {
    echo "the disk does not take what is to stay (sync failed). $1" >&2
    exit 73
}

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

do_keep() {
    # On stdin a word and a tab begin each line: "key" with the path of one that is to stay,
    # "directive" with key, value before and value of one of nginx, "about" with name and word, "text"
    # with a line of FILE. "end" ends it: what was cut off is not kept.
    target=${4-}
    umask 077
    ours
    end_writer "Nothing stays"
    end_kept
    overwrite "$lock/writer.$token" "$me" && sign_of_life || unwritable "Nothing stays"
    # Whoever takes the lock away from now on ends us first, and finds what we have begun.
    [ -e "$mark" ] || lost
    keep_watched || unwatched "nothing stays"
    { cat > "$lock/input"; } 2>/dev/null || unwritable "Nothing stays"
    if [ "$(tail -n 1 "$lock/input")" != end ]; then
        echo "what is to stay was cut off on its way here; nothing stays" >&2
        exit 1
    fi
    file=
    if find_applied && look_at_file "$applied" && [ "$file_is" = ours ] && [ "$target" != "$file" ]; then
        echo "$file is of an earlier apply: give it up by a rollback, or replace it" >&2
        exit 1
    fi
    if [ -n "$target" ] && { [ -e "$target" ] || [ -L "$target" ]; } &&
        ! { [ "$target" = "$file" ] && [ "$file_is" = ours ]; }; then
        echo "$target is there, and not as intop has written it: move it away" >&2
        exit 1
    fi
    set -f
    IFS=$newline
    all=$(cat "$lock/paths")
    look_for_strangers "$lock"
    if [ -n "$strange" ]; then
        tell_foreign "$lock"
        exit 78
    fi
    if [ -e "$lock/nginx" ]; then
        tell_strange_files || exit 78
    fi
    if [ -n "$applied" ] && [ -e "$applied/nginx" ]; then
        echo "directives of nginx of an earlier apply stay here: roll that back first" >&2
        exit 1
    fi
    # The write that put its files in place may have died before nginx took them.
    if [ -e "$lock/nginx" ] && line_of "$lock/nginx" && [ "$line" != own ] && ! activate "$lock" "$line" 0; then
        echo "$why. Nothing stays" >&2
        exit 1
    fi
    now=$(show)
    befores=$(cat "$lock/snapshot")
    if [ -n "$applied" ]; then
        # The values from before all applies: ours of before are nobody's own.
        firsts=$(cat "$applied/snapshot")
        befores="$(without "$befores" "$(paths_of "$firsts")")$newline$firsts"
        if [ -n "$(without "$firsts" "$(paths_of "$now")")" ]; then
            echo "not all keys of what is applied are guarded: roll that back first" >&2
            exit 1
        fi
    fi
    asked=$(sed -n "s/^key$tab//p" "$lock/input")
    chosen=
    paths=/dev/null
    for line in $now; do
        path=${line%%:*}
        case $newline$chosen in *"$newline$path$newline"*) continue ;; esac
        case $newline$asked$newline in
        *"$newline$path$newline"*) ;;
        *) case $newline$befores$newline in *"$newline$line$newline"*) continue ;; esac ;;
        esac
        chosen=$chosen$path$newline
        paths="$paths $path"
    done
    others=$(without "$now" "$chosen")
    others=$(paths_of "$others")
    record=$lock/record
    look_at_network
    {
        rm -rf "$record" && mkdir "$record" &&
            without "$befores" "$others" > "$record/snapshot" &&
            without "$now" "$others" > "$record/left" &&
            printf '%s\n' "$paths" > "$record/paths" &&
            boot_id > "$record/boot" && printf '%s\n' "$network" > "$record/network" &&
            printf '%s\n' "$token" > "$record/token" &&
            sed -n "s/^about$tab//p" "$lock/input" > "$record/about" &&
            [ "$(cat "$record/snapshot")" = "$(without "$befores" "$others")" ] &&
            [ "$(cat "$record/left")" = "$(without "$now" "$others")" ] &&
            [ "$(cat "$record/token")" = "$token" ] &&
            record_files "$record"
    } 2>/dev/null || unwritable "Nothing stays"
    if [ -n "$target" ]; then
        # No name that is read at boot.
        draft=$target.$token
        keep draft "$draft$newline$target" &&
            { printf '%s\n' "$target" "${5-}" > "$record/file"; } 2>/dev/null || unwritable "Nothing stays"
        umask 022
        mkdir -p "${target%/*}" 2>/dev/null
        if [ -d "${target%/*}" ] && why=$(tell_others_folder "${target%/*}/") && [ -n "$why" ]; then
            echo "$target can't be written: $why. Make that folder root's alone" >&2
            exit 1
        fi
        if ! said=$({ mkdir -p "${target%/*}" && sed -n "s/^text$tab//p" "$lock/input" > "$draft" &&
            chmod 0644 "$draft"; } 2>&1) || [ "$(sha256sum < "$draft")" != "${5-}  -" ]; then
            echo "$target can't be written: ${said:-there is no room left, or no sha256sum}" >&2
            exit 1
        fi
        flush "$draft" "${target%/*}" || unflushed "Nothing stays"
    fi
    flush "$record/snapshot" "$record/left" "$record/paths" "$record/boot" "$record/network" "$record/token" \
        "$record/about" ${target:+"$record/file"} ${target:+"$lock/draft"} "$record" "$lock/input" "$lock" || unflushed "Nothing stays"
    sign_of_life
    if ! mv -T "$record" "$dir/applied.$((number + 1))" 2>/dev/null; then
        [ ! -d "$record" ] || unwritable "Nothing stays"
        lost
    fi
    flush "$dir" "$lock" || report "$dir can't be brought to the disk (sync failed): a power failure may undo what was applied"
    set +f
    IFS=" $tab$newline"
    release
    case $? in
    4) ;;
    # Whoever has taken the lock away ends it.
    *) for _ in 1 2 3 4 5 6 7 8 9 10; do [ ! -d "$lock" ] || short_sleep; done ;;
    esac
    if [ -n "$target" ] && [ ! -e "$target" ]; then
        echo "the values stay until the next reboot, and $target could not be put in place" >&2
        exit 79
    fi
}

do_status() {
    [ -d "$dir" ] || exit 0
    if [ -w "$dir" ]; then
        [ ! -d "$lock" ] || take_away
        finish_restores
        tidy
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
    tell_applied
    [ ! -s "$dir/report" ] || sed "s/^/report$tab/" "$dir/report"
}

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

do_boot() {
    [ ! -d "$lock" ] || take_away
    tidy
    finish_restores || return 0
    if take_lock "claimed.boot.$me"; then
        retry_unrestored >/dev/null
        discard "$lock"
    fi
    for each in "$lock" "$dir"/unrestored.*; do
        ! { line_of "$each/unit" && [ "$line" = "$token" ]; } || return 0
    done
    # Also one that a power failure has brought back, after its session had ended.
    drop_unit "$token"
}

do_watch() {
    # Only an end with 3 is one: systemd starts the watchdog anew after any other.
    trap 'exit 70' TERM HUP INT PIPE
    # When memory runs out, somebody has to give the host back.
    { echo -900 > /proc/self/oom_score_adj; } 2>/dev/null
    idle=0
    while :; do
        if line_of "$lock/token" && [ "$line" = "$token" ]; then
            watched || overwrite "$lock/watchdog" "$me"
            if [ "$idle" != 0 ]; then
                idle=$((idle - 1))
            elif lapsed; then
                take_away
                case $? in
                # All is restored, and nothing can be removed, as the folder is read-only.
                3) exit 3 ;;
                # The same, but something can't be restored. Nobody wants nginx reloaded each second.
                1) idle=60 ;;
                esac
            fi
        elif finish_restores; then
            retry_later || exit 3
            continue
        fi
        sleep 1 || sleep 1 || exit 70
    done
}

# All of the script has been read by now: of half of it nothing is run.
{
    case $verb in
    status | rollback)
        # shellcheck disable=SC2093
        ! another_version || exec sh "$dir/$line" "$@"
        ;;
    begin | write | renew | end | keep | accept | watch | boot) ;;
    *)
        echo "unknown verb: $verb" >&2
        exit 1
        ;;
    esac
    identify "$$" || {
        echo "/proc shows no processes, so nobody can tell who is at work here" >&2
        exit 1
    }
    me=$process
    if [ "$verb" != watch ]; then
        # A restore goes on where nobody hears its answer.
        trap '' PIPE HUP
        trap 'printf "end\t%s\n" "$?"' EXIT
    fi
    "do_$verb" "$@"
    exit
}
