"""A study's workloads: the load, and the classes of clients that share it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from intop.config.source import Place, Source, Table, converted, plain, short
from intop.domain.workload import (
    WORKLOAD_KINDS,
    Clients,
    Recording,
    Workload,
    WorkloadKind,
    is_path,
)
from intop.resources import shipped

MOST_WEIGHT = 1000
ALL = "all"
"""The word for all workloads on a command line."""

_OF_CLASSES = ("name", "share", "connections")
_BEHAVIOUR = {field.name for field in fields(Clients)}.difference(_OF_CLASSES)
"""The settings of clients that a workload without classes has itself."""
_NOT_IN_FILES = ("name", "only_path", "judged_by")
"""The settings that a workload has from elsewhere."""
_ARRIVALS: Any = Literal["constant", "poisson", "recorded"]
"""A closed loop is a sweep's only."""


def is_workload_name(name: str) -> bool:
    """Return True for a word of a command line and of file names. Raises ValueError."""
    if not re.fullmatch(r"[a-z0-9-]{1,20}", name) or name.startswith("-") or name == ALL:
        raise ValueError(
            f"a workload's name has 1 to 20 of a-z, 0-9 and hyphens, the first no hyphen, and is "
            f"not {ALL}"
        )
    return True


def workloads_of(source: Source) -> dict[str, Workload]:
    """Return the paper's two workloads first, then the others as they stand in the file."""
    tables = source.data.get("workload")
    tables = tables if isinstance(tables, dict) else {}
    workloads: dict[str, Workload] = {}
    for name in dict.fromkeys((*(n for n in WORKLOAD_KINDS if n in tables), *tables)):
        is_name = source.check(partial(is_workload_name, name), ("workload", name))
        if is_name and isinstance(tables[name], dict):
            workload = _workload(source, name, tables[name])
            workloads |= {} if workload is None else {name: workload}
    scripts: dict[str, str] = {}
    for name, workload in workloads.items():
        file = Path(workload.script).name
        if workload.script and scripts.setdefault(file, workload.script) != workload.script:
            source.problem(("workload", name, "script"), f"there is another {file}")
    if workloads and not any(workload.tuned for workload in workloads.values()):
        source.problem(("workload",), "none of them is tuned: take tuned = false out of one")
    return workloads


def _workload(source: Source, name: str, table: Table) -> Workload | None:
    """The workload of a table. One without classes of clients describes all clients itself."""
    place: Place = ("workload", name)
    source.refuse(table, _NOT_IN_FILES, place)
    own = {k: v for k, v in table.items() if k not in {*_NOT_IN_FILES, *_BEHAVIOUR}}
    behaviour = {key: value for key, value in table.items() if key in _BEHAVIOUR}
    own["name"] = name
    own["kind"] = source.check(lambda: _kind(name, table.get("kind")), place) or "slt"
    arrivals = own.get("arrivals", "constant")
    own["arrivals"] = source.convert(_ARRIVALS, arrivals, (*place, "arrivals")) or "constant"
    if isinstance(paths := own.get("paths"), dict):
        own["paths"] = source.check(lambda: _by_weight(paths), (*place, "paths")) or []
    file = own.pop("recording", None)
    moved: Mapping[Place, Place] = {}
    if not (classes := own.get("clients")):
        own["clients"], moved = [behaviour], {("clients", 0): ()}
    elif behaviour:
        stray = ", ".join(sorted(behaviour))
        source.problem(place, f"{stray}: there are [[...clients]], so say it in each of them")
    workload = source.convert(Workload, own, place, moved)
    if workload is None:
        return None
    if classes and not _lacking(source, classes, (*place, "clients")):
        source.check(lambda: _check_classes(workload), place)
    if workload.paths and workload.kind == "dlt":
        source.problem((*place, "paths"), "dlt asks for the cluster's dynamic_path only")
    recording, folder = None, source.path.parent
    if file is not None or workload.arrivals == "recorded":
        recording = source.check(lambda: _recording(workload, file, folder), (*place, "recording"))
    script = ""
    if workload.script:
        script = str(source.check(lambda: _script(folder / workload.script), place))
    return replace(workload, recording=recording, script=script)


def _kind(name: str, kind: WorkloadKind | None) -> WorkloadKind:
    """Return what requests are for. Raises ValueError where neither the table nor its name says."""
    by_name = next((known for known in WORKLOAD_KINDS if known == name), None)
    if by_name and kind not in (None, by_name):
        raise ValueError(f"kind must be {by_name}, as its name says: or call it otherwise")
    if (result := kind or by_name) is None:
        raise ValueError('needs kind = "slt" (static files) or "dlt" (pages made on request)')
    return result


def _by_weight(paths: Mapping[str, object]) -> list[str]:
    """Return each path of a table as often as its weight says, in lowest terms.

    Raises ValueError for a weight that is none.
    """
    weights: dict[str, int] = {}
    for path, weight in paths.items():
        is_path(path)
        if type(weight) is not int or not 1 <= weight <= MOST_WEIGHT:
            raise ValueError(f"{path}: its weight must be 1 to {MOST_WEIGHT}, not {weight!r}")
        weights[path] = weight
    least = math.gcd(*weights.values())
    return [path for path, weight in weights.items() for _ in range(weight // least)]


def _lacking(source: Source, classes: Sequence[Table], place: Place) -> bool:
    """Note a problem for each class without a name or a share. Return whether there is one."""
    missing = [
        (*place, number, name)
        for number, table in enumerate(classes)
        for name in ("name", "share")
        if table.get(name) in (None, "")
    ]
    for where in missing:
        source.problem(where, "field required")
    return bool(missing)


def _check_classes(workload: Workload) -> None:
    """Raises ValueError for classes whose shares are not the whole load, or that have one name."""
    shares = math.fsum(c.share for c in workload.clients)
    if abs(shares - 1) > 1e-6:
        raise ValueError(f"the shares of its clients add up to {shares:g}, not to 1")
    names = [c.name for c in workload.clients]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two classes of clients are called {', '.join(sorted(twice))}")


def _recording(workload: Workload, file: object, folder: Path) -> Recording:
    """Return a workload's recording. Raises ValueError for one that it can't play."""
    from intop.config.recording import recording_of

    if workload.arrivals != "recorded":
        raise ValueError(f'it is for arrivals = "recorded", not "{workload.arrivals}"')
    if not (isinstance(file, str) and file):
        raise ValueError("must be a file of intop workload learn --record, beside the study's")
    recording, count = recording_of((folder / file).absolute())
    if workload.kind == "dlt":
        return recording
    if not workload.paths:
        raise ValueError("it needs the workload's paths: copy them from intop workload learn")
    if count != (own := len(set(workload.paths))):
        raise ValueError(
            f"{file} counts {count:,} paths, and the workload has {own:,}: copy the paths again "
            "from intop workload learn, in the same order"
        )
    return recording


def _script(path: Path) -> Path:
    """Raises ValueError for a script that is not there, or has the name of one of intop's."""
    if (shipped("lua") / path.name).exists():
        raise ValueError(f"script: {path.name} is one of intop's own: give it another name")
    if not path.is_file():
        raise ValueError(f"script: there is no file {path}")
    return path.absolute()


def load_problem(workload: Workload) -> str:
    """Return what no study allows of a load, such as `rate_rps: ... (got 1e12)`, or ""."""
    try:
        converted(Workload, asdict(workload))
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        return f"{detail['loc'][0]}: {plain(detail['msg'])} (got {short(detail['input'])})"
    return ""
