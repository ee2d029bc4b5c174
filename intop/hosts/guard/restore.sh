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

# How many sessions are not fully restored in `remaining`; fails when there is none.
count_unrestored() {
    remaining=0
    for old in "$dir"/unrestored.*; do
        [ ! -d "$old" ] || remaining=$((remaining + 1))
    done
    [ "$remaining" != 0 ]
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
