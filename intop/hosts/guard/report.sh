# -- what is told of a session that is over --------------------------------------------------------

# What there will be to report of the session in folder $1: `owner`, `since`, `why`, and `restart`
# where nginx may have opened sockets under its values.
tell_end() {
    owner=
    since=
    restart=
    rebooted=
    [ -e "$1/token" ] && line_of "$1/boot" || return 0
    find_age "$1"
    rebooted=$anew
    anew=
    [ -z "$rebooted" ] || [ -e "$1/nginx" ] || return 0
    { IFS='' read -r owner && IFS='' read -r since; } 2>/dev/null < "$1/owner"
    case $rebooted in
    yes) why="this host was started anew under the session of $owner since $since" ;;
    network) why="the network namespace of the session of $owner since $since is gone" ;;
    esac
    [ -z "$rebooted" ] || return 0
    why="whoever gave back the session of $owner since $since has died over it"
    [ ! -e "$1/left" ] || restart=$(cat "$1/restart" 2>/dev/null)
    # A report is a line.
    case $restart in *"$newline"*) restart="by the study's nginx_restart or server_restart" ;; esac
}

# Reports the end of a session that release() or put_back() has ended with $1.
report_end() {
    [ -n "$owner" ] || return 0
    who="the next command"
    case $verb in
    watch) who="its watchdog" ;;
    boot) who="its unit of systemd, before nginx was started" ;;
    esac
    result="was restored"
    [ "$1" != 1 ] || result="was NOT fully restored"
    [ "$1" != 4 ] || result="keeps what was applied, and was given back"
    report "$why; this host $result by $who"
    case $said in *"nginx${tab}restarted"*) restart= ;; esac
    [ -z "$restart" ] || [ "$1" = 4 ] ||
        report "the server keeps what its sockets got of a trial's values until it is restarted, as root: $restart"
}

# Leaves a line for the next session.
report() {
    { printf '%s: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" >> "$dir/report"; } 2>/dev/null || :
}

# Reports what restore() said of keys that are not back.
report_rest() {
    [ -n "$1" ] || return 0
    rest_ifs=$IFS
    IFS=$newline
    set -f
    for said_line in $1; do
        said_key=${said_line#*"$tab"}
        said_key=$(printf '%s' "${said_key%%"$tab"*}" | sed 's,/,.,g')
        case $said_line in
        nginx"$tab"*) ;;
        unrestored"$tab"/* | unrestored"${tab}nginx$tab"*)
            said_why=${said_line#*"$tab"*"$tab"}
            report "$(printf '%s' "$said_line" | cut -f 2): ${said_why%%"$tab"*}; to restore it, as root: ${said_line##*"$tab"}"
            ;;
        foreign"$tab"*) report "somebody else has changed $said_key, so it was left alone; to put it back, as root: ${said_line##*"$tab"}" ;;
        unrestored"$tab"*) report "could not be restored: $said_key; as root: ${said_line##*"$tab"}" ;;
        esac
    done
    set +f
    IFS=$rest_ifs
}
