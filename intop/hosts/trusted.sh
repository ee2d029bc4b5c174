@trust.sh@

# Ends for a folder $1 that others can change: whoever can change a folder on the way to a script can
# make root run another one. `owner` may own folders, too.
#
# Tests of faults look for words like "begin" between blanks in commands: there are none in here.
trusted() {
    why=$(tell_others_folder "$1" "$owner" "$trustees")
    [ -n "$why" ] || return 0
    echo "the state folder $folder can't be trusted: $why. $advice" >&2
    exit 74
}

# For a script that runs as root.
by_root() {
    owner=0 trustees=root
    advice="Make that folder root's alone, or give the host another one as state_dir (/var/lib/intop)"
}

# For a script that runs as who logs in, with or without sudo.
by_login() {
    owner=${SUDO_UID:-$(id -u)} trustees="root or user $owner"
    advice="Make that folder theirs alone (chmod go-w), or give the host another one as state_dir"
}
