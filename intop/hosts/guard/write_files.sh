# -- what a session writes to nginx's files --------------------------------------------------------
#
# All of this is called with `set -f` and IFS=$newline.

# Puts the files with the names $1 into the snapshot of the lock. Fails with 1 for a folder that has
# no room, with 2 when `why` says what is wrong with them.
take_files() {
    look_at_nginx ""
    case $? in
    1) why="no nginx runs in the network namespace whose keys are set" ;;
    2) why="several nginx run here: its files can be guarded where one does" ;;
    *) why= ;;
    esac
    [ -z "$why" ] || return 2
    was_title=$master_title
    was_program=$(readlink "/proc/$master/exe")
    was_program=${was_program%" (deleted)"}
    was_folder=$(readlink "/proc/$master/cwd")
    if ! why=$(ask_nginx -t 2>&1); then
        why="nginx refuses its files as they are: $(in_a_line "$why")"
        return 2
    fi
    targets=
    names=
    count=0
    for name in $1; do
        target=$(readlink -f "$name") && [ -f "$target" ] || {
            why="$name is no file"
            return 2
        }
        case $target in *[!" "-~]* | *\\*)
            why="$name: a path like this can't be guarded"
            return 2
            ;;
        esac
        # Whoever can change the folder can have root write elsewhere, by a link in a file's place.
        why=$(tell_others_folder "${target%/*}/")
        if [ -n "$why" ]; then
            why="$target can't be guarded: $why. Make that folder root's alone, or tune the kernel only"
            return 2
        fi
        at=0
        for each in $targets; do
            at=$((at + 1))
            [ "$each" != "$target" ] || break
            [ "$at" != "$count" ] || at=0
        done
        if [ "$at" = 0 ]; then
            if [ "$(stat -c %h "$target")" != 1 ]; then
                why="$target has several names (hard links), which a change would part"
                return 2
            fi
            # Another mount namespace alone says nothing: a lab's hosts have one each.
            if ! [ "/proc/$master/root$target" -ef "$target" ]; then
                why="$target is another file for nginx, which runs in a container"
                return 2
            fi
            count=$((count + 1))
            at=$count
            targets=$targets$target$newline
            cp -p "$target" "$lock/file.$count" 2>/dev/null || return 1
        fi
        names=${names}file$tab$at$tab$name$newline
    done
    copies=
    at=0
    while [ "$at" != "$count" ]; do
        at=$((at + 1))
        copies=$copies$lock/file.$at$newline
    done
    # shellcheck disable=SC2086
    sums=$(sha256sum -- $targets) && copied=$(sha256sum -- $copies) || return 1
    if [ "$(printf '%s\n' "$sums" | cut -d ' ' -f 1)" != "$(printf '%s\n' "$copied" | cut -d ' ' -f 1)" ]; then
        why="somebody is changing nginx's files just now"
        return 2
    fi
    keep files "$sums" && [ "$(cat "$lock/files")" = "$sums" ] && keep master "$was_title$newline$was_program$newline$was_folder" &&
        keep wrote "" && keep writing "" && keep nginx own || return 1
    # shellcheck disable=SC2086
    flush $copies "$lock/files" "$lock/master" "$lock/nginx" "$lock/restart" || return 1
}

# Prints the names and the texts of what take_files() has taken.
show_files() {
    printf '%s' "$names"
    at=0
    while [ "$at" != "$count" ]; do
        at=$((at + 1))
        printf 'content\t%s\t%s\n' "$at" "$(base64 < "$lock/file.$at" | tr -d '\n')"
    done
}

# Writes the lines $1 to files of the lock: "/N SUM TEXT" gives the N-th a text in base64 with this
# SHA-256, "/N own" what it was found with. Fails with 3 when they are all so already.
write_files() (
    found=$(cat "$lock/files")
    flying=
    plan=
    folders=
    drafts=
    spares=
    sums=$newline$(sums_of "$found")$newline
    for line in $1; do
        number=${line%% *}
        number=${number#/}
        rest=${line#* }
        nth "$number" "$found" || {
            echo "no file of this session has the number $number" >&2
            exit 1
        }
        target=${line#*'  '}
        wanted=${rest%% *}
        [ "$rest" != own ] || wanted=${line%%' '*}
        case $sums in *"$newline$wanted  $target$newline"*) continue ;; esac
        name_beside "$target" "$token"
        if [ "$rest" = own ]; then
            if ! { [ -e "$spare" ] && cmp_files "$spare" "$lock/file.$number"; }; then
                { make_draft "$lock/file.$number" && mv -T "$draft" "$spare"; } 2>/dev/null || no_file "$spare"
                spares=$spares$spare$newline
            fi
            plan=$plan$spare$newline$target$newline
        else
            if ! [ -e "$spare" ]; then
                { make_draft "$lock/file.$number" && mv -T "$draft" "$spare"; } 2>/dev/null || no_file "$spare"
                spares=$spares$spare$newline
            fi
            printf '%s' "${rest#* }" | make_draft "$lock/file.$number" text 2>/dev/null || no_file "$draft"
            [ "$(sha256sum < "$draft")" = "$wanted  -" ] || no_file "$draft"
            drafts=$drafts$draft$newline
            plan=$plan$draft$newline$target$newline
        fi
        flying=$flying$wanted'  '$target$newline
        folders=$folders${target%/*}$newline
    done
    [ -n "$plan" ] || exit 3
    # shellcheck disable=SC2086
    [ -z "$drafts$spares" ] || flush $drafts $spares $folders || unflushed "Nothing more is set"
    line_of "$lock/nginx"
    {
        printf '%s' "$flying" >> "$lock/writing" &&
            { [ "$line" = restart ] || overwrite "$lock/nginx" "$2"; } && flush "$lock/writing" "$lock/nginx"
    } 2>/dev/null || unwritable "Nothing more is set"
    from=
    for each in $plan; do
        if [ -z "$from" ]; then
            from=$each
            continue
        fi
        mv -T "$from" "$each" 2>/dev/null || no_file "$each"
        from=
    done
    # shellcheck disable=SC2086
    flush $folders || unflushed "What was set can't be kept there"
    settle_wrote
)

# Notes what our files are now, after a write.
settle_wrote() {
    {
        sums_of "$(cat "$lock/files")" > "$lock/wrote.new" && mv "$lock/wrote.new" "$lock/wrote"
    } 2>/dev/null || unwritable "What was set can't be noted there"
    # Else a power failure may leave neither, and our own text would be a stranger's.
    flush "$lock/wrote" "$lock" || unflushed "What was set can't be noted there"
    { true > "$lock/writing"; } 2>/dev/null || unwritable "What was set can't be noted there"
}

no_file() {
    rm -f "$draft" 2>/dev/null
    echo "$1 can't be written: there is no room left, its folder is read-only, or what was sent was cut off. Nothing more is set" >&2
    exit 73
}

# Ends a write whose files nginx does not take, as `why` says. All of them are as they were found
# then; $1 is what it takes for nginx to be, too.
refuse_files() {
    refusal=$why
    owns=
    at=0
    for line in $(cat "$lock/files"); do
        at=$((at + 1))
        owns="$owns/$at own$newline"
    done
    write_files "$owns" reload
    case $? in 0 | 3) ;; *) exit 1 ;; esac
    if [ "$1" != own ] && ! activate "$lock" "$1" 0; then
        echo "$refusal. Nor does it go back to what it was found with: $why" >&2
        exit 1
    fi
    overwrite "$lock/nginx" own
    printf '%s\n' "$refusal" >&2
    exit 81
}

# Has nginx take its files by $1, waiting $2 s for old workers; says how many of those there are still,
# and what it shows then.
take_effect() {
    activate "$lock" "$1" "$2" || refuse_files "$1"
    [ "$(sums_of "$(cat "$lock/files")")" != "$(cat "$lock/files")" ] || overwrite "$lock/nginx" own
    at=0
    for each in $draining; do at=$((at + 1)); done
    [ "$at" = 0 ] || printf 'draining\t%s\n' "$at"
    tell_shown
}

# What the nginx of `was_title` shows.
tell_shown() {
    printf 'shown\t%s\n' "$(ask_nginx -T 2>/dev/null | base64 | tr -d '\n')"
}
