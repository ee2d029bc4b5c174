# Prints a line for each key on stdin whose own value is refused, or becomes another. The guard's lock
# must be held: the values must be nobody's who restores others meanwhile.
newline='
'
paths=$(cat)
cd /proc/sys || exit 1
set -f
export LC_ALL=C
values=$(grep -s '' $paths /dev/null)
IFS=$newline
for line in $values; do
    path=${line%%:*} value=${line#*:}
    printf '%s\n' "$value" 2>/dev/null > "$path" && continue
    # The shell itself does not say why.
    said=$({ printf '%s\n' "$value" | tee "$path" >/dev/null; } 2>&1)
    printf '%s\t%s\n' "$path" "${said##*: }"
done
for line in $(grep -s '' $paths /dev/null | grep -vxF -e "$values"); do
    printf '%s\tits value is %s then\n' "${line%%:*}" "${line#*:}"
done
