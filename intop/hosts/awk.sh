# The awk to use: mawk takes half of gawk's time.
awk=awk
command -v mawk >/dev/null && awk=mawk
