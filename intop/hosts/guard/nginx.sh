# -- nginx -----------------------------------------------------------------------------------------

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
