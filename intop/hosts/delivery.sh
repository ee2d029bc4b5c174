# How fast a server's clients get their data, by the kernel's TCP_INFO. By bash, which waits and
# listens without another process. $ports (such as `80 443`) and $step (in microseconds) come before
# it.
#
# It samples the server's connections every $step, and sums by how much their quantities grew. A new
# connection began at 0. A sample may take 1/200 of the time: where it takes longer, the next
# one comes later. What a connection did after its last sample is not seen. Memory is for the
# connections of one sample, or for some samples of few.
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
# Sums up samples. Its input is what it printed last, and then for each sample `next` and what ss lists.
# mawk prints numbers beyond 2^31 only with %.0f.
summing='
    BEGIN {
        count = split("busy bytes_acked", names)
    }
    $1 == "next" { sample++; many = 0; ends = ""; next }
    !sample && $1 == "sum" {
        was_unseen = $2
        for (n = 1; n <= 2 * count; n++) sum[n] = $(n + 2)
        next
    }
    !sample {
        is_new[0, $1, $2] = $3
        for (n = 1; n <= count; n++) total[0, $1, $2, n] = $(n + 3)
        next
    }
    $1 == "unseen" { unseen = 1; next }
    !/^[ \t]/ {
        ends = ($2 ~ /^[0-9]+$/ && $3 ~ /^[0-9]+$/) ? $4 SUBSEP $5 : ""
        next
    }
    ends == "" { next }
    {
        before = (sample - 1) SUBSEP ends
        is_known = before in is_new
        for (n = 1; n <= count; n++) {
            at = index($0, " " names[n] ":")
            now[n] = at ? substr($0, at + length(names[n]) + 2, 20) + 0 : 0
            if (is_known && now[n] < total[before, n]) is_known = 0
        }
        fresh = begin ? 0 : is_known ? is_new[before] : 1
        row = fresh
        for (n = 1; n <= count; n++) {
            more = now[n] - (is_known ? total[before, n] : 0)
            if (more > 0) {
                sum[n] += more
                if (fresh) sum[count + n] += more
            }
            total[sample, ends, n] = now[n]
            row = row sprintf(" %.0f", now[n])
        }
        is_new[sample, ends] = fresh
        sub(SUBSEP, " ", ends)
        rows[++many] = ends " " row
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

sums=
samples=
due=0

# Takes a sample. It is summed up later, with others, unless there are many connections.
sample() {
    local begun=${EPOCHREALTIME/./} taken
    samples+=$'next\n'$(exec ss -tinH state established state fin-wait-1 state close-wait \
        state last-ack state closing "( $filter )")$'\n' || samples+=$'unseen\n'
    [ "${#samples}" -lt 1000000 ] || sum_up 0
    taken=$((${EPOCHREALTIME/./} - begun))
    due=$((begun + (200 * taken > step ? 200 * taken : step)))
}

# $1 is 1 where counting begins.
sum_up() {
    local answer
    answer=$(printf '%s%s' "$sums" "$samples" | $awk -v begin="$1" "$summing")
    samples=
    [ -z "$answer" ] || sums=$answer$'\n'
}

read -r mark || exit 0
sample
sum_up 1
request=
while :; do
    left=$((due - ${EPOCHREALTIME/./}))
    if [ "$left" -le 0 ]; then
        sample
        continue
    fi
    printf -v left %d.%06d $((left / 1000000)) $((left % 1000000))
    IFS= read -r -t "$left" part
    code=$?
    [ "$code" -eq 0 ] || [ "$code" -gt 128 ] || exit 0
    request+=$part
    [[ $request == *';' ]] || continue
    begin=0
    [[ $request == 'begin;' ]] && begin=1 samples=
    request=
    sample
    sum_up "$begin"
    printf '%s\n%s\n%s\n' "${sums%%$'\n'*}" "$(</proc/net/snmp)" "$mark"
done
