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

short_sleep() {
    sleep 0.1 2>/dev/null || sleep 1
}

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

unflushed() {
    echo "the disk does not take what is to stay (sync failed). $1" >&2
    exit 73
}
