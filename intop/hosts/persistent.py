"""Sysctls that a host sets by itself: sysctl.d, etc/sysctl.conf, and TuneD's profile.

Read as they are read by systemd-sysctl (sysctl.d(5), systemd's src/sysctl/sysctl.c), by procps'
`sysctl --system` (sysctl(8), procps' src/sysctl.c) and by TuneD (its plugins/plugin_sysctl.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from intop.domain.persistent import FILES, PROCPS_LAST, REREAD, REREAD_LAST, Persistent, Setting
from intop.domain.sysctl_lines import Line, Loader, is_glob, read_lines, unread
from intop.errors import CommandError
from intop.hosts import tuned
from intop.hosts.answers import lines
from intop.hosts.host import Host, output
from intop.hosts.scripts import script

FOLDERS = (
    "etc/sysctl.d",
    "run/sysctl.d",
    "usr/local/lib/sysctl.d",
    "usr/lib/sysctl.d",
    "lib/sysctl.d",
)
"""The folders in order: of two files of one name, the one in the earlier folder counts."""
REREAD_FOLDERS = ("run/sysctl.d", "etc/sysctl.d")
"""The same order, when TuneD reads them again."""
MOST_LINES = 10_000
"""The most lines of one file: more are no configuration, and are reported as a problem."""
LONGEST_VALUE = 4096
"""The most characters of a value: no value of a key is longer than a page."""
MOST_SHOWN = 60
"""Characters of a longer value that are shown."""
MOST_UNREAD = 20
"""The most lines that are shown of those that no program reads."""


@dataclass
class _File:
    """A file with its lines."""

    kind: str
    """Its folder, or its name."""
    path: str
    text: list[str] = field(default_factory=list)
    is_read: bool = True

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def read_persistent(host: Host, root: str | None = None) -> Persistent:
    """Return the settings of a host, by one command that writes nothing. Raises HostError.

    `root` stands in place of the host's `config_root`.
    """
    root = (host.address.config_root if root is None else root).rstrip("/")
    command = script(
        "persistent.sh",
        root=root,
        folders=" ".join(FOLDERS),
        profiles=" ".join(tuned.FOLDERS),
        most=MOST_LINES + 1,
    )
    answer = output(host, command)
    try:
        return parse_persistent(answer)
    except ValueError as error:
        raise CommandError(
            host.address.name, f"what sets its sysctls can't be read: {error}"
        ) from error


def parse_persistent(text: str) -> Persistent:
    """Return all settings in the lines that `persistent.sh` prints.

    Raises ValueError for an answer that was cut off.
    """
    files, by_systemd = _files(text)
    loader: Loader = "systemd" if by_systemd else "procps"
    confs = [file for file in files if file.kind in FOLDERS]
    last = [file for file in files if file.kind == "sysctl.conf"]
    loaded = _in_order(confs, FOLDERS, hidden=not by_systemd)
    both = [(file, line) for file in loaded for line in _lines(file, loader)]
    settings = [
        _setting(file, line, FILES)
        for file, line in both
        # To procps, a line without a value is about globs only.
        if line.value is not None or by_systemd
    ]
    at_last = [
        _setting(file, line, PROCPS_LAST)
        for file in last
        for line in _lines(file, "procps")
        if line.value is not None
    ]
    if not by_systemd:
        settings += at_last
    profile = _profile(files)
    settings += profile.settings
    rereads = profile.sets_sysctls and _reapplies(files)
    if rereads:
        again = _in_order(confs, REREAD_FOLDERS, hidden=True)
        settings += [s for file in again for s in _plain(file, REREAD)]
        settings += [s for file in last for s in _plain(file, REREAD_LAST)]
    return Persistent(
        settings=tuple(sorted(settings, key=lambda setting: setting.turn[0])),
        on_reload=tuple(at_last) if by_systemd else (),
        excluded=tuple(line.key for _, line in both if line.value is None),
        by_systemd=by_systemd,
        rereads=rereads,
        files=tuple(file.path for file in confs),
        unknown="" if rereads else profile.unknown,
        problems=(*_unread(files), *profile.problems),
        unread=tuple(_useless([*loaded, *last]))[:MOST_UNREAD],
    )


def _files(text: str) -> tuple[list[_File], bool]:
    """Return the files in the order in which they were printed, and whether systemd runs there."""
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


def _in_order(
    files: Iterable[_File], folders: Sequence[str], *, hidden: bool = False
) -> list[_File]:
    """Return the files that count, by name; an earlier folder's hides a later one's.

    Names that begin with a dot count only with `hidden`.
    """
    by_name: dict[str, _File] = {}
    for folder in folders:
        for file in files:
            if file.kind == folder and (hidden or not file.name.startswith(".")):
                by_name.setdefault(file.name, file)
    return [by_name[name] for name in sorted(by_name)]


def _lines(file: _File, loader: Loader) -> list[Line]:
    return read_lines(file.text[:MOST_LINES], loader)


def _setting(file: _File, line: Line, turn: int) -> Setting:
    place = f"{file.path}:{line.number}"
    value, doubt = line.value or "", ""
    if len(value) > LONGEST_VALUE:
        value = f"{value[:MOST_SHOWN]}..."
        doubt = f"a value of more than {LONGEST_VALUE} characters"
    when = turn, file.name
    return Setting(line.key, value, place, when, drops=line.value is None, doubt=doubt)


def _plain(file: _File, turn: int) -> list[Setting]:
    """Return the settings that TuneD makes of a file: it knows neither globs nor `-`."""
    return [
        _setting(file, line, turn)
        for line in _lines(file, "tuned")
        if not line.is_lenient and not is_glob(line.key)
    ]


def _useless(files: Iterable[_File]) -> Iterator[str]:
    """Return each line that was meant to set something and sets nothing, with the reason."""
    for file in files:
        for number, text in enumerate(file.text[:MOST_LINES], start=1):
            if why := unread(text):
                yield f"{file.path}:{number}: {why}"


def _profile(files: Sequence[_File]) -> tuned.Profile:
    """Return the settings and problems of TuneD's active profiles."""
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
    return tuned.merged(words, profiles)


def _reapplies(files: Iterable[_File]) -> bool:
    return tuned.reapplies(
        line for file in files if file.kind == "tuned-main.conf" for line in file.text
    )


def _unread(files: Iterable[_File]) -> list[str]:
    problems = []
    for file in files:
        if not file.is_read:
            problems.append(f"{file.path} can't be read")
        if len(file.text) > MOST_LINES:
            problems.append(
                f"{file.path} has more than {MOST_LINES} lines: only those were looked at"
            )
    return problems
