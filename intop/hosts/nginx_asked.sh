@trust.sh@
@nginx_masters.sh@
# Whether the title of process folder $1 has no room for all options.
is_cut_off() (
    LC_ALL=C
    title=$(tr '\0' '\n' < "$1/cmdline")
    IFS=' ' read -r stat < "$1/stat" || exit 1
    set -f
    IFS=' '
    set -- ${stat##*') '}
    shift 45
    # nginx writes its title over its words and its environment, and leaves two bytes at the end.
    [ "$1" != 0 ] && [ "${#title}" -ge "$(($4 - $1 - 2))" ]
)
# Calls the nginx of `process` with $1, which is -t or -T.
ask() {
    if is_cut_off "$process"; then
        echo "the title of process ${process#/proc/} has no room for all options:" \
            "start nginx with a longer environment, such as a PATH" >&2
        return
    fi
    folder=$(readlink "$process/cwd")
    # It may run in a container that has the host's network, and files of its own.
    if [ "$process/ns/mnt" -ef /proc/self/ns/mnt ]; then
        (cd "$process/cwd" && call_nginx "$program" "$title" "$1" timeout 10)
    else
        call_nginx "$program" "$title" "$1" timeout 10 nsenter -t "${process#/proc/}" -m -w --
    fi
}
