# Before a call of the script in $folder: where no session ever was, ends with $none.
@trusted.sh@
by_root

if [ ! -e "$folder/guard.sh" ] && [ ! -L "$folder/guard.sh" ]; then
    cd "$folder" 2>/dev/null || { printf 'end\t%s\n' "$none"; exit "$none"; }
    # Where a session leaves what is to be restored.
    for each in lock restoring.* unrestored.* applied.*; do
        [ -d "$each" ] || continue
        echo "$folder/$each is there, and no guard.sh to restore it" >&2
        exit 73
    done
    printf 'end\t%s\n' "$none"
    exit "$none"
fi
trusted "$folder"
