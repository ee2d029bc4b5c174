# Reduce what an access log got since a place to counts. $path, $inode, $offset, $after and $every come
# before it, and $fields: awk code that takes time, status and connection from a line. Without an
# $inode it begins a little before the end.
#
# Of $every lines one is read, at random, and stands for all of them. But each failure is read.
#
# It prints, with tabs: `place INODE SIZE`, where the next call goes on; `note WORD` for a log that
# was moved, truncated or lost; `unreadable N`; `connection N`, the highest number of a connection;
# `failed N` and `time MS N` of the requests that count, and `old N` of those that don't: with an
# $after, only connections with a higher number count. Upgraded connections (101) are no requests.
LC_ALL=C
export LC_ALL after every

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
@awk.sh@

printf 'place\t%s\t%s\n' "$now" "$size"
[ -z "$note" ] || printf 'note\t%s\n' "$note"

exec 3>&1
{
    [ -z "$before" ] || tail -c "+$((offset + 1))" -- "$before"
    dd if="$path" iflag=skip_bytes,count_bytes skip="$from" count="$((size - from))" bs=65536 status=none ||
        printf 'dd can not read it\t\n' >&3
} | $awk '
    BEGIN {
        after = ENVIRON["after"] == "" ? -1 : ENVIRON["after"] + 0
        every = ENVIRON["every"] + 0
        srand()
    }
    { is_read = every == 1 || rand() * every < 1 }
    '"$fields"'
    {
        # Many requests have the same status and time, so each pair is looked at once.
        pair = status " " time
        if (!(pair in kind)) {
            if (time !~ /^[0-9]+(\.[0-9]+)?$/ || status !~ /^[0-9][0-9][0-9]$/) kind[pair] = "unreadable"
            else if (status >= 500 || status == 499) kind[pair] = "failed"
            else kind[pair] = status == 101 ? "upgraded" : "answered"
        }
        if (kind[pair] == "unreadable") { unreadable += is_read; next }
        number = connection + 0
        if (number > highest) highest = number
        if (kind[pair] == "upgraded") next
        if (number <= after) old += is_read
        else if (kind[pair] == "failed") failed++
        else requests[pair] += is_read
    }
    END {
        for (pair in requests) {
            split(pair, word, " ")
            times[int(word[2] * 1000 + 0.5)] += requests[pair]
        }
        printf "unreadable\t%d\nconnection\t%d\n", unreadable * every, highest
        printf "failed\t%d\nold\t%d\n", failed, old * every
        for (ms in times) if (times[ms]) printf "time\t%d\t%d\n", ms, times[ms] * every
    }'
