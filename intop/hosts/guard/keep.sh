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

# Ends a session whose keep has died when its values had come to stay: what is set from now on would
# stay, too, and no record would know of it. Called when no write is under way.
end_kept() {
    [ -e "$lock/input" ] && find_applied && line_of "$applied/token" && [ "$line" = "$token" ] || return 0
    release
    echo "the values of this session were kept already: it is over" >&2
    exit 76
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
