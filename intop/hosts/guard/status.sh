# -- how it stands ---------------------------------------------------------------------------------

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
