"""The doctor's diagnosis as a document."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from http import HTTPStatus

from intop.document.columns import Column, numbers, texts
from intop.document.model import Notes, Section, Table, Verbatim
from intop.domain.cluster import NOT_DESCRIBED
from intop.domain.diagnosis import Diagnosis, HostDiagnosis
from intop.domain.fetched import Fetched
from intop.inspect.host_states_view import held
from intop.masking import masked_header
from intop.words import few


def in_brief(*diagnoses: Diagnosis) -> list[Section]:
    """Return a section for each cluster: its hosts, counts of keys and paths, and its problems.

    A replica that is like its first cluster, and without problems, takes one line.
    """
    first: dict[str, Diagnosis] = {}
    sections = []
    for diagnosis in diagnoses:
        alike = first.setdefault(diagnosis.arch, diagnosis)
        is_replica = alike is not diagnosis and _kind(alike) == _kind(diagnosis)
        sections.append(_replica(diagnosis) if is_replica else _brief(diagnosis))
    return sections


def _kind(diagnosis: Diagnosis) -> tuple[object, ...]:
    """Return everything that a reader compares between replicas."""
    hosts = [(h.role, h.facts.machine, h.facts.kernel, h.facts.cpus) for h in diagnosis.hosts]
    states = [*(line for h in diagnosis.hosts for line in _state(h))]
    wrong = (diagnosis.warnings, diagnosis.problems, states)
    return (diagnosis.link, diagnosis.load_tool, diagnosis.refused, *hosts, *wrong)


def _replica(diagnosis: Diagnosis) -> Section:
    names = ", ".join(host.name for host in diagnosis.hosts)
    tried = (line for host in diagnosis.hosts for line in _tried(host))
    return Section(
        title=f"{diagnosis.arch}: replica",
        blocks=(Verbatim((f"{names}: like the first one", *tried)),),
    )


def _brief(diagnosis: Diagnosis) -> Section:
    lines = _about(diagnosis)
    out = f", and {len(diagnosis.refused)} can't (--details says why)" if diagnosis.refused else ""
    if diagnosis.offered or diagnosis.refused:
        lines.append(f"parameters that can be tuned: {len(diagnosis.offered)}{out}")
    if paths := diagnosis.fetched:
        answered = sum(fetched.status == HTTPStatus.OK for fetched in paths)
        slowest = max(fetched.seconds for fetched in paths)
        lines.append(
            f"paths: {answered} of {len(paths)} answered with 200, the slowest in "
            f"{1000 * slowest:.0f} ms"
        )
    blocks = (_hosts(diagnosis), Notes(tuple(lines)), Verbatim(_wrong(diagnosis)))
    return Section(title=f"{diagnosis.arch}: hosts", blocks=blocks)


def examined(*diagnoses: Diagnosis) -> list[Section]:
    """Return a section for each cluster: its hosts, its keys with obstacles, and its problems.

    Problems may hold a command to copy.
    """
    return [_cluster(diagnosis, diagnoses[:n]) for n, diagnosis in enumerate(diagnoses)]


def _about(diagnosis: Diagnosis) -> list[str]:
    """Return the load's tool, the link, and the state of hosts, as far as they are known."""
    lines = [f"load tool: {diagnosis.load_tool}"] if diagnosis.load_tool else []
    lines += [f"link: {diagnosis.link}"] if diagnosis.link != NOT_DESCRIBED else []
    if diagnosis.emulation:
        lines.append(f"load balancer: a virtual machine by {diagnosis.emulation}")
    lines += [line for host in diagnosis.hosts for line in _state(host)]
    return lines + [line for host in diagnosis.hosts for line in _tried(host)]


def _wrong(diagnosis: Diagnosis) -> tuple[str, ...]:
    warnings = [f"WARNING  {warning}" for warning in diagnosis.warnings]
    problems = [f"PROBLEM  {problem}" for problem in diagnosis.problems]
    return (*warnings, *(problems or ["no problem was found"]))


def _cluster(diagnosis: Diagnosis, earlier: Sequence[Diagnosis]) -> Section:
    lines = _about(diagnosis)
    lines += [f"parameters that can be tuned: {len(diagnosis.offered)}"]
    same = earlier and (earlier[-1].arch, earlier[-1].refused) == (
        diagnosis.arch,
        diagnosis.refused,
    )
    lines += ["out of bounds: the same as above"] if same else _refusals(diagnosis)
    for key, lost in diagnosis.lost.items():
        choices = [f"{choice} ({why})" for choice, why in lost.items()]
        lines.append(f"choices left out of {key}, {len(lost)}: {few(choices)}")
    paths = (_paths(diagnosis),) if diagnosis.fetched else ()
    return Section(
        title=f"{diagnosis.arch}: hosts",
        blocks=(_hosts(diagnosis), Notes(tuple(lines)), *paths, Verbatim(_wrong(diagnosis))),
    )


def _hosts(diagnosis: Diagnosis) -> Table:
    return Table(
        columns=(
            *texts("host", "role", "machine", "kernel", "CPUs", "server"),
            *numbers("memory"),
        ),
        rows=tuple(
            (
                host.name,
                host.role,
                host.facts.machine,
                host.facts.kernel,
                str(host.facts.cpus),
                host.facts.nginx.replace("/", " ", 1) or "none",
                f"{host.facts.memory_bytes / 2**30:.1f} GiB",
            )
            for host in diagnosis.hosts
        ),
    )


def _paths(diagnosis: Diagnosis) -> Table:
    """Return the answer of each path, asked for once from the load generator."""
    return Table(
        columns=(
            *texts("path asked for once"),
            *numbers("status"),
            Column("bytes", "count"),
            Column("time", unit="ms"),
        ),
        rows=tuple(
            (
                " ".join((fetched.path, *(f"({manner})" for manner in _manner(fetched)))),
                str(fetched.status) if fetched.status else fetched.problem,
                fetched.bytes if fetched.status else None,
                1000 * fetched.seconds if fetched.status else None,
            )
            for fetched in diagnosis.fetched
        ),
    )


def _manner(fetched: Fetched) -> Iterator[str]:
    """Return the parts that a plain request over HTTP/1.1 doesn't have."""
    if fetched.http != "1.1":
        yield f"HTTP/{fetched.http}"
    yield from map(masked_header, fetched.headers)


def _state(host: HostDiagnosis) -> Iterator[str]:
    state = host.state
    if state.holder:
        changed = f", keys changed: {len(state.changed)}" if state.changed else ""
        yield f"{host.name}: {held(state)}{changed}"
    for report in state.reports:
        yield f"{host.name}: {report}"


def _tried(host: HostDiagnosis) -> Iterator[str]:
    tried = [key for key in host.keys.values() if key.is_tried]
    if tried:
        taken = sum(not key.reading.refusal for key in tried)
        yield f"{host.name}: {taken} of {len(tried)} keys took their own values when written"


def _refusals(diagnosis: Diagnosis) -> list[str]:
    """The parameters that are out of bounds, by reason, the most frequent first.

    Where a reason has three parts or more, the last one is a key's own.
    """
    keys: dict[str, list[str]] = defaultdict(list)
    for key, reason in diagnosis.refused.items():
        *common, own = reason.split(": ")
        if len(common) > 1:
            keys[": ".join(common)].append(f"{key} ({own})")
        else:
            keys[reason].append(key)
    groups = sorted(keys.items(), key=lambda group: -len(group[1]))
    return [f"out of bounds, {len(k)}: {reason}: {few(k)}" for reason, k in groups]
