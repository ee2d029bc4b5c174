"""The states of hosts, and rollbacks, as documents.

A line is never broken: it may hold a command or a value to copy.
"""

from collections.abc import Iterable, Sequence

from intop.document.columns import texts
from intop.document.model import Block, Table, Verbatim
from intop.domain.host_state import (
    Answer,
    ForeignChange,
    HostState,
    Rollback,
    RolledBack,
    Unrestored,
)
from intop.words import counted, few


def states(answers: Sequence[Answer[HostState]]) -> list[Block]:
    """A line for each host, what is applied, the keys that differ, and what else there is."""
    seen = [(answer.name, answer.result) for answer in answers if answer.result is not None]
    blocks: list[Block] = [Verbatim(tuple(map(_state_line, answers)))]
    # Most hosts of a fleet have the same, which is said once.
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, state in seen:
        for key in (*state.applied.keys, *state.applied.directives) if state.applied else ():
            alike.setdefault((key.key, key.before, key.left, key.now), []).append(name)
    if alike:
        columns = texts("host", "applied key", "before", "then", "now")
        rows = tuple((few(names), *row) for row, names in alike.items())
        blocks.append(Table(columns=columns, rows=rows))
    changed = tuple(
        (name, change.key, change.before, change.now)
        for name, state in seen
        for change in state.changed
    )
    if changed:
        blocks.append(Table(columns=texts("host", "key", "before", "now"), rows=changed))
    lines = (
        line
        for name, state in seen
        for line in (
            *(_foreign(name, change) for change in state.foreign),
            *(f"{name}: {report}" for report in state.reports),
            *(f"{name}: DRIFT: {drift.where}: {drift.detail}" for drift in state.drift),
        )
    )
    return [*blocks, Verbatim(tuple(lines))]


def rollbacks(answers: Sequence[Answer[Rollback]]) -> list[Verbatim]:
    """A line for each host, with what was put back and what was not below it."""
    lines: list[str] = []
    for answer in answers:
        if answer.result is None:
            lines.append(answer.error)
        else:
            lines.append(f"{answer.name}: {_outcome(answer.result, answer.folder)}")
            lines += [f"  {line}" for line in _details(answer.name, answer.result.done)]
    return [Verbatim(tuple(lines))]


def at_stake(answer: Answer[HostState]) -> list[str]:
    """Return a line for each thing of others that a rollback by force would take."""
    if answer.result is None:
        return []
    session = [f"{answer.name}: {held(answer.result)}"] if answer.result.holder else []
    edits = [
        f"{answer.name}: {drift.where}: {drift.detail}"
        for drift in answer.result.drift
        if drift.kind in ("changed", "edited")
    ]
    return session + [_foreign(answer.name, change) for change in answer.result.foreign] + edits


def held(state: HostState) -> str:
    """Return such as: held by root@controller (process 812) since 2026-11-21T15:00:00Z, ..."""
    since = f" since {state.since}" if state.since else ""
    details = [f"lease {state.lease_s:g} s"] if state.lease_s is not None else []
    if state.silent_s is not None:
        details.append(f"last sign of life {state.silent_s:g} s ago")
    if state.is_watched is not None:
        details.append("watchdog alive" if state.is_watched else "WATCHDOG DEAD")
    return ", ".join([f"held by {state.holder}{since}", *details])


def _state_line(answer: Answer[HostState]) -> str:
    if answer.result is None:
        return answer.error
    state = answer.result
    if state.holder:
        return f"{answer.name}: {held(state)}" + (f"; {_applied(state)}" if state.applied else "")
    if state.applied:
        return f"{answer.name}: {_applied(state)}"
    # Without a holder a difference is what an interrupted restore has left.
    left = "; not all of its values are its own: intop rollback" if state.changed else ""
    return f"{answer.name}: not held ({answer.folder}){left}"


def _applied(state: HostState) -> str:
    """Return one line, for a monitoring system, too."""
    applied = state.applied
    if applied is None:
        return ""
    what = f"{applied.title}, applied since {applied.since}, {counted(len(applied.values), 'key')}"
    lasting = [applied.file, *(file.path for file in applied.nginx_files)]
    files = ", ".join(filter(None, lasting))
    lasts = f"for good by {files}" if files else "until a reboot"
    if not state.drift:
        seen = "not looked at while it is held" if state.holder else "as applied"
        return f"{what}, {lasts}: {seen}"
    drifts = ", ".join(f"{drift.where} {drift.kind}" for drift in state.drift)
    return f"DRIFT: {drifts} ({what}, {lasts})"


def _foreign(name: str, change: ForeignChange) -> str:
    return (
        f"{name}: {change.key} was changed by somebody else: intop left {change.left}, it is "
        f"{change.now} now. To have it as before, type there as root: {change.command}"
    )


def _outcome(rollback: Rollback, folder: str) -> str:
    keys = f"{counted(len(rollback.done.restored), 'key')} put back"
    match rollback.done.outcome:
        case "restored":
            return f"as before, {keys}"
        case "nothing":
            return f"nothing to roll back in {folder}"
        case "partly":
            return f"NOT as before, {keys}"
        case "held":
            holder = held(rollback.held) if rollback.held else "held"
            return f"left alone: {holder}. End that session, or take the host from it with --force"


def _details(name: str, done: RolledBack) -> Iterable[str]:
    yield from (f"{key.key} = {key.value}" for key in done.restored)
    yield from (_foreign(name, change) for change in done.foreign)
    yield from (_unrestored(key) for key in done.unrestored)
    match done.file_is:
        case "removed":
            yield f"{done.file} removed"
        case "edited":
            yield (
                f"{done.file} is not as intop wrote it, and was left alone: remove it there, or "
                "say --force"
            )
        case "stuck":
            yield f"{done.file} can't be removed: is its folder read-only?"
    if done.outcome == "partly":
        yield "After that, run again: intop rollback"


def _unrestored(key: Unrestored) -> str:
    if key.why:
        return f"{key.key} is not restored: {key.why}. Type there as root: {key.command}"
    return f"{key.key} could not be set to {key.value}. Type there as root: {key.command}"
