# -- nginx and its files ---------------------------------------------------------------------------
#
# A part of guard.sh, which has it in place of a line. nginx's files are in a session's folder as
# `files`, a line of SHA-256, two blanks and path for each as it was found, and `file.N`, a copy of
# the N-th with its mode and owner. `wrote` and `writing` have such lines, too: what our last write
# left, and what one that has begun leaves. `nginx` is what gives nginx its own configuration back:
# `reload`, `restart`, or `own` where it has that; `needs` the same for files that could not be
# restored with the others. `master` is the title of its first process, the file of its program, and
# the folder in which it was started, a line each; `acting` the ID of a restart that is under way.
#
# Beside each file that a session changes lies `.intop.NAME.TOKEN`, a copy of what was found: a
# restore is a rename, which needs no room on a full disk. nginx includes no name that begins with a
# dot. Another one with `.new` is a text on its way.

# Looks for root's nginx with a title like $1: its process in `master`, those that serve in `workers`,
# those that only end what they have in `draining`, and in `stopped` which of them stand still. Fails
# when there is none, with 2 for several.
look_at_nginx() {
    masters=
    children=
    case $- in *f*) globbing=-f ;; *) globbing=+f ;; esac
    set +f
    for each in /proc/[0-9]*; do
        { IFS='' read -r name < "$each/comm"; } 2>/dev/null || continue
        [ "$name" = nginx ] || continue
        # Anybody can start thousands of them, with titles without end. So those that are neither root's
        # nor children of root's cost no process, and nobody reads their titles.
        look_at_parent "$each" || continue
        children=$children$parent:$group:$state:${each#/proc/}$newline
        is_roots "$each" && look_at_server "$each" nginx && [ -z "$doubt" ] || continue
        read_title "$each"
        is_still "$each" || continue
        case $title in 'nginx: master process '*) masters=$masters${each#/proc/}:$title$newline ;; esac
    done
    set "$globbing"
    look_ifs=$IFS
    IFS=$newline
    master=
    several=
    for each in $masters; do
        [ -z "$master" ] || several=yes
        master=$each
    done
    if [ -n "$several" ]; then
        several=0
        for each in $masters; do
            [ "${each#*:}" = "$1" ] || continue
            master=$each
            several=$((several + 1))
        done
    fi
    master_title=${master#*:}
    master=${master%%:*}
    # A worker is in its master's process group, which no process of another session can join.
    group=
    [ -z "$master" ] || look_at_parent "/proc/$master" || :
    workers=
    draining=
    stopped=
    for each in $children; do
        case $each in "$master:$group:"*) ;; *) continue ;; esac
        read_title "/proc/${each##*:}"
        case $title in
        'nginx: worker process') workers=$workers${each##*:}$newline ;;
        'nginx: worker process is shutting down') draining=$draining${each##*:}$newline ;;
        esac
        case $each in *:[Tt]:*) stopped=$stopped${each##*:}$newline ;; esac
    done
    IFS=$look_ifs
    case $several in '' | 1) [ -n "$master" ] ;; *) return 2 ;; esac
}

# The parent, process group and state (a letter) of process folder $1.
look_at_parent() {
    { IFS='' read -r stat < "$1/stat"; } 2>/dev/null || return 1
    stat=${stat##*') '}
    state=${stat%% *}
    stat=${stat#* }
    parent=${stat%% *}
    stat=${stat#* }
    group=${stat%% *}
}

# The title of process folder $1 in `title`. It has no line end.
read_title() {
    title=
    { IFS='' read -r title < "$1/cmdline"; } 2>/dev/null || :
    while :; do case $title in *' ') title=${title%' '} ;; *) break ;; esac; done
}

# Calls the nginx with `was_title`, `was_program` and `was_folder`, with $1: -t or -T.
ask_nginx() (
    if [ -z "$was_program" ]; then
        # An older version has noted the title alone.
        title=${was_title#nginx: master process }
        was_program=$(PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/local/nginx/sbin && command -v "${title%% *}")
    elif [ -n "${master-}" ] && [ ! -e "$was_program" ]; then
        # A package has put it elsewhere since.
        was_program=$(readlink "/proc/$master/exe")
    fi
    if ! is_roots_program "$was_program" ""; then
        echo "its program can't be called as root: others can change it, or it is gone: $was_program"
        exit 1
    fi
    folder=$was_folder
    cd "$folder" 2>/dev/null || cd /
    if command -v timeout >/dev/null 2>&1; then
        call_nginx "$was_program" "$was_title" "$1" timeout 10
    else
        call_nginx "$was_program" "$was_title" "$1"
    fi
)

# What the session of folder $1 has noted of its nginx in `was_title`, `was_program`, `was_folder`.
recall_nginx() {
    was_title=
    was_program=
    was_folder=
    { IFS='' read -r was_title && IFS='' read -r was_program && IFS='' read -r was_folder; } 2>/dev/null < "$1/master"
}

# In one line, the end of what nginx said in $1.
in_a_line() {
    printf '%s' "$1" | tail -n 4 | tr "$newline$tab" '; ' | cut -c 1-400
}

# Has nginx read its files by $2 (reload or restart), of the session in folder $1, and fails with
# `why` in words when it does not have their configuration then. Old workers are waited for as long
# as $3 s.
activate() {
    recall_nginx "$1"
    how=$2
    wait_for_restart "$1"
    look_at_nginx "$was_title"
    case $? in
    1)
        # After a boot it reads its files when it starts.
        [ -z "$anew" ] || return 0
        # Whoever restarted it has died over that.
        how=restart
        ;;
    2)
        why="several nginx run here, and none alone is the one that was found"
        return 1
        ;;
    esac
    accepted_by_nginx || return 1
    if [ "$how" = restart ]; then
        restart_nginx "$1" || return 1
    else
        reload_nginx || return 1
    fi
    look_at_clock
    patience=$((uptime + ${3:-0}))
    while [ -n "$draining" ] && [ "$uptime" -lt "$patience" ]; do
        short_sleep
        look_at_clock
        look_at_nginx "$was_title" || break
    done
}

# Whether nginx takes its files, as a restart would find them; else fails with `why`.
accepted_by_nginx() {
    why=$(ask_nginx -t 2>&1) && return 0
    if [ "$?" = 124 ]; then
        why="nginx -t has not ended after 10 s"
        return 1
    fi
    why="nginx refuses its files: $(in_a_line "$why")"
    return 1
}

# Waits a while for a restart of folder $1 that its writer did not live to see the end of.
wait_for_restart() {
    line_of "$1/acting" && [ -n "$line" ] || return 0
    acting=$line
    look_at_clock
    patience=$((uptime + 15))
    while at_work "$acting"; do
        look_at_clock
        [ "$uptime" -le "$patience" ] || return 0
        short_sleep
    done
    wait_for_workers "" 5
}

# Waits for nginx and a worker that is none of the lines $1, and for the end of those; fails after $2 s.
# A daemon shows itself a moment after the command that started it has ended, and before it has workers
# a signal may be lost on it. A worker that its user has stopped hears that it is to end when it goes on.
wait_for_workers() {
    look_at_clock
    patience=$((uptime + $2))
    while :; do
        if look_at_nginx "$was_title" && [ -n "$workers" ]; then
            left_old=
            fresh=
            wait_ifs=$IFS
            IFS=$newline
            for each in $workers; do
                case $newline$1 in
                *"$newline$each$newline"*) case $newline$stopped in *"$newline$each$newline"*) ;; *) left_old=yes ;; esac ;;
                *) fresh=yes ;;
                esac
            done
            IFS=$wait_ifs
            [ -n "$left_old" ] || [ -z "$fresh" ] || return 0
        fi
        look_at_clock
        [ "$uptime" -le "$patience" ] || return 1
        short_sleep
    done
}

restart_nginx() {
    command=$(cat "$1/restart" 2>/dev/null)
    if [ -z "$command" ]; then
        why="nginx has to be restarted, and nobody said by which command"
        return 1
    fi
    olds=$workers
    # No answer waits for what a server holds open, and none has our priority when memory runs out.
    said=$lists/said.$me
    { true > "$said"; } 2>/dev/null || said=/dev/null
    {
        { echo 0 > /proc/self/oom_score_adj; } 2>/dev/null
        exec sh -c "$command"
    } < /dev/null > "$said" 2>&1 &
    started=$!
    if identify "$started"; then { printf '%s\n' "$process" > "$1/acting"; } 2>/dev/null; fi
    look_at_clock
    patience=$((uptime + 60))
    while identify "$started"; do
        look_at_clock
        if [ "$uptime" -gt "$patience" ]; then
            why="within 60 s this did not end: $(in_a_line "$command")"
            return 1
        fi
        sleep 0.02 2>/dev/null || sleep 1
    done
    wait "$started"
    code=$?
    words=$(in_a_line "$(cat "$said")")
    [ "$said" = /dev/null ] || rm -f "$said"
    why=
    short=$(in_a_line "$command")
    if [ "$code" != 0 ]; then
        why="exit code $code of $short: $words"
    elif ! wait_for_workers "$olds" 5; then
        why="no nginx serves after $short"
        [ -z "$workers" ] || why="nginx still has the workers from before $short"
    fi
    overwrite "$1/acting" ""
    [ -z "$why" ]
}

reload_nginx() {
    olds=$workers
    kill -HUP "$master" 2>/dev/null
    wait_for_workers "$olds" 10 && return 0
    why="nginx was told to reload, and its workers are still the old ones: see its error log"
    return 1
}

# All to the next heading is called with `set -f` and IFS=$newline.

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
