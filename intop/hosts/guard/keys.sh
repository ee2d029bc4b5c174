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
