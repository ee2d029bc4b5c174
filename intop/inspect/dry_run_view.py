"""A dry run, as a document."""

from collections.abc import Iterator, Sequence

from intop.document.columns import texts
from intop.document.model import Block, Section, Table, Verbatim
from intop.domain.applied import Applied
from intop.domain.host_state import Answer, HostState
from intop.inspect.dry_run_result import DryRun, Intended, Touched
from intop.inspect.host_states_view import held
from intop.inspect.status_view import pace, stages
from intop.words import counted, duration, few

SHOWN_KEYS = 12


def measuring(run: DryRun) -> list[Block]:
    """Return the hosts, and for each subject its trials, their time and the writable keys."""
    lines = ["dry run: no host is asked, and nothing is written anywhere"]
    if run.campaign is None:
        lines.append(f"a new campaign of {run.study} would begin in {run.store}")
    else:
        ended = ", which is finished," if run.is_finished else ""
        lines.append(f"campaign {run.campaign} of {run.study} in {run.store}{ended} would go on")
    lines += [line for touched in run.hosts for line in _touched(touched)]
    return [Verbatim(tuple(lines)), *map(_subject, run.intended)]


def _subject(intended: Intended) -> Section:
    details = Verbatim(tuple(_details(intended)))
    if not intended.stages:
        return Section(title=intended.subject.title, blocks=(details,))
    return Section(title=_line(intended), blocks=(stages(intended.stages), details))


def rollback(answers: Sequence[Answer[HostState]], *, force: bool) -> list[Block]:
    """Return what would be restored on each host, by its own answers."""
    lines = ["dry run: hosts are asked, and nothing is put back"]
    rows: list[tuple[str, ...]] = []
    for answer in answers:
        if answer.result is None:
            lines.append(answer.error)
            continue
        state = answer.result
        back, foreign = _put_back(state, force=force)
        alone = bool(state.holder) and not force
        if not alone:
            rows += [(answer.name, key, now, before) for key, (now, before) in back.items()]
        lines.append(f"{answer.name}: {_outcome(state, len(back), alone=alone)}")
        if foreign:
            lines.append(f"  left as somebody else has set them: {', '.join(sorted(foreign))}")
        if state.applied and not alone:
            lines += _undone(state.applied, force=force)
    columns = texts("host", "key", "now", "would be put back to")
    table = (Table(columns=columns, rows=tuple(rows)),) if rows else ()
    return [Verbatim(tuple(lines)), *table]


def _put_back(state: HostState, *, force: bool) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """Return by key the value now and before, and the keys that stay somebody else's."""
    back = {change.key: (change.now, change.before) for change in state.changed}
    foreign = {change.key for change in state.foreign}
    applied = state.applied
    # Without our file a reboot has taken the values away.
    if applied and (applied.file or not applied.was_rebooted):
        back |= {key.key: (key.now, key.before) for key in applied.keys if key.now != key.before}
        foreign |= {drift.where for drift in state.drift if drift.kind == "changed"}
    # nginx's files outlast a reboot.
    for key in applied.directives if applied else ():
        if key.now != key.before and (key.now or force):
            back[key.key] = key.now, key.before
    foreign |= {
        file.path for file in (applied.nginx_files if applied else ()) if file.state == "edited"
    }
    if force:
        foreign = set()
    return {key: values for key, values in back.items() if key not in foreign}, foreign


def _undone(applied: Applied, *, force: bool) -> Iterator[str]:
    yield f"  what is applied would be undone: {applied.title}, since {applied.since}"
    if applied.file_is == "ours" or (applied.file_is == "edited" and force):
        yield f"  {applied.file} would be removed"
    elif applied.file_is == "edited":
        yield f"  {applied.file} is not as intop wrote it, and would be left alone without --force"


def _outcome(state: HostState, count: int, *, alone: bool) -> str:
    if alone:
        return f"would be left alone without --force, if that session is alive: {held(state)}"
    if not count:
        return "nothing would be put back"
    return f"{counted(count, 'key')} would be put back"


def _touched(touched: Touched) -> Iterator[str]:
    if touched.problem:
        yield f"{touched.arch}: {touched.problem}"
        return
    yield f"{touched.arch}: sysctls are written on {', '.join(touched.written)} only"
    yield f"  load is sent, carried and counted by {', '.join(touched.others)}"


def _line(intended: Intended) -> str:
    subject, time = intended.subject, ""
    if not any(stage.is_ahead for stage in intended.stages):
        return f"{subject.title}: nothing is left to measure"
    if intended.left_s is not None and intended.most_s is not None:
        time = f", about {duration(intended.left_s)}, at most {duration(intended.most_s)}"
    return f"{subject.title}: {counted(intended.left, 'trial')} left{time} ({pace(subject)})"


def _details(intended: Intended) -> Iterator[str]:
    yield from (f"  {line}" for line in intended.lacking)
    yield from (f"  WARNING  {line}" for line in intended.warnings)
    if intended.stages and not intended.left:
        yield "  no key would be written"
        return
    keys, varied = intended.keys, intended.varied
    known = "" if intended.is_probed else ", as far as the host has them, which is not asked yet"
    yield f"  keys that may be written{known}: {len(keys)}, each at first its own value"
    if not varied:
        yield "  no key gets another value: hosts are measured with the values that they have"
    elif len(varied) == len(keys):
        yield f"  all of them get other values: {few(keys, SHOWN_KEYS)} (--json has all)"
    else:
        yield f"  of these get other values: {', '.join(varied)}"
