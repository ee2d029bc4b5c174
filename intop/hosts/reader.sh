# A host's counters, read when asked, and a time series of them in between. By bash, which every
# Debian and Ubuntu has: it reads files, waits and listens without another process. Only `ss` is one.
#
# The first line of input is a mark that nobody else knows. Each other line is a request:
#
#   WHAT POINTS STEP STATUS;
#
# It is whole with its semicolon: bash's `read` may run out of time when it has a part of a line, or
# all of it, and doesn't tell which.
#
# The answer is a whole reading of now; then POINTS samples follow, one every STEP microseconds. They
# are sent at once, so that nobody waits for them after a load. WHAT are letters: p for all
# processes, f for what nginx's processes hold, s for TCP's sockets if they are at most $most, also in
# the samples, n for what nginx says of itself (stub_status) at STATUS, which is HOST PORT PATH; - for
# none. With
# that many, ten samples fit into what SSH takes unread (2 MB): else this process would wait in the
# middle. An answer is a list of sections, each begun by a line of the mark and a name, and ends with
# a line of the mark alone. No program's name, the only text here that anybody can choose, is as long
# as the mark.
#
# It ends with its input, which is when the connection is gone.
@trust.sh@
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
exec 2>/dev/null
most=250

host="/proc/stat /proc/meminfo /proc/pressure/cpu"
tables="/proc/net/sockstat /proc/net/netstat /proc/net/snmp /proc/net/softnet_stat"
limits="/proc/sys/net/netfilter/nf_conntrack_count /proc/sys/net/netfilter/nf_conntrack_max"

# Appends a section with the contents of files to $text. None of them has a zero in it.
section() {
    local file whole
    text+="$mark $1"$'\n'
    shift
    for file; do
        mapfile -d '' whole <"$file" && text+=${whole[0]}
    done
}

# Appends TCP's sockets, unless there are too many: each of them takes time. Without -e, which would
# also say their cookies, but looks for the path of each one's cgroup, and takes twice as long.
sockets() {
    local words
    text+="$mark sockets"$'\n'
    while read -r -a words; do
        [[ ${words[0]} == TCP: ]] && break
    done </proc/net/sockstat
    if [ "${words[2]}" -le "$most" ]; then
        text+=$(ss -tinH state listening state established || echo unseen)$'\n'
    else
        text+=$'many\n'
    fi
}

# Appends nginx's page. By a process that can be ended: nginx may take no connection just then.
page() {
    text+="$mark status"$'\n'$(timeout 0.5 bash -c '
        exec 3<>"/dev/tcp/$0/$1" && printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$2" >&3 &&
            while IFS="" read -r line <&3; do printf "%s\n" "${line%$'"'\r'"'}"; done
    ' "${status[@]}")$'\n'
}

# Appends what a sample and a whole reading have in common.
common() {
    section tables $tables
    section conntrack /proc/net/stat/nf_conntrack
    section limits $limits
    [[ $what == *[ns]* ]] && listed=${EPOCHREALTIME/./}
    [[ $what == *s* ]] && sockets
    [[ $what == *n* ]] && page
}

# Appends what the processors' packages have used, where the kernel counts it (RAPL, for root only).
energy() {
    local zone name used largest
    text+="$mark energy"$'\n'
    for zone in /sys/class/powercap/intel-rapl:*; do
        read -r name <"$zone/name" && [[ $name == package-* ]] &&
            read -r used <"$zone/energy_uj" && read -r largest <"$zone/max_energy_range_uj" &&
            text+="energy $used $largest"$'\n'
    done
}

# Appends the handles that are open on the host, and a line for each process of this network
# namespace's nginx, which root has started: its anonymous memory in kB, its open files, and its start
# in ticks.
footprint() {
    local process name key value rest files words masters=' '
    text+="$mark footprint"$'\n'"files $(</proc/sys/fs/file-nr)"$'\n'
    for process in /proc/[0-9]*; do
        read -r name <"$process/comm" && [[ $name == nginx ]] || continue
        is_roots "$process" && look_at_server "$process" nginx && [[ -z $doubt ]] && masters+="${process#/proc/} "
    done
    for process in /proc/[0-9]*; do
        read -r name <"$process/comm" && [[ $name == nginx ]] || continue
        read -r -a words <"$process/stat" || continue
        [[ $masters == *" ${words[0]} "* || $masters == *" ${words[3]} "* ]] || continue
        files=("$process"/fd/[0-9]*)
        while read -r key value rest; do
            [[ $key == RssAnon: ]] || continue
            text+="nginx $value ${#files[@]} ${words[21]}"$'\n'
            break
        done <"$process/status"
    done
}

clock() {
    local seconds rest
    read -r seconds rest </proc/uptime
    text+="$mark time"$'\n'$seconds$'\n'
}

# What takes a process, and more than all the rest, is asked once a second at most.
sample() {
    local now=${EPOCHREALTIME/./} rest=$what
    [ $((now - listed)) -lt 1000000 ] && what=-
    text=
    common
    what=$rest
    clock
    printf '%s sample\n%s' "$mark" "$text"
}

answer() {
    text=
    section host $host
    common
    energy
    [[ $what == *p* ]] && section processes /proc/[0-9]*/stat
    [[ $what == *f* ]] && footprint
    clock
    text+="$mark machine"$'\n'$machine$'\n'
    printf '%s%s\n' "$text" "$mark"
}

read -r mark || exit 0
# Hosts that agree in this list the same processes.
machine="$(</proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/pid)"
points=0
listed=0
request=
while :; do
    if [ "$points" -gt 0 ]; then
        left=$((due - ${EPOCHREALTIME/./}))
        if [ "$left" -le 0 ]; then
            sample
            points=$((points - 1))
            # Whoever was stopped does not hurry afterwards.
            while [ "$due" -le "${EPOCHREALTIME/./}" ]; do due=$((due + step)); done
            continue
        fi
        printf -v left %d.%06d $((left / 1000000)) $((left % 1000000))
        IFS= read -r -t "$left" part
        code=$?
        [ "$code" -eq 0 ] || [ "$code" -gt 128 ] || exit 0
    else
        IFS= read -r part || exit 0
    fi
    request+=$part
    [[ $request == *';' ]] || continue
    read -r what points_asked step page <<<"${request%;}"
    request=
    read -r -a status <<<"$page"
    answer
    points=$points_asked
    due=$((${EPOCHREALTIME/./} + step))
done
