# Says `there` where $folder has the script $script with the sum $sum, and else `absent`.
@trusted.sh@
by_root

: guard-install
trusted "$folder"
umask 077
mkdir -p "$folder" || exit 73
trusted "$folder"
there=$(sha256sum 2>/dev/null < "$folder/$script")
[ "$there" = "$sum  -" ] || { echo absent; exit 0; }
[ "$(readlink "$folder/guard.sh")" = "$script" ] || {
    ln -sfn "$script" "$folder/link.$$" || exit 73
    mv -T "$folder/link.$$" "$folder/guard.sh" || exit 73
}
echo there
