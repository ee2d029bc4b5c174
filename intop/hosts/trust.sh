# -- what root may trust on a host -----------------------------------------------------------------
#
# guard.sh and whatever else runs as root has this text in place of a line: which folders and programs
# root alone can change, and which processes are a server that root has started. Anybody on a host can
# start a process with a server's name, title, user and mount namespace. So a process counts only where
# root alone can change its program, and what is called by the words of its title has no more rights
# than its user. All of this works with any IFS, and with set -f.

# Prints `UID GID MODE PATH`, the mode in hexadecimal, for file $1 and each folder above it. $2 is the
# folder that is / for it: /proc/PID/root, or nothing.
list_way() (
    case $1 in /*) ;; *) exit 1 ;; esac
    there=${1%/}
    root=$2
    set --
    while [ -n "$there" ]; do
        set -- "$@" "$root$there"
        there=${there%/*}
    done
    stat -c '%u %g %f %n' "$@" "$root/" 2>/dev/null
)

# Whether $1 has an access list. What that gives to others stands in the place of the group's rights.
has_access_list() {
    case $(ls -ld "$1" 2>/dev/null) in ??????????+*) ;; *) return 1 ;; esac
}

# Succeeds where root alone can change program $1: it and all folders above it are root's, and nobody
# else may write there. One with a set-id bit doesn't count, since it gives its rights to any user.
# $2 as above.
is_roots_program() (
    listed=$(list_way "$1" "$2") || exit 1
    kind=0100000
    while IFS=' ' read -r uid gid mode there; do
        mode=$((0x$mode))
        [ "$uid" = 0 ] && [ "$((mode & 0170000))" = "$((kind))" ] && [ "$((mode & 02))" = 0 ] || exit 1
        [ "$((mode & 020))" = 0 ] || { [ "$gid" = 0 ] && ! has_access_list "$there"; } || exit 1
        [ "$kind" = 0040000 ] || [ "$((mode & 06000))" = 0 ] || exit 1
        kind=0040000
    done <<LISTED
$listed
LISTED
)

# Prints why others than root can change what is in folder $1, in words, or nothing. A folder such as
# /tmp, where nobody can move what is another's, may be above it. A part of it may be still to be made.
# User $2 may own folders, too, if it is given: $3 is what he and root are called. Else the group root
# may write there.
tell_others_folder() (
    there=${1%/}
    above=
    while [ -n "$there" ] && [ ! -e "$there" ] && [ ! -L "$there" ]; do
        there=${there%/*}
        above=yes
    done
    listed=$(list_way "$there/" "") || {
        echo "$there can't be looked at"
        exit 0
    }
    while IFS=' ' read -r uid gid mode there; do
        mode=$((0x$mode))
        writers=$((mode & 022))
        if [ "$writers" = 16 ] && [ -z "${2-}" ] && [ "$gid" = 0 ]; then
            has_access_list "$there" || writers=0
        fi
        case $((mode & 0170000)) in
        $((0040000))) ;;
        $((0120000)))
            echo "$there is a symbolic link"
            exit 0
            ;;
        *)
            echo "$there: it is no folder"
            exit 0
            ;;
        esac
        if [ "$uid" != 0 ] && [ "$uid" != "${2:-0}" ]; then
            echo "$there: it belongs to user $uid, and not to ${3:-root}"
            exit 0
        fi
        if [ "$writers" != 0 ] && { [ -z "$above" ] || [ "$((mode & 01000))" = 0 ]; }; then
            printf "%s: others can change what is in it (mode %o)\n" "$there" "$((mode & 07777))"
            exit 0
        fi
        above=yes
    done <<LISTED
$listed
LISTED
)

# The real, effective, saved and file system ids of process folder $1 in `ids`: users, then groups.
look_at_ids() {
    ids=
    while IFS='	 ' read -r field a b c d _; do
        case $field in
        Uid:) ids="$a $b $c $d" ;;
        Gid:)
            ids="$ids $a $b $c $d"
            return 0
            ;;
        esac
    done 2>/dev/null < "$1/status"
    return 1
}

# Whether process folder $1 has the rights of root alone. This starts no process, and reads nothing
# that a process can make endless: title and environment are its memory, which may be slow on purpose.
is_roots() {
    look_at_ids "$1" && [ "${ids%"${ids#* * * * }"}" = "0 0 0 0 " ]
}

# Whether process folder $1 is in our user namespace; a kernel may have none.
is_of_our_users() {
    [ "$1/ns/user" -ef /proc/self/ns/user ] || [ ! -e /proc/self/ns/user ]
}

# Succeeds where process folder $1 is in our network and user namespace, and runs a program that is
# called one of the words $2, such as nginx or nginx-debug. Its file is `program` then; `runs_as` is
# empty for a process of root's, else `UID GID`; `doubt` is empty where root alone can change the file.
# Its title is to be read after this, and before is_still().
look_at_server() {
    exe=$(readlink "$1/exe" 2>/dev/null) || return 1
    program=${exe%" (deleted)"}
    case $program in *"
"*) return 1 ;; esac
    doubt=${program##*/}
    case " $2 " in *" ${doubt%%[!a-z0-9]*} "*) ;; *) return 1 ;; esac
    [ "$1/ns/net" -ef /proc/self/ns/net ] && is_of_our_users "$1" || return 1
    runs_as=
    doubt=
    if ! is_roots "$1"; then
        [ -n "$ids" ] || return 1
        runs_as="$(first_of_others "${ids% * * * *}") $(first_of_others "${ids#* * * * }")"
    fi
    looked_at=$ids
    root=$1/root
    ! [ "$1/ns/mnt" -ef /proc/self/ns/mnt ] || root=
    is_roots_program "$program" "$root" || doubt="runs $program, which others than root can change"
}

# Prints the first of four ids $1 that is not root's.
first_of_others() {
    others=$1
    while :; do
        case $others in
        '0 '*) others=${others#0 } ;;
        *) break ;;
        esac
    done
    printf '%s\n' "${others%% *}"
}

# Whether process folder $1 is as look_at_server() has seen it: no other program has run there since.
is_still() {
    [ "$(readlink "$1/exe" 2>/dev/null)" = "$exe" ] && look_at_ids "$1" && [ "$ids" = "$looked_at" ]
}

# Calls nginx's program $1 with the options of title $2, and with $3: -t or -T. What follows stands
# before it. A title has a blank between two words, so a path with blanks ends at the next option. A
# relative -p is in `folder`, where nginx was started: what it shows has whole paths then.
call_nginx() (
    set -f
    options=$2
    what=$3
    nginx=$1
    shift 3
    set -- "$@" "$nginx" "$what" -q
    case $options in *' -'*) options=-${options#* -} ;; *) options= ;; esac
    while [ -n "$options" ]; do
        option=${options%% -[epcgtTqsvVh?]*}
        options=${options#"$option"}
        options=${options# }
        # Letters without a value may stand before one that has one, as in -qc.
        while :; do case $option in -[tTqvVh?]?*) option=-${option#-?} ;; *) break ;; esac done
        case $option in -[epcg]*)
            value=${option#-?}
            value=${value# }
            while :; do case $value in *' ') value=${value% } ;; *) break ;; esac done
            case $option in -p*) case $value in /*) ;; *) value=$folder/$value ;; esac ;; esac
            set -- "$@" "${option%"${option#-?}"}" "$value"
            ;;
        esac
    done
    exec "$@" < /dev/null
)
