# Path, access and value of each path on stdin. A key without a line is empty, or can't be read: only
# such a key is read by itself.
newline='
'
paths=$(cat)
cd /proc/sys || exit 1
set -f
# By one process for all keys: on a small or emulated host each takes long.
values=$(LC_ALL=C grep -s '' $paths /dev/null)
IFS=$newline
set -- $values
for path in $paths; do
    found= value=
    case ${1-} in "$path:"*) found=yes value=${1#*:} ;; esac
    while case ${1-} in "$path:"*) ;; *) false ;; esac; do shift; done
    if [ ! -e "$path" ]; then printf '%s\tmissing\t\n' "$path"
    elif [ -z "$found" ] && ! cat "$path" >/dev/null 2>&1; then
        printf '%s\tunreadable\t\n' "$path"
    elif [ -w "$path" ]; then printf '%s\twritable\t%s\n' "$path" "$value"
    else printf '%s\treadable\t%s\n' "$path" "$value"
    fi
done
