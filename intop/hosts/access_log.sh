# Reduce what an access log got since a place to counts. $path, $inode, $offset and $after come
# before it, and $format: the texts around the variables and their names, in turn, a line each.
# Without an $inode it begins a little before the end.
#
# It prints, with tabs: `place INODE SIZE`, where the next call goes on; `note WORD` for a log that
# was moved, truncated or lost; `unreadable N`; `connection N`, the highest number of a connection;
# `failed N` and `time MS N` of the requests that count, and `old N` of those that don't: with an
# $after, only connections with a higher number count. Upgraded connections (101) are no requests.
LC_ALL=C
export LC_ALL format after

place=$(stat -L -c '%i %s' -- "$path") || exit 1
now=${place% *}
size=${place#* }
before=
note=
from=$offset
if [ -z "$inode" ]; then
    from=$((size > 65536 ? size - 65536 : 0))
elif [ "$now" != "$inode" ]; then
    # Where the log really is: its path may lead there by links.
    folder=$(dirname -- "$(readlink -f -- "$path")")
    before=$(find "$folder" -xdev -maxdepth 1 -type f -inum "$inode" | head -n 1)
    note=lost
    [ -z "$before" ] || note=moved
    from=0
elif [ "$size" -lt "$offset" ]; then
    note=truncated
    from=0
fi
printf 'place\t%s\t%s\n' "$now" "$size"
[ -z "$note" ] || printf 'note\t%s\n' "$note"

{
    [ -z "$before" ] || tail -c "+$((offset + 1))" -- "$before"
    tail -c "+$((from + 1))" -- "$path" | head -c "$((size - from))"
} | awk '
    BEGIN {
        count = split(ENVIRON["format"], part, "\n")
        after = ENVIRON["after"]
    }
    {
        rest = $0
        time = status = connection = ""
        if (part[1] != "" && index(rest, part[1]) != 1) { unreadable++; next }
        rest = substr(rest, length(part[1]) + 1)
        for (n = 2; n < count; n += 2) {
            if (part[n + 1] == "") {
                value = rest
                rest = ""
            } else {
                if (!(at = index(rest, part[n + 1]))) { unreadable++; next }
                value = substr(rest, 1, at - 1)
                rest = substr(rest, at + length(part[n + 1]))
            }
            if (part[n] == "request_time") time = value
            else if (part[n] == "status") status = value
            else if (part[n] == "connection") connection = value
        }
        if (time !~ /^[0-9]+(\.[0-9]+)?$/ || status !~ /^[0-9][0-9][0-9]$/) { unreadable++; next }
        if (connection + 0 > highest) highest = connection + 0
        if (status == 101) next
        if (after != "" && connection + 0 <= after + 0) { old++; next }
        if (status >= 500 || status == 499) failed++
        else times[int(time * 1000 + 0.5)]++
    }
    END {
        printf "unreadable\t%d\nconnection\t%d\nfailed\t%d\nold\t%d\n", unreadable, highest, failed, old
        for (ms in times) printf "time\t%d\t%d\n", ms, times[ms]
    }'
