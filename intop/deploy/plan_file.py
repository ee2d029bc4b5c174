"""Plans in a file: written by `intop plan --output`, carried out by `intop apply FILE`."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from intop.atomic import write_atomically
from intop.config.source import text_of
from intop.deploy.result import Plan, SavedPlan
from intop.errors import UsageError
from intop.version import __version__

FORMAT = 1
"""The file's format. An intop that needs other fields has a new one, and refuses this."""
START = '{\n  "written_by": "intop '
"""The beginning of a file that intop wrote."""
AGAIN = "Make it again: intop plan --output {path}"

_SAVED = TypeAdapter(SavedPlan)


def write_plan(
    path: Path, plans: Iterable[Plan], *, whole: bool, configuration: str = ""
) -> SavedPlan:
    """Write the plans of one campaign to a file, all of it or nothing.

    Raises UsageError where there is no plan, where the file can't be written, and where another
    program's file would be replaced.
    """
    plans = tuple(plans)
    if not plans:
        raise UsageError("there is no plan to be written: no verdict is a gain")
    first = plans[0].deployment
    saved = SavedPlan(
        study=first.study,
        campaign=first.campaign,
        started_at=first.started_at,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        whole=whole,
        plans=plans,
        configuration=configuration,
    )
    document = {
        "written_by": f"intop {__version__}",
        "kind": "plan",
        "format": FORMAT,
        **_SAVED.dump_python(saved),
    }
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        if path.exists() and not (path.is_file() and _begins(path)):
            raise UsageError(f"{path} was not written by intop: name another file")
        write_atomically(path, f"{text}\n".encode())
    except OSError as error:
        raise UsageError(
            f"{path} can't be written: {error.strerror or error}. Name another: --output PATH"
        ) from error
    return saved


def read_plan(path: Path) -> SavedPlan:
    """The plans in a file. Raises UsageError for anything but a plan of this intop's format."""
    again = AGAIN.format(path=path)
    try:
        text = text_of(path)
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path}: is no plan, {error}. {again}") from error
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is damaged, or no plan: {error}. {again}") from error
    if not isinstance(document, dict) or document.get("kind") != "plan":
        raise UsageError(f"{path}: is no plan of intop. {again}")
    if document.get("format") != FORMAT:
        raise UsageError(
            f"{path}: has format {document.get('format')!r:.20}, written by "
            f"{document.get('written_by')!s:.50}, and this intop {__version__} reads {FORMAT}. "
            f"{again}"
        )
    return _saved(path, text)


def _saved(path: Path, text: str) -> SavedPlan:
    again = AGAIN.format(path=path)
    try:
        saved = _SAVED.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path}: is damaged: {place}: {first['msg']}. {again}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: is damaged: it is nested too deeply. {again}") from error
    if not saved.plans:
        raise UsageError(f"{path}: is damaged: it has no plans. {again}")
    return saved


def _begins(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(START)) == START.encode()
