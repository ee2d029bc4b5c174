# How fast a server's clients get their data, by the kernel's TCP_INFO. By bash, which waits and
# listens without another process. $ports (such as `80 443`) and $step (in microseconds) come before
# it.
#
# It samples the server's connections every $step, and sums by how much their quantities grew. A new
# connection began at 0. A sample may take 1/200 of the time: where it takes longer, the next
# one comes later. What a connection did after its last sample is not seen. Memory is for the
# connections of one sample.
#
# The first line of input is a mark that nobody else knows. Each other line is a request, whole with
# its semicolon: `begin;` counts from 0 from now on, and the connections of now are old ones; `read;`
# only asks. The answer is a line `sum UNSEEN` with the sums of all connections, and of those that are
# new (busy in ms, acknowledged bytes); then the kernel's table; and a line of the mark alone. UNSEEN
# is 1 where sockets could not be listed once since counting began. It ends with its input, which is
# when the connection is gone.
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
exec 2>/dev/null

filter=
for port in $ports; do
    filter+="${filter:+ or }sport = :$port"
done

@awk.sh@
# mawk prints numbers beyond 2^31 only with %.0f.
grow='
    BEGIN {
        count = split("busy bytes_acked", names)
        for (n = 1; n <= count; n++) place[names[n]] = n
    }
    !is_now && $1 == "sum" {
        was_unseen = $2
        for (n = 1; n <= 2 * count; n++) sum[n] = $(n + 2)
        next
    }
    !is_now && $1 == "now" { is_now = 1; next }
    !is_now {
        ends = $1 " " $2
        is_new[ends] = $3
        for (n = 1; n <= count; n++) before[ends, n] = $(n + 3)
        next
    }
    $1 == "unseen" { unseen = 1; next }
    !/^[ \t]/ {
        ends = ($2 ~ /^[0-9]+$/ && $3 ~ /^[0-9]+$/) ? $4 " " $5 : ""
        next
    }
    ends == "" { next }
    {
        for (n = 1; n <= count; n++) now[n] = 0
        for (f = 1; f <= NF; f++) {
            at = index($f, ":")
            name = substr($f, 1, at - 1)
            if (!at || !(name in place)) continue
            now[place[name]] = substr($f, at + 1) + 0
        }
        is_known = (ends in is_new) && now[1] >= before[ends, 1] && now[2] >= before[ends, 2]
        fresh = begin ? 0 : is_known ? is_new[ends] : 1
        row = ends " " fresh
        for (n = 1; n <= count; n++) {
            more = now[n] - (is_known ? before[ends, n] : 0)
            if (more > 0) {
                sum[n] += more
                if (fresh) sum[count + n] += more
            }
            row = row sprintf(" %.0f", now[n])
        }
        rows[++many] = row
        ends = ""
    }
    END {
        if (!begin && was_unseen) unseen = 1
        if (begin) for (n = 1; n <= 2 * count; n++) sum[n] = 0
        printf "sum %d", unseen
        for (n = 1; n <= 2 * count; n++) printf " %.0f", sum[n]
        printf "\n"
        for (n = 1; n <= many; n++) print rows[n]
    }'

then=
due=0

# Takes a sample. $1 is 1 where counting begins.
sample() {
    local begun=${EPOCHREALTIME/./} answer taken
    answer=$({
        printf '%snow\n' "$then"
        ss -tinH state established state fin-wait-1 state close-wait state last-ack state closing \
            "( $filter )" || echo unseen
    } | $awk -v begin="$1" "$grow")
    [ -z "$answer" ] || then=$answer$'\n'
    taken=$((${EPOCHREALTIME/./} - begun))
    due=$((begun + (200 * taken > step ? 200 * taken : step)))
}

read -r mark || exit 0
sample 1
request=
while :; do
    left=$((due - ${EPOCHREALTIME/./}))
    if [ "$left" -le 0 ]; then
        sample 0
        continue
    fi
    printf -v left %d.%06d $((left / 1000000)) $((left % 1000000))
    IFS= read -r -t "$left" part
    code=$?
    [ "$code" -eq 0 ] || [ "$code" -gt 128 ] || exit 0
    request+=$part
    [[ $request == *';' ]] || continue
    begin=0
    [[ $request == 'begin;' ]] && begin=1
    request=
    sample "$begin"
    printf '%s\n%s\n%s\n' "${then%%$'\n'*}" "$(</proc/net/snmp)" "$mark"
done
