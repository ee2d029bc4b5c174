"""A host's guard without a session: its state, a rollback, and its answers taken apart."""

import re
from collections.abc import Iterable, Mapping
from typing import get_args

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
from intop.errors import ForeignChangeError, HostError, UnreachableError
from intop.hosts import scripts
from intop.hosts.answers import joined, lines
from intop.hosts.guard import script
from intop.hosts.guard.script import (
    FOREIGN,
    HELD,
    NOT_BACK,
    NOT_OURS,
    NOTHING,
    STATE_FOLDER_ADVICE,
    UNWRITABLE,
)
from intop.hosts.host import Completed, Host, output
from intop.hosts.nginx_files import EFFECT_LIMIT_S
from intop.hosts.sysctl import key_of

OUTCOMES: Mapping[int, RollbackOutcome] = {
    0: "restored",
    NOT_BACK: "partly",
    HELD: "held",
    NOTHING: "nothing",
}
"""The outcome of a rollback by its exit code."""
FILE_STATES: Mapping[str, FileState] = {state: state for state in get_args(FileState)}
NGINX_FILES: Mapping[str, NginxFileState] = {state: state for state in get_args(NginxFileState)}
UNDONE_FILES: Mapping[str, UndoneFile] = {state: state for state in get_args(UndoneFile)}
"""The known states of our file, of nginx's files, and of our file after a rollback."""


def status(host: Host) -> HostState:
    """Return who holds a host and what is changed there.

    A host whose lease has lapsed is restored first.

    Raises:
        HostError: The host can't be asked, or its answer was cut off.
    """
    done = script.ask(host, "status", none=0)
    if done.exit_code != 0:
        raise HostError(host.address.name, f"guard.sh ended with {done.exit_code}: {done.message}")
    return parse_status(done.stdout)


def rollback(host: Host, *, force: bool = False) -> RolledBack:
    """Restore every guarded key of a host from the record kept on it.

    A host that a living session holds is left alone, and so are values that somebody else has set
    meanwhile, unless `force`.

    Raises:
        HostError: The host can't be asked.
    """
    words = ("rollback", "force") if force else ("rollback",)
    # It may restart nginx, and may have to wait for a restart that was cut off.
    done = script.ask(host, *words, none=NOTHING, limit_s=EFFECT_LIMIT_S)
    outcome = OUTCOMES.get(done.exit_code)
    result = parse_rollback(done.stdout, outcome or "partly")
    # It says which keys are not back; another failure, as of an older guard.sh, ends with 1, too.
    has_reason = result.foreign or result.unrestored or result.file_is in ("edited", "stuck")
    if outcome is None or (outcome == "partly" and not has_reason):
        raise HostError(host.address.name, f"guard.sh ended with {done.exit_code}: {done.message}")
    return result


def unwritable(host: Host, folders: Iterable[str]) -> tuple[str, ...]:
    """Return those of these absolute paths that can't become a folder to write to.

    Nothing is written.

    Raises:
        HostError: The host can't be asked.
    """
    asked = joined(folders)
    return tuple(lines(output(host, scripts.script("guard/unwritable.sh"), stdin=asked)))


# -- its answers: lines of fields between tabs ---------------------------------------------------


def parse_status(text: str) -> HostState:
    """Return the state in the answer of `guard.sh status`."""
    facts = {row[0]: row[1] for row in _rows(text) if len(row) == 2}
    return HostState(
        holder=facts.get("holder", ""),
        since=facts.get("since", ""),
        lease_s=_seconds(facts.get("lease_s", "")),
        silent_s=_seconds(facts.get("silent_s", "")),
        is_watched={"alive": True, "dead": False}.get(facts.get("watchdog", "")),
        changed=tuple(
            KeyChange(key=key_of(path), before=before, now=now)
            for path, before, now in _fields(text, "key", 3)
        ),
        foreign=foreign_changes(text),
        reports=tuple(" ".join(row[1:]) for row in _rows(text) if row[0] == "report"),
        applied=_applied(text),
    )


def parse_rollback(text: str, outcome: RollbackOutcome) -> RolledBack:
    """Return what a rollback did, by its answer."""
    file, state = _last(text, "file")
    return RolledBack(
        restored=tuple(
            KeyValue(key=key_of(path), value=value) for path, value in _fields(text, "restored", 2)
        ),
        foreign=foreign_changes(text),
        unrestored=unrestored_keys(text),
        outcome=outcome,
        file=file,
        file_is=UNDONE_FILES.get(state),
    )


def _applied(text: str) -> Applied | None:
    about = dict(_fields(text, "applied", 2))
    if not about:
        return None
    nginx_files = tuple(
        StayingFile(path=path, state=NGINX_FILES[state])
        for path, state in _fields(text, "nginx-file", 2)
        if state in NGINX_FILES
    )
    file, state = _last(text, "file")
    return Applied(
        about=about,
        keys=tuple(
            StayingKey(key=key_of(path), before=before, left=left, now=now)
            for path, before, left, now in _fields(text, "stays", 4)
        ),
        directives=_directives(text, nginx_files),
        nginx_files=nginx_files,
        file=file,
        file_is=FILE_STATES.get(state),
        was_rebooted=["yes"] in _fields(text, "rebooted", 1),
    )


def _directives(text: str, nginx_files: Iterable[StayingFile]) -> tuple[StayingKey, ...]:
    """Return the directives that stay; their values now only where the files say them."""
    states = {file.state for file in nginx_files}
    by_key = {key: (before, left) for key, before, left in _fields(text, "directive", 3)}
    return tuple(
        StayingKey(
            key=key,
            before=before,
            left=left,
            # Which of them an edited file still has, only nginx could say.
            now=left if states == {"ours"} else before if states == {"own"} else "",
        )
        for key, (before, left) in by_key.items()
    )


def foreign_changes(text: str) -> tuple[ForeignChange, ...]:
    """Return what somebody else has set meanwhile, by the lines `foreign` of an answer."""
    return tuple(
        ForeignChange(key=key_of(path), left=left, now=now, command=command)
        for path, left, now, command in _fields(text, "foreign", 4)
    )


def unrestored_keys(text: str) -> tuple[Unrestored, ...]:
    """Return what could not be restored, by the lines `unrestored` of an answer."""
    return tuple(
        # Of nginx and its files, the second word is a reason in place of a value.
        Unrestored(key=path, value="", command=command, why=word)
        if path == "nginx" or path.startswith("/")
        else Unrestored(key=key_of(path), value=word, command=command)
        for path, word, command in _fields(text, "unrestored", 3)
    )


def check(host: Host, done: Completed) -> None:
    """Raise the error of an answer.

    Raises:
        ForeignChangeError: Somebody else has changed a guarded key.
        UnreachableError: The lock is lost.
        HostError: The guard has failed.
    """
    name = host.address.name
    if done.exit_code == FOREIGN:
        changes = foreign_changes(done.stdout)
        raise ForeignChangeError(name, [f"{c.key} ({c.left!r} is {c.now!r} now)" for c in changes])
    if done.exit_code == NOT_OURS:
        raise UnreachableError(name, done.message)
    if done.exit_code == UNWRITABLE:
        raise HostError(name, f"{done.message}. {STATE_FOLDER_ADVICE}")
    if done.exit_code != 0:
        raise HostError(name, f"guard.sh ended with {done.exit_code}: {done.message}")


def by_kind(text: str, kinds: Iterable[str]) -> dict[str, list[str]]:
    """Return the lines of an answer by what they begin with, without that; "" has all others."""
    listed: dict[str, list[str]] = {"": [], **{kind: [] for kind in kinds}}
    for line in lines(text):
        kind = next((k for k in listed if k and line.startswith(k)), "")
        listed[kind].append(line.removeprefix(kind))
    return listed


def _rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in lines(text)]


def _fields(text: str, kind: str, number: int) -> list[list[str]]:
    """Return the fields of each line of a kind that has so many of them."""
    return [row[1:] for row in _rows(text) if row[0] == kind and len(row) == number + 1]


def _last(text: str, kind: str) -> tuple[str, str]:
    """Return the two fields of the last line of a kind; "" for both where there is none."""
    first, second = next(reversed(_fields(text, kind, 2)), ("", ""))
    return first, second


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,15}", text) else None
