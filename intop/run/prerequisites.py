"""The commands that have to run before another one can, as lines that can be copied.

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
    """Return the error that says `why` a result is missing, and which commands make it.

    They end with `command`, after those that it still needs.
    """
    study, cell = task.context.study, (task.subject.arch, task.workload.name)
    commands = _chain(study, [cell[0]], command, lambda name: _is_there(task, name))
    text = f"{task.title}: {why}. Run: {command_line(study, commands, *cell)}"
    return ResultMissingError(text, why=why, about=cell, commands=commands)


def lab_down(arch: str, workload: str, error: LabDownError) -> ResultMissingError:
    """Return the same for a lab that is not up."""
    why = str(error).partition(":")[0]
    return ResultMissingError(str(error), why=why, about=(arch, workload), commands=["lab up"])


def labs_down(
    study: Study, archs: Iterable[str], workloads: Iterable[str]
) -> list[ResultMissingError]:
    """Return an error for each architecture and workload whose lab is not up.

    Where workers measure, no lab need be up here.
    """
    if study.workers:
        return []
    errors: list[ResultMissingError] = []
    for arch, workload in product(archs, workloads):
        try:
            clusters_of(study, arch)
        except LabDownError as error:
            errors.append(lab_down(arch, workload, error))
    return errors


def no_campaign(study: Study, archs: Collection[str], workloads: Collection[str], then: str) -> str:
    """Return what to say where there is no campaign, with the commands up to `then`."""
    wanted = _name(then)
    first = "collect" if wanted == "compare" else wanted if _need(wanted) else "tune"
    commands = _up_to(then, _chain(study, archs, first, lambda _: False))
    arch = "" if _is_all(archs, study.clusters) else next(iter(archs))
    workload = "" if _is_all(workloads, _tuned(study)) else next(iter(workloads))
    line = command_line(study, commands, arch, workload)
    return f"{study.store} has no campaign of {study.name} yet. Run: {line}"


def lines(study: Study, errors: Iterable[ResultMissingError], then: str) -> list[str]:
    """Return a line for each thing that is missing, with all commands up to `then`."""
    groups: dict[tuple[str, tuple[str, ...]], list[Cell]] = {}
    texts: list[str] = []
    for error in errors:
        if error.about is None:
            texts.append(str(error))
        else:
            groups.setdefault((error.why, error.commands), []).append(error.about)
    for (why, commands), cells in groups.items():
        for title, cell in _parts(study, cells):
            texts.append(f"{title}{why}. Run: {command_line(study, _up_to(then, commands), *cell)}")
    return texts


def command_line(study: Study, commands: Sequence[str], arch: str = "", workload: str = "") -> str:
    """Return commands of this study for a shell, each after the success of the one before.

    Without `arch` or `workload` they are for all.
    """
    return " && ".join(_command(study, command, arch, workload) for command in commands)


def _up_to(then: str, commands: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands and then this one, in place of the same without its options."""
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
    """Return the commands up to this one, without those whose result is there."""
    chain = [command]
    while (need := _need(chain[0])) and not is_there(need):
        chain.insert(0, need)
    if _measuring() & set(chain) and not all(_is_up(study, arch) for arch in archs):
        chain.insert(0, "lab up")
    return tuple(chain)


def _need(command: str) -> str:
    """Return the command whose result another one needs, or "".

    `screen` is no need, since without it all keys are varied. Stages of their own have none here.
    """
    needs = {
        registry.stage(need).command
        for stage in registry.of_tune()
        if stage.command == command
        for need in stage.needs
    }
    return next(iter(needs - {command}), "")


def _measuring() -> set[str]:
    return {"tune", *(stage.command for stage in registry.stages() if stage.measures)}


def _is_there(task: Task, command: str) -> bool:
    """Whether a command has stored what the next one needs."""
    prospect = Prospect.of(task.context.study, task.workload, task.subject, task.store)
    return all(
        s.is_done(prospect) for s in registry.of_tune() if s.command == command and not s.prepares
    )


def _is_up(study: Study, arch: str) -> bool:
    """Whether no lab has to be brought up. The store may know more architectures than the file."""
    try:
        return study.workers or arch not in study.clusters or bool(clusters_of(study, arch))
    except LabDownError:
        return False


def _parts(study: Study, cells: Sequence[Cell]) -> Iterator[tuple[str, Cell]]:
    """Yield cells that one command covers: their title, and its options."""
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
    """Return the workloads of a command that names none."""
    return [workload.name for workload in chosen_workloads(study, None)]


def _is_all(chosen: Collection[str], known: Collection[str]) -> bool:
    return set(chosen) == set(known)
