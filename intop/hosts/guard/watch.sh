# -- the watchdog, and the unit of the next start --------------------------------------------------

watched() {
    line_of "$lock/watchdog" && at_work "$line"
}

# Waits until the watchdog has said that it is at work; not for long when process $1 is gone.
wait_for_watchdog() {
    look_at_clock
    patience=$((uptime + 10))
    until watched; do
        look_at_clock
        [ -z "${1-}" ] || identify "$1" || [ "$patience" -lt $((uptime + 2)) ] || patience=$((uptime + 1))
        [ "$uptime" -le "$patience" ] || return 1
        short_sleep
    done
}

# A unit that is there already waits to be started anew: then it is. An nginx that the watchdog has
# restarted stays when its unit ends.
start_unit() {
    systemd-run --quiet --collect --unit="intop-guard-$token" --property=Restart=always \
        --property=RestartSec=1 --property=StartLimitIntervalSec=0 \
        --property=RestartPreventExitStatus=3 --property=SuccessExitStatus=3 --property=KillMode=process \
        sh "$here/$self" "$dir" watch "$token" || systemctl --quiet restart "intop-guard-$token"
}

# Whether systemd can start what is to work here. What it starts is in its own namespaces: a host
# that is only a network namespace has other keys.
has_systemd() {
    [ -d /run/systemd/system ] && [ /proc/1/ns/net -ef /proc/self/ns/net ] &&
        [ /proc/1/ns/mnt -ef /proc/self/ns/mnt ]
}

# systemd starts its unit again whatever ends it, and the unit outlives any login. Fails when there is
# no watchdog afterwards.
arm() {
    if has_systemd && start_unit </dev/null >/dev/null 2>&1 && wait_for_watchdog; then
        return 0
    fi
    apart=
    ! command -v setsid >/dev/null 2>&1 || apart=setsid
    nohup $apart sh "$here/$self" "$dir" watch "$token" </dev/null >/dev/null 2>&1 &
    started=$!
    wait_for_watchdog "$started"
}

# Arms the watchdog anew when it is gone. Said once: there may be something that ends each of them.
keep_watched() {
    watched && return
    arm || return 1
    [ ! -e "$lock/rearmed" ] || return 0
    keep rearmed yes
    report "the watchdog of this host was gone, and was armed anew; look for what has ended it"
}

unwatched() {
    echo "no watchdog can be armed, by systemd-run or nohup, so nobody would restore this host: $1" >&2
    exit 1
}

# A reboot gives the keys back and ends the watchdog, but leaves nginx's files as a trial had them: a
# unit of the next start restores them before nginx reads them. Fails with `why` when there is none.
arm_boot() {
    has_systemd || return 0
    case $(stat -f -c %T "$dir") in tmpfs | ramfs)
        why="the state folder $dir is in memory, and a reboot would lose what restores nginx's files"
        return 1
        ;;
    esac
    unit=intop-guard-$token-boot.service
    # In double quotes systemd expands some characters, which are doubled or escaped against that.
    words=
    for word in "$here/$self" "$dir"; do
        words="$words \"$(printf '%s' "$word" | sed 's/[\\"]/\\&/g; s/[%$]/&&/g')\""
    done
    if { mkdir -p "$units/multi-user.target.wants" && keep unit "$unit" && flush "$lock/unit" "$lock" &&
        printf '%s\n' '[Unit]' 'Description=intop: give nginx its files back, which a reboot has cut off' \
            Before=nginx.service '[Service]' Type=oneshot TimeoutStartSec=180 \
            "ExecStart=/bin/sh$words boot $unit" > "$units/$unit" && chmod 0644 "$units/$unit" &&
        ln -sf "../$unit" "$units/multi-user.target.wants/$unit" &&
        flush "$units/$unit" "$units" "$units/multi-user.target.wants"; } 2>/dev/null; then
        return 0
    fi
    why="$units can't be written, where the unit would be that restores nginx's files after a reboot"
    return 1
}

# Removes the unit of the session in folder $1.
disarm_boot() {
    ! line_of "$1/unit" || drop_unit "$line"
}

drop_unit() {
    rm -f "$units/multi-user.target.wants/$1" "$units/$1" 2>/dev/null
}

# Tries again in a minute what could not be restored, unless somebody has the host then, who does it,
# too. Fails when nothing is left to try.
retry_later() {
    count_unrestored || return 1
    before=$remaining
    # A signal ends the wait, and not only the sleep.
    sleep 60 &
    wait "$!" || exit 70
    take_lock "claimed.retry.$me" || return 0
    missing=$(retry_unrestored 2>/dev/null)
    discard "$lock"
    count_unrestored || :
    [ "$remaining" -ge "$before" ] || report "what could not be restored of a session is as it was found now: the watchdog tried it again"
    # All else is somebody else's, or gone. Each later session would leave a watchdog for it, too.
    [ -n "$missing" ]
}

do_watch() {
    # Only an end with 3 is one: systemd starts the watchdog anew after any other.
    trap 'exit 70' TERM HUP INT PIPE
    # When memory runs out, somebody has to give the host back.
    { echo -900 > /proc/self/oom_score_adj; } 2>/dev/null
    idle=0
    while :; do
        if line_of "$lock/token" && [ "$line" = "$token" ]; then
            watched || overwrite "$lock/watchdog" "$me"
            if [ "$idle" != 0 ]; then
                idle=$((idle - 1))
            elif lapsed; then
                take_away
                case $? in
                # All is restored, and nothing can be removed, as the folder is read-only.
                3) exit 3 ;;
                # The same, but something can't be restored. Nobody wants nginx reloaded each second.
                1) idle=60 ;;
                esac
            fi
        elif finish_restores; then
            retry_later || exit 3
            continue
        fi
        sleep 1 || sleep 1 || exit 70
    done
}

do_boot() {
    [ ! -d "$lock" ] || take_away
    tidy
    finish_restores || return 0
    if take_lock "claimed.boot.$me"; then
        retry_unrestored >/dev/null
        discard "$lock"
    fi
    for each in "$lock" "$dir"/unrestored.*; do
        ! { line_of "$each/unit" && [ "$line" = "$token" ]; } || return 0
    done
    # Also one that a power failure has brought back, after its session had ended.
    drop_unit "$token"
}
