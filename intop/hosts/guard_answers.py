"""What the guard on a host answers (`guard.sh`): lines of fields between tabs. Asks nothing."""

import re
from collections.abc import Mapping

from intop.domain.applied import Applied, FileState, NginxFileState, StayingFile, StayingKey
from intop.domain.host_state import (
    ForeignChange,
    HostState,
    KeyChange,
    KeyValue,
    RollbackOutcome,
    RolledBack,
    UndoneFile,
    Unrestored,
)
from intop.hosts.answers import lines
from intop.hosts.sysctl import key_of

FILE_STATES: Mapping[str, FileState] = {"ours": "ours", "edited": "edited", "missing": "missing"}
NGINX_FILES: Mapping[str, NginxFileState] = {**FILE_STATES, "own": "own"}
UNDONE_FILES: Mapping[str, UndoneFile] = {
    "removed": "removed",
    "edited": "edited",
    "stuck": "stuck",
    "missing": "missing",
}


def parse_status(text: str) -> HostState:
    """What `guard.sh status` printed: a line of fields between tabs for each fact."""
    facts = {"holder": "", "since": "", "lease_s": "", "silent_s": "", "watchdog": ""}
    changed: list[KeyChange] = []
    reports: list[str] = []
    for line in lines(text):
        match line.split("\t"):
            case ["key", path, before, now]:
                changed.append(KeyChange(key=key_of(path), before=before, now=now))
            case ["report", *words]:
                reports.append(" ".join(words))
            case [fact, value] if fact in facts:
                facts[fact] = value
    return HostState(
        holder=facts["holder"],
        since=facts["since"],
        lease_s=_seconds(facts["lease_s"]),
        silent_s=_seconds(facts["silent_s"]),
        is_watched={"alive": True, "dead": False}.get(facts["watchdog"]),
        changed=tuple(changed),
        foreign=foreign_changes(text),
        reports=tuple(reports),
        applied=_applied(text),
    )


def parse_rollback(text: str, outcome: RollbackOutcome) -> RolledBack:
    """What `guard.sh rollback` printed, a line of fields between tabs for each key."""
    restored: list[KeyValue] = []
    file, file_is = "", None
    for line in lines(text):
        match line.split("\t"):
            case ["restored", path, value]:
                restored.append(KeyValue(key=key_of(path), value=value))
            case ["file", path, state]:
                file, file_is = path, UNDONE_FILES.get(state)
    return RolledBack(
        restored=tuple(restored),
        foreign=foreign_changes(text),
        unrestored=unrestored_keys(text),
        outcome=outcome,
        file=file,
        file_is=file_is,
    )


def _applied(text: str) -> Applied | None:
    about: dict[str, str] = {}
    keys: list[StayingKey] = []
    directives: dict[str, tuple[str, str]] = {}
    nginx_files: list[StayingFile] = []
    file, file_is, was_rebooted = "", None, False
    for line in lines(text):
        match line.split("\t"):
            case ["applied", name, told]:
                about[name] = told
            case ["stays", path, before, left, now]:
                keys.append(StayingKey(key=key_of(path), before=before, left=left, now=now))
            case ["directive", key, before, left]:
                directives[key] = before, left
            case ["nginx-file", path, state] if state in NGINX_FILES:
                nginx_files.append(StayingFile(path=path, state=NGINX_FILES[state]))
            case ["file", path, state]:
                file, file_is = path, FILE_STATES.get(state)
            case ["rebooted", "yes"]:
                was_rebooted = True
    if not about:
        return None
    # Which of them an edited file still has, only nginx could say.
    states = {nginx_file.state for nginx_file in nginx_files}
    staying = [
        StayingKey(
            key=key,
            before=before,
            left=left,
            now=left if states == {"ours"} else before if states == {"own"} else "",
        )
        for key, (before, left) in directives.items()
    ]
    return Applied(
        about=about,
        keys=tuple(keys),
        directives=tuple(staying),
        nginx_files=tuple(nginx_files),
        file=file,
        file_is=file_is,
        was_rebooted=was_rebooted,
    )


def foreign_changes(text: str) -> tuple[ForeignChange, ...]:
    """What somebody else has set meanwhile, by the lines `foreign` of an answer."""
    found: list[ForeignChange] = []
    for line in lines(text):
        match line.split("\t"):
            case ["foreign", path, left, now, command]:
                found.append(ForeignChange(key=key_of(path), left=left, now=now, command=command))
    return tuple(found)


def unrestored_keys(text: str) -> tuple[Unrestored, ...]:
    """What could not be restored, by the lines `unrestored` of an answer."""
    found: list[Unrestored] = []
    for line in lines(text):
        match line.split("\t"):
            case ["unrestored", path, why, command] if path == "nginx" or path[:1] == "/":
                found.append(Unrestored(key=path, value="", command=command, why=why))
            case ["unrestored", path, value, command]:
                found.append(Unrestored(key=key_of(path), value=value, command=command))
    return tuple(found)


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,15}", text) else None
