"""What sets sysctls on a host by itself: sysctl.d, etc/sysctl.conf, and TuneD's profile.

Read as they are read by systemd-sysctl (sysctl.d(5), systemd's src/sysctl/sysctl.c), by procps'
`sysctl --system` (sysctl(8), procps' src/sysctl.c) and by TuneD (its plugins/plugin_sysctl.py).
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from intop.domain.parameter import normalised
from intop.domain.persistent import (
    FILES,
    PROCPS_LAST,
    REREAD,
    REREAD_LAST,
    Persistent,
    Setting,
    canonical_key,
    is_glob,
)
from intop.errors import CommandError
from intop.hosts import tuned
from intop.hosts.answers import lines
from intop.hosts.host import Host, output

FOLDERS = (
    "etc/sysctl.d",
    "run/sysctl.d",
    "usr/local/lib/sysctl.d",
    "usr/lib/sysctl.d",
    "lib/sysctl.d",
)
"""Of two files of one name, the one in the earlier folder counts."""
REREAD_FOLDERS = ("run/sysctl.d", "etc/sysctl.d")
"""The same, as TuneD has it when it reads them again."""
MOST_LINES = 10_000
"""Of one file: more are no configuration, and are said to be a problem."""
LONGEST_LINE = 4096
"""Characters: no value of a key is longer than a page."""

SCRIPT = """
export LC_ALL=C
newline='
'
# Every line of a file gets a mark, so that none can be taken for one of ours. Nothing but a regular
# file is opened: another one may never end. A device, such as /dev/null, is a file without lines.
show() {
    case $2 in *"$newline"*) return ;; esac
    [ -f "$2" ] || [ -c "$2" ] || return
    printf '%s\\t%s\\n' "$1" "$2"
    [ ! -f "$2" ] || sed -e 's/^/>/' -e "${most}q" < "$2" 2>/dev/null || printf 'unread\\n'
    echo
}
for folder in $folders; do
    for file in "$root/$folder"/*.conf; do show "$folder" "$file"; done
done
show sysctl.conf "$root/etc/sysctl.conf"
[ ! -d "$root/run/systemd/system" ] || printf 'systemd\\t%s\\n' "$root"
if [ -s "$root/etc/tuned/active_profile" ]; then
    for name in active_profile post_loaded_profile tuned-main.conf; do
        show "$name" "$root/etc/tuned/$name"
    done
    for folder in $profiles; do
        for file in "$root/$folder"/*/tuned.conf; do show "$folder" "$file"; done
    done
fi
printf 'end\\t\\n'
"""


@dataclass(frozen=True)
class _Line:
    """A line of a file. `-KEY = VALUE` may fail (`is_lenient`), `-KEY` keeps globs off the key."""

    setting: Setting
    is_lenient: bool
    is_exclusion: bool


@dataclass
class _File:
    """A file of a `kind` (its folder, or what it is called), with its lines."""

    kind: str
    path: str
    text: list[str] = field(default_factory=list)
    is_read: bool = True

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def read_persistent(host: Host, root: str | None = None) -> Persistent:
    """Ask the host, in one command that writes nothing. Raises HostError.

    `root` stands in place of the host's `config_root`.
    """
    root = (host.address.config_root if root is None else root).rstrip("/")
    given = {
        "root": shlex.quote(root),
        "folders": shlex.quote(" ".join(FOLDERS)),
        "profiles": shlex.quote(" ".join(tuned.FOLDERS)),
        "most": str(MOST_LINES + 1),
    }
    before = "".join(f"{name}={value}\n" for name, value in given.items())
    answer = output(host, before + SCRIPT)
    try:
        return parse_persistent(answer)
    except ValueError as error:
        raise CommandError(
            host.address.name, f"what sets its sysctls can't be read: {error}"
        ) from error


def parse_persistent(text: str) -> Persistent:
    """All settings in the lines that `SCRIPT` prints. Raises ValueError for one cut off."""
    files, with_systemd = _files(text)
    confs = [file for file in files if file.kind in FOLDERS]
    last = [file for file in files if file.kind == "sysctl.conf"]
    found: list[Setting] = []
    excluded: list[str] = []
    for file in _in_order(confs, FOLDERS):
        for line in _assignments(file, FILES):
            key = line.setting.key
            if not line.is_exclusion:
                found.append(line.setting)
                continue
            excluded.append(key)
            if with_systemd:  # to procps, it is about globs only
                found = [setting for setting in found if setting.key != key]
    at_last = [
        line.setting
        for file in last
        for line in _assignments(file, PROCPS_LAST)
        if not line.is_exclusion
    ]
    if not with_systemd:
        found += at_last
    profile, problems = _profile(files)
    found += profile
    rereads = bool(profile) and _reapplies(files)
    if rereads:
        again = [s for f in _in_order(confs, REREAD_FOLDERS) for s in _plain(f, REREAD)]
        found += again + [s for f in last for s in _plain(f, REREAD_LAST)]
    return Persistent(
        settings=tuple(found),
        on_reload=tuple(at_last) if with_systemd else (),
        excluded=tuple(excluded),
        rereads=rereads,
        files=tuple(file.path for file in confs),
        problems=(*_unread(files), *problems),
    )


def _files(text: str) -> tuple[list[_File], bool]:
    """The files in the order in which they were printed, and whether systemd runs there."""
    files: list[_File] = []
    with_systemd = False
    for line in lines(text):
        if line[:1] == ">" and files:
            files[-1].text.append(line[1:])
            continue
        if line == "unread" and files:
            files[-1].is_read = False
        kind, tab, path = line.partition("\t")
        if tab and kind == "end":
            return files, with_systemd
        if tab and kind == "systemd":
            with_systemd = True
        elif tab:
            files.append(_File(kind, path))
    raise ValueError("the answer ends early")


def _in_order(files: Iterable[_File], folders: Sequence[str]) -> list[_File]:
    """The files that count, by name wherever they are; an earlier folder's hides a later one's."""
    by_name: dict[str, _File] = {}
    for folder in folders:
        for file in files:
            if file.kind == folder:
                by_name.setdefault(file.name, file)
    return [by_name[name] for name in sorted(by_name)]


def _assignments(file: _File, turn: int) -> list[_Line]:
    found: list[_Line] = []
    for number, text in enumerate(file.text[:MOST_LINES], start=1):
        stripped = text.strip()
        if not stripped or stripped[0] in "#;" or len(text) > LONGEST_LINE:
            continue
        key, equals, value = stripped.partition("=")
        is_lenient = key.startswith("-")
        key = canonical_key(key[1:].strip() if is_lenient else key.strip())
        if key and (equals or is_lenient):
            place = f"{file.path}:{number}"
            setting = Setting(key, normalised(value), place, (turn, file.name))
            found.append(_Line(setting, is_lenient, is_exclusion=not equals))
    return found


def _plain(file: _File, turn: int) -> list[Setting]:
    """The settings that TuneD makes of a file: it knows neither globs nor `-`."""
    return [
        line.setting
        for line in _assignments(file, turn)
        if not line.is_lenient and not is_glob(line.setting.key)
    ]


def _profile(files: Sequence[_File]) -> tuple[list[Setting], list[str]]:
    """What TuneD's active profiles set, and what is wrong with them."""
    words = [
        word
        for kind in ("active_profile", "post_loaded_profile")
        for file in files
        if file.kind == kind
        for line in file.text
        for word in line.split()
    ]
    profiles = {
        file.path: file.text[:MOST_LINES]
        for folder in tuned.FOLDERS
        for file in files
        if file.kind == folder
    }
    return tuned.settings(words, profiles)


def _reapplies(files: Iterable[_File]) -> bool:
    return tuned.reapplies(
        line for file in files if file.kind == "tuned-main.conf" for line in file.text
    )


def _unread(files: Iterable[_File]) -> list[str]:
    told = []
    for file in files:
        if not file.is_read:
            told.append(f"{file.path} can't be read")
        if len(file.text) > MOST_LINES:
            told.append(f"{file.path} has more than {MOST_LINES} lines: only those were looked at")
        if any(len(line) > LONGEST_LINE for line in file.text):
            told.append(f"{file.path} has lines of more than {LONGEST_LINE} characters: left out")
    return told
