"""What a command would do, as text."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from intop.domain.answer import Answer
from intop.domain.dry_run import DryRun, Intended, Touched
from intop.domain.host_state import HostState, KeyChange
from intop.report.campaign_status import pace, stages
from intop.report.host_states import held
from intop.report.numbers import counted
from intop.report.progress import duration
from intop.report.text import few, new_table

SHOWN_KEYS = 12


def measuring(found: DryRun) -> list[RenderableType]:
    """Hosts, then for each subject its trials, their time, and the keys that may be written."""
    lines = ["dry run: no host is asked, and nothing is written anywhere"]
    if found.campaign is None:
        lines.append(f"a new campaign of {found.study} would begin in {found.store}")
    else:
        ended = ", which is finished," if found.is_finished else ""
        lines.append(
            f"campaign {found.campaign} of {found.study} in {found.store}{ended} would go on"
        )
    lines += [line for touched in found.hosts for line in _touched(touched)]
    parts: list[RenderableType] = [Text("\n".join(lines))]
    for one in found.intended:
        if one.stages:
            parts += [Text("\n" + _line(one)), stages(one.stages)]
        else:
            parts.append(Text("\n" + one.subject.title))
        parts.append(Text("\n".join(_details(one))))
    return parts


def rollback(answers: Sequence[Answer[HostState]], *, force: bool) -> list[RenderableType]:
    """What would be put back on each host, from what it says of itself."""
    lines = ["dry run: hosts are asked, and nothing is put back"]
    table = new_table(*((name, "left") for name in ("host", "key", "now", "would be put back to")))
    for answer in answers:
        if answer.said is None:
            lines.append(answer.error)
            continue
        state = answer.said
        if state.holder and not force:
            lines.append(
                f"{answer.name}: would be left alone without --force, if that session is alive: "
                f"{held(state)}"
            )
            continue
        back, foreign = _put_back(state, force=force)
        for change in back:
            table.add_row(*map(Text, (answer.name, change.key, change.now, change.before)))
        keys = counted(len(back), "key") if back else "nothing"
        lines.append(f"{answer.name}: {keys} would be put back")
        if foreign:
            lines.append(f"  left as somebody else has set them: {', '.join(foreign)}")
        lines += [f"  {line}" for line in _our_file(state, force=force)]
    parts: list[RenderableType] = [Text("\n".join(lines))]
    return [*parts, table] if table.row_count else parts


def _put_back(state: HostState, *, force: bool) -> tuple[list[KeyChange], list[str]]:
    """The keys that would get their values from before, and those that somebody else has set."""
    found = {change.key: change for change in state.changed}
    foreign = {change.key for change in state.foreign}
    applied = state.applied
    # A reboot has given back what no file sets again.
    if applied and (applied.file or not applied.was_rebooted):
        for key in applied.keys:
            if not key.now:
                continue  # the host no longer has it
            # What a session has set meanwhile is no stranger's.
            if not state.holder and key.now not in (key.before, key.left):
                foreign.add(key.key)
            found[key.key] = KeyChange(key=key.key, before=key.before, now=key.now)
    back = [change for change in found.values() if change.now != change.before]
    if force:
        return back, []
    return [change for change in back if change.key not in foreign], sorted(foreign)


def _our_file(state: HostState, *, force: bool) -> Iterator[str]:
    applied = state.applied
    if applied is None or not applied.file:
        return
    if applied.file_is == "ours" or (applied.file_is == "edited" and force):
        yield f"{applied.file} would be removed"
    elif applied.file_is == "edited":
        yield f"{applied.file} is not as intop wrote it, and would be left alone without --force"


def _touched(touched: Touched) -> Iterator[str]:
    if touched.problem:
        yield f"{touched.arch}: {touched.problem}"
        return
    yield f"{touched.arch}: sysctls are written on {', '.join(touched.written)} only"
    yield f"  load is sent, carried and counted by {', '.join(touched.others)}"


def _line(one: Intended) -> str:
    if not one.left:
        return f"{one.subject.title}: nothing is left to measure"
    bound = "about" if one.subject.measured_in else "at least"
    time = "" if one.left_s is None else f", {bound} {duration(one.left_s)}"
    return f"{one.subject.title}: {counted(one.left, 'trial')} left{time} ({pace(one.subject)})"


def _details(one: Intended) -> Iterator[str]:
    yield from (f"  {line}" for line in one.lacking)
    if one.stages and not one.left:
        yield "  no key would be written"
        return
    keys, varied = one.keys, one.varied
    known = "" if one.is_probed else ", as far as the host has them, which is not asked yet"
    yield f"  keys that may be written{known}: {len(keys)}, each at first its own value"
    if not varied:
        yield "  no key gets another value: it is the default that is measured"
    elif len(varied) == len(keys):
        yield f"  all of them get other values: {few(keys, SHOWN_KEYS)} (--json has all)"
    else:
        yield f"  of these get other values: {', '.join(varied)}"
