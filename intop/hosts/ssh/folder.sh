# Makes the folder $folder, which nobody else can change.
@trusted.sh@
by_login
umask 077
trusted "$folder"
mkdir -p "$folder" || exit 73
trusted "$folder"
