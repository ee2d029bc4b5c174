"""The harness of all benchmarks: it asks a question, whose cells are measured one by one.

A question says which cells there are, how one is measured, the table of all results, and what of
its claim they miss. The harness has what all questions share: seeds, a file of results with which
the same command continues where it was interrupted, the header above the table, and the exit code.
"""

import argparse
import hashlib
import json
import math
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import TypeAdapter

from intop.errors import IntopError
from intop.learn.code_fingerprint import code_fingerprint
from intop.learn.parallel import each, processes
from intop.store import Store, opened

ROOT = Path(__file__).parents[1]
PRODUCT = ("domain", "run", "campaign", "explain", "causes", "experiment")
"""Folders of intop that decide what stages find."""

Cell = TypeVar("Cell")
Result = TypeVar("Result")


class UnusableError(Exception):
    """Options, data or results that a question can't be asked with. The message says why."""


class Question(Generic[Cell, Result]):
    """A question, with the options that it was asked with. Its module's docstring explains it."""

    seeds: ClassVar[int | None] = None
    """Number of seeds by default. None: the question has none."""

    first_seed: ClassVar[int] = 1

    result: ClassVar[Any] = None
    """Type of a cell's result, which is kept as JSON. None: a store keeps what was measured."""

    fixed: ClassVar[tuple[str, ...]] = ()
    """Options that all kept results must have in common."""

    has_store: ClassVar[bool] = False
    """Whether campaigns are kept in the folder `--store`."""

    is_parallel: ClassVar[bool] = False
    """Whether cells are measured in several processes."""

    may_end_early: ClassVar[bool] = False
    """Whether `--minutes` may end it, after which no cell is begun."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.closing = ExitStack()
        """Entered until the question is answered."""

    def store(self, name: str) -> Store:
        """Open a store of campaigns in the folder `--store`."""
        self.given.store.mkdir(parents=True, exist_ok=True)
        return self.closing.enter_context(opened(str(self.given.store / f"{name}.db")))

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Add the question's own options."""

    def seed_range(self) -> range:
        """Return the seeds that were asked for."""
        return range(self.given.start, self.given.start + self.given.seeds)

    def cells(self) -> Mapping[str, Cell]:
        """Return what is to be measured, by name."""
        raise NotImplementedError

    def cost(self, cell: Cell) -> float:  # noqa: ARG002
        """Return how dear a cell is beside others. The dearest is measured first."""
        return 0.0

    def bed(self) -> AbstractContextManager[object]:
        """Return what must be up while cells are measured."""
        return nullcontext()

    def measure(self, cell: Cell) -> Result:
        """Measure a cell."""
        raise NotImplementedError

    def progress(self, name: str, result: Result) -> str:  # noqa: ARG002
        """Return a line about a result that has just come in."""
        return name

    def table(self, results: Mapping[str, Result]) -> Iterable[str]:
        """Return the lines of the tables of all results."""
        raise NotImplementedError

    def missed(self, results: Mapping[str, Result]) -> Sequence[str]:  # noqa: ARG002
        """Return what of the claim the results miss."""
        return []

    def settings(self) -> dict[str, Any]:
        """Return what results must have in common to stand in one table."""
        options = {name: getattr(self.given, name) for name in self.fixed}
        return {"code": product_revision(), **json.loads(json.dumps(options, default=str))}


def ask(name: str, kind: type[Question[Any, Any]], words: Sequence[str]) -> str | int | None:
    """Ask a question as these words say. Return the exit code, or the message of a failure."""
    try:
        question = kind(parser_of(name, kind).parse_args(words))
        with question.closing:
            return _answer(question, [name, *words])
    except (UnusableError, IntopError) as error:
        return str(error)
    except KeyboardInterrupt:
        return "stopped; the same command continues"


def parser_of(name: str, kind: type[Question[Any, Any]]) -> argparse.ArgumentParser:
    """Return the parser of a question's options and of those that the harness adds."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=sys.modules[kind.__module__].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kind.options(parser)
    add = parser.add_argument
    if kind.seeds is not None:
        add("--seeds", type=positive, default=kind.seeds, help=f"number of seeds ({kind.seeds})")
        add("--start", type=int, default=kind.first_seed, help=f"first seed ({kind.first_seed})")
    if kind.result is not None:
        default = Path(f"build/bench-{name}.json")
        add("--results", type=Path, default=default, help=f"where results are kept ({default})")
    if kind.has_store:
        default = Path(f"build/{name}")
        add("--store", type=Path, default=default, help=f"folder of the campaigns ({default})")
    if kind.is_parallel:
        add("--jobs", type=positive, help="processes (one a processor)")
    if kind.may_end_early:
        add("--minutes", type=float, default=1e6, help="after these no cell is begun")
    return parser


def positive(text: str) -> int:
    """Return an option's number, which is 1 or more."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def _answer(question: Question[Any, Any], words: Sequence[str]) -> str | None:
    """Measure what cells are missing and print the table. Return what is missed of the claim."""
    cells = question.cells()
    kept = Kept(question) if question.result is not None else None
    known = kept.read() if kept else {}
    lacking = {name: cell for name, cell in cells.items() if name not in known}
    if lacking:
        with question.bed():
            for number, (name, result) in enumerate(_measured(question, lacking), start=1):
                known[name] = result
                if kept:
                    kept.write(known)
                line = question.progress(name, result)
                print(f"[{number}/{len(lacking)}] {line}", file=sys.stderr, flush=True)
    results = {name: known[name] for name in cells if name in known}
    print("\n".join([*header(words), "", *question.table(results)]))
    missed = question.missed(results)
    return "not as it should be: " + "; ".join(missed) if missed else None


def _measured(question: Question[Any, Any], cells: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each cell's name and result as they come in."""
    names = sorted(cells, key=lambda name: -question.cost(cells[name]))
    if question.is_parallel:
        fresh = type(question)(question.given)  # without what it has read since
        tasks = [(fresh, name, cells[name]) for name in names]
        yield from each(_named, tasks, jobs=question.given.jobs)
        return
    minutes = question.given.minutes if question.may_end_early else math.inf
    deadline = time.monotonic() + 60 * minutes
    for name in names:
        if time.monotonic() < deadline:
            yield name, question.measure(cells[name])


def _named(question: Question[Any, Any], name: str, cell: object) -> tuple[str, Any]:
    return name, question.measure(cell)


class Kept:
    """The file of a question's results."""

    def __init__(self, question: Question[Any, Any]) -> None:
        self._path: Path = question.given.results
        self._settings = question.settings()
        self._results = TypeAdapter(dict[str, question.result])

    def read(self) -> dict[str, Any]:
        """Return the results of earlier commands, or none."""
        try:
            stored = json.loads(self._path.read_text())
            if stored["settings"] != self._settings:
                raise UnusableError(
                    f"{self._path}: of other code, versions or options; delete it, or name another "
                    "(--results)"
                )
            return self._results.validate_python(stored["results"])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnusableError(
                f"{self._path}: no results ({error}); delete it, or name another (--results)"
            ) from error

    def write(self, results: Mapping[str, Any]) -> None:
        """Keep all results. A killed command leaves the file as it was before."""
        document = {"settings": self._settings, "results": self._results.dump_python(dict(results))}
        fresh = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(document, indent=1))
            fresh.replace(self._path)
        except OSError as error:
            raise UnusableError(f"{self._path}: {error.strerror}") from error


@cache
def product_revision() -> str:
    """Return a name that changes with the models, and with the code of the stages that use them."""
    known = hashlib.sha256(code_fingerprint().encode())
    folders = (ROOT / "intop" / name for name in PRODUCT)
    for source in sorted(path for folder in folders for path in folder.rglob("*.py")):
        known.update(source.read_bytes())
    return known.hexdigest()


# Where numbers come from --------------------------------------------------------------------------


def header(words: Sequence[str]) -> list[str]:
    """Return the head of a result page: the command, the commit, the date and the machine."""
    return [
        "| | |",
        "|---|---|",
        f"| command | `python -m benchmarks {' '.join(words)}` |",
        f"| commit | {commit()} |",
        f"| date | {datetime.now(UTC):%-d %B %Y} |",
        f"| machine | {machine()} |",
    ]


def commit() -> str:
    """Return the checkout's commit, with `-dirty` where it has other changes than truth tables."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    changed = git("diff", "--name-only", "HEAD", "--", ".", ":!benchmarks/truth")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if changed else "")


def machine() -> str:
    """Return the processors and the kernel of this machine."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    model = models[0] if models else platform.machine()
    return f"{processes()} processors, {model}, kernel {platform.release()}"
