# What sets sysctls by itself, of the folders $folders and $profiles below $root; $most lines of a file.
export LC_ALL=C
newline='
'
# Every line of a file gets a mark, so that none can be taken for one of ours. Nothing but a regular
# file is opened: another one may never end. A device, such as /dev/null, is a file without lines.
show() {
    [ -f "$2" ] || [ -c "$2" ] || return
    show_name "$@"
}
# A link to nothing, a folder or a pipe hides the files of its name in later folders, too.
show_any() {
    [ -e "$2" ] || [ -L "$2" ] || return
    show_name "$@"
}
show_name() {
    case $2 in *"$newline"*) return ;; esac
    printf '%s\t%s\n' "$1" "$2"
    [ ! -f "$2" ] || sed -e 's/^/>/' -e "${most}q" < "$2" 2>/dev/null || printf 'unread\n'
    echo
}
for folder in $folders; do
    for file in "$root/$folder"/*.conf "$root/$folder"/.*.conf "$root/$folder"/.conf; do
        show_any "$folder" "$file"
    done
done
show sysctl.conf "$root/etc/sysctl.conf"
[ ! -d "$root/run/systemd/system" ] || printf 'systemd\t%s\n' "$root"
if [ -s "$root/etc/tuned/active_profile" ]; then
    for name in active_profile post_loaded_profile tuned-main.conf; do
        show "$name" "$root/etc/tuned/$name"
    done
    for folder in $profiles; do
        for file in "$root/$folder"/*/tuned.conf; do show "$folder" "$file"; done
    done
fi
printf 'end\t\n'
