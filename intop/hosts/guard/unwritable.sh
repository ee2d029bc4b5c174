# Those absolute paths on stdin that can be no folder to write to. Nothing is written.
while IFS='' read -r folder; do
    case $folder in /*) there=$folder ;; *) continue ;; esac
    while [ ! -e "$there" ]; do there=${there%/*}; there=${there:-/}; done
    { [ -d "$there" ] && [ -w "$there" ]; } || printf '%s\n' "$folder"
done
