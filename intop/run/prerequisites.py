"""Which commands have to run before another one can, as lines that can be copied.

A command is written as it is typed, without `intop`, --arch, --workload and --config.
"""

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from intop.config.location import default_path
from intop.config.study import Study
from intop.errors import LabDownError, ResultMissingError
from intop.run import registry
from intop.run.context import Task, chosen_workloads, clusters_of
from intop.run.prospect import Prospect

Cell = tuple[str, str]
"""An architecture and a workload."""


def missing(task: Task, why: str, command: str) -> ResultMissingError:
    """The error that says `why` a result is missing, and which commands make it.

    The last of these is `command`; those before it are the ones that it still needs.
    """
    study, cell = task.context.study, (task.subject.arch, task.workload.name)
    commands = _chain(study, [cell[0]], command, lambda name: _is_there(task, name))
    said = f"{task.title}: {why}: {command_line(study, commands, *cell)}"
    return ResultMissingError(said, why=why, about=cell, commands=commands)


def lab_down(arch: str, workload: str, error: LabDownError) -> ResultMissingError:
    """The same for a lab that is not up."""
    why = str(error).partition(":")[0]
    return ResultMissingError(str(error), why=why, about=(arch, workload), commands=["lab up"])


def labs_down(
    study: Study, archs: Iterable[str], workloads: Iterable[str]
) -> list[ResultMissingError]:
    """An error for each architecture and workload whose lab is not up.

    Where workers measure, no lab need be up here.
    """
    if study.workers:
        return []
    found: list[ResultMissingError] = []
    for arch, workload in product(archs, workloads):
        try:
            clusters_of(study, arch)
        except LabDownError as error:
            found.append(lab_down(arch, workload, error))
    return found


def no_campaign(study: Study, archs: Collection[str], workloads: Collection[str], then: str) -> str:
    """What to say where a command finds no campaign: the line that makes one, up to `then`."""
    told = f"{study.store} has no campaign of {study.name} yet"
    wanted = _name(then)
    first = "collect" if wanted == "compare" else wanted if _need(wanted) else "tune"
    commands = _up_to(then, _chain(study, archs, first, lambda _: False))
    arch = "" if _is_all(archs, study.clusters) else next(iter(archs))
    workload = "" if _is_all(workloads, _tuned(study)) else next(iter(workloads))
    return f"{told}: {command_line(study, commands, arch, workload)}"


def lines(study: Study, errors: Iterable[ResultMissingError], then: str) -> list[str]:
    """What is missing, each thing once, with all commands up to `then`, which was asked for."""
    groups: dict[tuple[str, tuple[str, ...]], list[Cell]] = {}
    told: list[str] = []
    for error in errors:
        if error.about is None:
            told.append(str(error))
        else:
            groups.setdefault((error.why, error.commands), []).append(error.about)
    for (why, commands), cells in groups.items():
        for title, cell in _parts(study, cells):
            told.append(f"{title}{why}: {command_line(study, _up_to(then, commands), *cell)}")
    return told


def command_line(study: Study, commands: Sequence[str], arch: str = "", workload: str = "") -> str:
    """Commands of this study for a shell, each after the success of the one before.

    Without `arch` or `workload` they are for all.
    """
    return " && ".join(_command(study, command, arch, workload) for command in commands)


def _up_to(then: str, commands: tuple[str, ...]) -> tuple[str, ...]:
    """The commands and then this one, which takes the place of the same without its options."""
    before = commands[:-1] if _name(commands[-1]) == _name(then) else commands
    return (*before, then)


def _name(command: str) -> str:
    return command.split()[0]


def _command(study: Study, command: str, arch: str, workload: str) -> str:
    words = ["intop", *shlex.split(command)]
    if arch and words[1] not in ("compare", "transfer"):
        words += ["--arch", arch]
    if workload and words[1] != "lab":
        words += ["--workload", workload]
    if Path(study.path).absolute() != default_path().absolute() and (
        os.environ.get("INTOP_CONFIG") != study.path
    ):
        words += ["-c", study.path]
    return shlex.join(words)


def _chain(
    study: Study, archs: Iterable[str], command: str, is_there: Callable[[str], bool]
) -> tuple[str, ...]:
    """The commands up to this one, without those whose result is there."""
    chain = [command]
    while (need := _need(chain[0])) and not is_there(need):
        chain.insert(0, need)
    if _measuring() & set(chain) and not all(_is_up(study, arch) for arch in archs):
        chain.insert(0, "lab up")
    return tuple(chain)


def _need(command: str) -> str:
    """The command whose result another one needs, "" where it needs none.

    `screen` is no need: without it all keys are varied. Nor is what a stage of its own needs.
    """
    needs = {
        registry.stage(need).command
        for stage in registry.stages()
        if stage.command == command and not stage.of_its_own
        for need in stage.needs
    }
    return next(iter(needs - {command}), "")


def _measuring() -> set[str]:
    return {"tune", *(stage.command for stage in registry.stages() if stage.measures)}


def _is_there(task: Task, command: str) -> bool:
    """Whether a command has left what the next one needs."""
    prospect = Prospect.of(task.context.study, task.workload, task.subject, task.store)
    return all(
        s.is_done(prospect)
        for s in registry.stages()
        if s.command == command and not (s.prepares or s.of_its_own)
    )


def _is_up(study: Study, arch: str) -> bool:
    """Whether no lab has to be brought up. The store may know more architectures than the file."""
    try:
        return study.workers or arch not in study.clusters or bool(clusters_of(study, arch))
    except LabDownError:
        return False


def _parts(study: Study, cells: Sequence[Cell]) -> Iterator[tuple[str, Cell]]:
    """Cells put together where one command does for them: a title, and its options."""
    by_arch: dict[str, list[str]] = {}
    for arch, workload in cells:
        by_arch.setdefault(arch, []).append(workload)
    some = next(iter(by_arch.values()))
    if len(study.clusters) > 1 and set(cells) == set(product(study.clusters, some)):
        if _is_all(some, _tuned(study)):
            yield "", ("", "")
            return
        if len(some) == 1:
            yield f"{some[0]}: ", ("", some[0])
            return
    for arch, workloads in by_arch.items():
        if len(workloads) > 1 and _is_all(workloads, _tuned(study)):
            yield f"{arch}: ", (arch, "")
        else:
            yield from ((f"{arch} {name}: ", (arch, name)) for name in workloads)


def _tuned(study: Study) -> list[str]:
    """The workloads that a command is for which names none."""
    return [workload.name for workload in chosen_workloads(study, None)]


def _is_all(chosen: Collection[str], known: Collection[str]) -> bool:
    return set(chosen) == set(known)
