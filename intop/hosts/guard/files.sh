# -- nginx's files ---------------------------------------------------------------------------------
#
# They are in a session's folder as `files`, a line of SHA-256, two blanks and path for each as it was
# found, and `file.N`, a copy of the N-th with its mode and owner. `wrote` and `writing` have such
# lines, too: what our last write left, and what one that has begun leaves. `nginx` is what gives nginx
# its own configuration back: `reload`, `restart`, or `own` where it has that; `needs` the same for
# files that could not be restored with the others. `master` is the title of its first process, the
# file of its program, and the folder in which it was started, a line each; `acting` the ID of a
# restart that is under way.
#
# Beside each file that a session changes lies `.intop.NAME.TOKEN`, a copy of what was found: a
# restore is a rename, which needs no room on a full disk. nginx includes no name that begins with a
# dot. Another one with `.new` is a text on its way.
#
# All of this is called with `set -f` and IFS=$newline.

# Prints a line as in `files` for each path of the lines $1 that is a file now.
sums_of() {
    of_these=
    for each in $1; do of_these=$of_these${each#*'  '}$newline; done
    # shellcheck disable=SC2086
    [ -z "$of_these" ] || sha256sum -- $of_these 2>/dev/null
}

# The names beside path $1 of the session $2: of the copy that a restore takes in `spare`, and of a
# text on its way in `draft`.
name_beside() {
    spare=${1%/*}/.intop.${1##*/}.$2
    draft=$spare.new
}

# Makes `draft` from copy $1: with its mode and owner, and the text of standard input where $2 is given.
make_draft() {
    rm -f "$draft" && cp -p "$1" "$draft" && { [ -z "${2-}" ] || base64 -d > "$draft"; } &&
        [ "$(stat -c '%a %u %g' "$draft")" = "$(stat -c '%a %u %g' "$1")" ]
}

# What somebody else has changed of the files of folder $1 in `strange_files`, as lines of `files`;
# what all of them are now in `sums`. Without $2 also what is as it was found, and not as we left it.
look_for_strange_files() {
    found=$(cat "$1/files")
    line_of "$1/wrote" || line=
    known=$newline$(cat "$1/wrote" "$1/writing" 2>/dev/null)$newline
    [ -n "$line" ] && [ -z "${2-}" ] || known=$known$found$newline
    sums=$newline$(sums_of "$found")$newline
    unknown=$newline
    for each in $sums; do
        case $known in *"$newline$each$newline"*) ;; *) unknown=$unknown${each#*'  '}$newline ;; esac
    done
    strange_files=
    for line in $found; do
        case $sums in
        *"  ${line#*'  '}$newline"*) case $unknown in *"$newline${line#*'  '}$newline"*) ;; *) continue ;; esac ;;
        esac
        strange_files=$strange_files$line$newline
    done
}

# The N-th line of the lines $2 in `line`; fails when there is none.
nth() {
    at=0
    for line in $2; do
        at=$((at + 1))
        [ "$at" != "$1" ] || return 0
    done
    return 1
}

# Restores nginx's files of folder $1, and nginx's configuration; prints a line for what is not back,
# and puts that into `less_files` and `less_nginx`. Fails when there is any.
restore_files() {
    less_files=
    less_nginx=
    [ -e "$1/nginx" ] || return 0
    line_of "$1/token" || line=none
    of=$line
    found=$(cat "$1/files")
    # A rename that is under way has happened then, or does not.
    for line in $found; do
        name_beside "${line#*'  '}" "$of"
        rm -f "$draft"
    done 2>/dev/null
    look_for_strange_files "$1" before
    number=0
    changed_folders=
    done_files=
    for line in $found; do
        number=$((number + 1))
        target=${line#*'  '}
        name_beside "$target" "$of"
        case $sums in *"$newline$line$newline"*)
            done_files=$done_files$target$newline
            continue
            ;;
        esac
        if [ "$force" != force ]; then
            case $newline$strange_files in *"$newline$line$newline"*)
                less_files=$less_files$number$newline
                printf 'unrestored\t%s\t%s\t%s\n' "$target" "somebody else has changed it, so it was left alone" \
                    "sh $dir/guard.sh $dir rollback force"
                continue
                ;;
            esac
        fi
        if put_file "$1/file.$number"; then
            done_files=$done_files$target$newline
            changed_folders=$changed_folders${target%/*}$newline
            [ "$verb" != rollback ] || printf 'restored\t%s\t%s\n' "$target" "as it was found"
        else
            less_files=$less_files$number$newline
            printf 'unrestored\t%s\t%s\t%s\n' "$target" "it can't be written: is its folder read-only, or the disk full?" \
                "sh $dir/guard.sh $dir rollback"
        fi
    done
    # shellcheck disable=SC2086
    [ -z "$changed_folders" ] || flush $changed_folders ||
        report "what was restored of nginx's files can't be brought to the disk (sync failed): look at them after a power failure"
    line_of "$1/nginx" || line=restart
    by=$line
    # It has what the others say, and not yet what this one does.
    if [ "$by" = own ] && [ -n "$changed_folders" ]; then
        line_of "$1/needs" || line=reload
        by=$line
    fi
    if [ "$by" != own ]; then
        if activate "$1" "$by" 0; then
            [ "$how" != restart ] || printf 'nginx\trestarted\n'
            overwrite "$1/nginx" own
        else
            less_nginx=$by
            # Words of nginx may have anything in them.
            printf 'unrestored\tnginx\t%s\t%s\n' "it may not serve with the files on its disk: $why" \
                "sh $dir/guard.sh $dir rollback"
        fi
    fi
    for target in $done_files; do
        name_beside "$target" "$of"
        printf '%s\n' "$spare" "$draft"
    done | drop_names
    [ -z "$less_files$less_nginx" ]
}

# Removes what lies beside the files of folder $1.
drop_beside() (
    [ -e "$1/nginx" ] && line_of "$1/token" || exit 0
    of=$line
    set -f
    IFS=$newline
    for line in $(cat "$1/files"); do
        name_beside "${line#*'  '}" "$of"
        printf '%s\n' "$spare" "$draft"
    done | drop_names
)

# Says what of the lock's files somebody else has changed, and fails when there is any. What was put
# back as it was found, the next write takes as that.
tell_strange_files() {
    look_for_strange_files "$lock"
    [ -n "$strange_files" ] || return 0
    all_own=yes
    for line in $strange_files; do
        is=changed
        case $sums in
        *"$newline$line$newline"*) is="as it was found" ;;
        *) all_own= ;;
        esac
        printf 'foreign\t%s\t%s\t%s\t%s\n' "${line#*'  '}" "as intop left it" "$is" "sh $dir/guard.sh $dir rollback force"
    done
    [ -z "$all_own" ] || settle_wrote
    return 1
}

# Removes the files of standard input.
drop_names() {
    set --
    while IFS='' read -r each; do set -- "$@" "$each"; done
    [ "$#" = 0 ] || rm -f "$@" 2>/dev/null
}

# Gives `target` what copy $1 has, by the one that lies beside it if that is whole, else by another.
put_file() {
    {
        [ -e "$spare" ] && cmp_files "$spare" "$1" && mv -T "$spare" "$target" && return 0
        rm -f "$spare"
        make_draft "$1" && flush "$draft" && mv -T "$draft" "$target"
    } 2>/dev/null && return 0
    rm -f "$draft" 2>/dev/null
    return 1
}

# Whether two files have the same text, mode and owner.
cmp_files() {
    [ "$(stat -c '%a %u %g' "$1")" = "$(stat -c '%a %u %g' "$2")" ] &&
        [ "$(sha256sum < "$1")" = "$(sha256sum < "$2")" ]
}

# Makes in $2 what is left to do of the files and the nginx of folder $1.
keep_less_files() {
    [ -n "$less_files$less_nginx" ] || return 0
    found=$(cat "$1/files")
    true > "$2/files" || return 1
    to=0
    for number in $less_files; do
        nth "$number" "$found" || return 1
        to=$((to + 1))
        printf '%s\n' "$line" >> "$2/files" && cp -p "$1/file.$number" "$2/file.$to" || return 1
    done
    [ "$by" = own ] || printf '%s\n' "$by" > "$2/needs" || return 1
    for each in wrote writing master restart needs; do
        [ ! -e "$1/$each" ] || cat "$1/$each" > "$2/$each" || return 1
    done
    line=own
    [ -z "$less_nginx" ] || line=$less_nginx
    printf '%s\n' "$line" > "$2/nginx"
}

# Puts into the record $1 what a rollback needs of the lock's files, where nginx has others than its
# own. Fails when there is no room.
record_files() (
    [ -e "$lock/nginx" ] && line_of "$lock/nginx" && [ "$line" != own ] || exit 0
    less_nginx=$line
    by=$line
    less_files=
    at=0
    found=$(cat "$lock/files")
    sums=$newline$(sums_of "$found")$newline
    for line in $found; do
        at=$((at + 1))
        case $sums in *"$newline$line$newline"*) ;; *) less_files=$less_files$at$newline ;; esac
    done
    keep_less_files "$lock" "$1" || exit 1
    asked=$(sed -n "s/^directive$tab//p" "$lock/input")
    printf '%s\n' "$asked" > "$1/directives" && [ "$(cat "$1/directives")" = "$asked" ] || exit 1
    set +f
    flush "$1"/file.* "$1/files" "$1/wrote" "$1/master" "$1/restart" "$1/needs" "$1/nginx" "$1/directives"
)

# Prints what stays of nginx by record $1: its directives, and what has become of each file.
tell_staying_files() {
    [ -e "$1/nginx" ] || return 0
    sed "s/^/directive$tab/" "$1/directives"
    look_for_strange_files "$1" before
    for line in $found; do
        target=${line#*'  '}
        state=ours
        case $sums in *"$newline$line$newline"*) state=own ;; esac
        case $newline$strange_files in *"$newline$line$newline"*) state=edited ;; esac
        [ -e "$target" ] || state=missing
        printf 'nginx-file\t%s\t%s\n' "$target" "$state"
    done
}

# Prints what of nginx is not as folder $1 has found it.
tell_files() {
    [ -e "$1/nginx" ] || return 0
    look_for_strange_files "$1" before
    for line in $found; do
        case $sums in *"$newline$line$newline"*) continue ;; esac
        what="as a session of intop has written it"
        case $newline$strange_files in *"$newline$line$newline"*) what="changed by somebody else" ;; esac
        printf 'key\t%s\t%s\t%s\n' "${line#*'  '}" "as it was found" "$what"
    done
    line_of "$1/nginx" || line=
    case $line in reload | restart) printf 'key\tnginx\t%s\t%s\n' "its own configuration" "that of a session of intop, until its $line" ;; esac
}
