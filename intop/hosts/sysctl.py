"""Sysctl keys, their paths below /proc/sys, and reading them in bulk."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from intop.domain.parameter import normalised
from intop.domain.probing import Reading
from intop.errors import CommandError
from intop.hosts.answers import lines
from intop.hosts.host import Host, output

KEY = re.compile(r"[a-z0-9_]+(\.[A-Za-z0-9_-]+)+")
"""What a key looks like; nothing else ever becomes part of a remote path."""
VALUE = re.compile(r"(?P<path>[^\t:\n]+)[\t:](?P<value>[^\n]*)")


def path_of(key: str) -> str:
    """The path below /proc/sys. Raises ValueError for what is not a key."""
    if not KEY.fullmatch(key):
        raise ValueError(f"not a sysctl key: {key!r}")
    return key.replace(".", "/")


def key_of(path: str) -> str:
    """The key of a path below /proc/sys; the path itself of another file, which begins with /."""
    return path if path.startswith("/") else path.replace("/", ".")


def parse_values(text: str) -> dict[str, str]:
    """Values by key from lines of path, tab or colon, value, as the guard prints them.

    A key with several lines has no value that could be written again, and is left out.
    """
    values: dict[str, str] = {}
    several: set[str] = set()
    for line in text.split("\n"):
        if found := VALUE.fullmatch(line):
            key, value = key_of(found["path"]), normalised(found["value"])
            if values.setdefault(key, value) != value:
                several.add(key)
    return {key: value for key, value in values.items() if key not in several}


PROBE = """
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
    if [ ! -e "$path" ]; then printf '%s\\tmissing\\t\\n' "$path"
    elif [ -z "$found" ] && ! cat "$path" >/dev/null 2>&1; then
        printf '%s\\tunreadable\\t\\n' "$path"
    elif [ -w "$path" ]; then printf '%s\\twritable\\t%s\\n' "$path" "$value"
    else printf '%s\\treadable\\t%s\\n' "$path" "$value"
    fi
done
"""
"""What has no line to be found is empty, or can't be read: only then it is read by itself."""

Access = Literal["missing", "unreadable", "readable", "writable"]
ACCESS: Sequence[Access] = ("missing", "unreadable", "readable", "writable")


def probe(host: Host, keys: Iterable[str]) -> dict[str, Reading]:
    """What the host says of each key. Nothing is written. Raises CommandError."""
    asked = sorted(set(keys))
    paths = "".join(f"{path_of(key)}\n" for key in asked)
    found = parse_probe(output(host, PROBE, stdin=paths))
    if silent := [key for key in asked if key not in found]:
        raise CommandError(
            host.address.name, f"says nothing of {len(silent)} keys, such as {silent[0]}"
        )
    return {key: found[key] for key in asked}


def parse_probe(text: str) -> dict[str, Reading]:
    """Readings by key from the lines that `PROBE` prints."""
    readings: dict[str, Reading] = {}
    for line in lines(text):
        path, access, value = [*line.split("\t", 2), "", ""][:3]
        for known in ACCESS:
            if access == known:
                readings.setdefault(key_of(path), Reading(known, normalised(value)))
    return readings


WRITE_BACK = """
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
    printf '%s\\n' "$value" 2>/dev/null > "$path" && continue
    # The shell itself does not say why.
    said=$({ printf '%s\\n' "$value" | tee "$path" >/dev/null; } 2>&1)
    printf '%s\\t%s\\n' "$path" "${said##*: }"
done
for line in $(grep -s '' $paths /dev/null | grep -vxF -e "$values"); do
    printf '%s\\tits value is %s then\\n' "${line%%:*}" "${line#*:}"
done
"""
"""Prints a line for each key whose own value is refused, or becomes another. The guard's lock must
be held: the values must be nobody's who puts others back meanwhile."""


def write_back(host: Host, keys: Iterable[str]) -> dict[str, str]:
    """Write the keys' own values to them; by key what was said of those that are not taken.

    Raises CommandError.
    """
    asked = sorted(set(keys))
    if not asked:
        return {}
    paths = "".join(f"{path_of(key)}\n" for key in asked)
    said = parse_refusals(output(host, WRITE_BACK, stdin=paths))
    return {key: said[key] for key in asked if key in said}


def parse_refusals(text: str) -> dict[str, str]:
    """What was said by key, from the lines that `WRITE_BACK` prints."""
    said: dict[str, str] = {}
    for line in lines(text):
        path, tab, words = line.partition("\t")
        if tab:
            said[key_of(path)] = normalised(words) or "without saying why"
    return said
