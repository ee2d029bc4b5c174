# What `show` prints, or what `check` says against it, of each server of the network namespace whose
# program is one of $names: by $work, which is show_each or check_each. servers/NAME.sh defines both.
@trust.sh@
PATH=$PATH:/usr/sbin:/usr/local/sbin
value() { # what follows the option $1 of the server
    printf '%s\n' "$words" | sed -n "/^$1\$/{n;p;}; s/^$1=//p" | head -n 1
}
of_process() { # its lines: what is a user's may have no end, and take as long as he likes
    timeout -k 1 1 head -c 1000000 "$process/$1" | tr '\0' '\n'
}
on() { # where the server's files are, which may be a container's, and with its user's rights
    if [ -n "$runs_as" ]; then
        as_user "$@"
    elif [ "$process/ns/mnt" -ef /proc/self/ns/mnt ]; then
        timeout 10 "$@" < /dev/null
    else
        timeout 10 nsenter -t "${process#/proc/}" -m -- "$@" < /dev/null
    fi
}
in_time() { # whether there is time left for what belongs to others than root
    read -r now _ < /proc/uptime
    [ -z "$runs_as" ] || [ "${now%%.*}" -lt "$until" ]
}
as_user() { # what it prints goes through a file: nobody waits for what it leaves running
    in_time && answer=$(mktemp) || return
    user=${runs_as% *}
    group=${runs_as#* }
    (
        exec < /dev/null > "$answer"
        case $work in check_each) exec 2>&1 ;; *) exec 2> /dev/null ;; esac
        # He may be elsewhere by now, with files of his own for set-id programs of root's.
        if [ "$process/ns/mnt" -ef /proc/self/ns/mnt ]; then
            set -- --reuid "$user" --regid "$group" --clear-groups -- "$@"
        else
            set -- -- nsenter -t "${process#/proc/}" -m -S "$user" -G "$group" -- "$@"
        fi
        set -- setpriv --no-new-privs "$@"
        exec env -i PATH="$PATH" timeout -k 1 10 "$@"
    )
    code=$?
    head -c 1000000 "$answer"
    rm -f "$answer"
    return "$code"
}
head_of() { echo "# configuration file $1:"; }
file() { head_of "$1" && on cat "$1"; }
show_each() {
    echo nginx_conf
    show
}
check_each() {
    said=$(check 2>&1) || {
        said=$(printf '%s' "$said" | tail -n 3 | tr '\n' ' ')
        printf 'refused %s %s\n' "${runs_as%% *}" "$said"
    }
}
is_named() { # whether $1 is one of $names
    for program_name in $names; do
        [ "$1" != "$program_name" ] || return 0
    done
    return 1
}
each() { # does the work for processes of root's, or for a few of others where $1 is given
    looked_into=0
    read -r now _ < /proc/uptime
    until=$((${now%%.*} + limit))
    for process in /proc/[0-9]*; do
        read -r name < "$process/comm" || continue
        is_named "$name" || continue
        [ -n "${1-}" ] || is_roots "$process" || continue
        look_at_server "$process" "$names" && [ -z "$doubt" ] && in_time || continue
        parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$process/status")
        # One that another process of the server has started is its worker.
        ! { read -r name < "/proc/$parent/comm" && is_named "$name"; } || continue
        words=$(of_process cmdline)
        variables=$(of_process environ)
        is_still "$process" || continue
        looked_into=$((looked_into + 1))
        [ "$looked_into" -le "${1:-1000}" ] || break
        "$work"
    done 2>/dev/null
    [ "$looked_into" != 0 ]
}
each || each "$most"
:
