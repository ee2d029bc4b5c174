"""The workloads that a replica's load generators send, one at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intop.config.workload import load_problem
from intop.domain.sweep import is_in_reach
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Workload
from intop.errors import IntopError, UsageError
from intop.hosts.expected import ExpectedAnswers, expected_answers
from intop.hosts.fetch import fetch
from intop.hosts.load.types import LoadTool
from intop.hosts.rig import Rig, load_directory, load_tool, upload_load
from intop.resources import shipped
from intop.run import load_paths
from intop.run.comparability import of_workload
from intop.run.context import Task

if TYPE_CHECKING:
    from intop.domain.recording import Words


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A workload on one replica."""

    rig: Rig
    """The hosts; the load goes to the workload's URL."""
    tool: LoadTool
    paths: tuple[str, ...]
    expected: ExpectedAnswers
    """The answers that a right one has to equal."""
    conditions: Mapping[str, Any]
    """The conditions that follow from the workload (`comparability.OF_WORKLOAD`)."""
    words: "Words | None" = None
    """The requests of its recording; None without one."""


@dataclass(kw_only=True)
class Loads:
    """The workloads sent on a replica. Its load generators have the files of the last one."""

    task: Task
    rig: Rig
    _sent: dict[str, Sent] = field(default_factory=dict)
    _last: str = ""

    def ready(self, workload: Workload) -> Sent:
        """Put the files of a workload on the load generators, unless they have them.

        Its paths are asked for once in a session.

        Raises:
            UsageError: for a script that can't be read.
            IntopError: for unanswered paths of another workload than the task's.
            ResultMissingError: where its duration is not known.
            CommandError: without a load tool that can send it.
        """
        sent = self._sent.get(workload.name)
        if sent is None:
            sent = self._sent[workload.name] = self._first(workload)
        elif self._last != workload.name:
            upload_load(self.rig, (), sent.paths)
            sent.expected.put(self.rig)
        self._last = workload.name
        return sent

    def _first(self, workload: Workload) -> Sent:
        cluster = self.rig.cluster
        rig = self.rig.reached_at(workload.url(cluster.url))
        tool = load_tool(self.rig, workload, self.task.context.study.load_tool)
        paths = workload.asked(cluster.static_paths, cluster.dynamic_path)
        # Ours serve all workloads.
        scripts = [] if self._sent else sorted(shipped("lua").glob("*.lua"))
        scripts += [Path(workload.script)] if workload.script else []
        upload_load(self.rig, scripts, paths)
        if workload.name != self.task.workload.name and tool.name == "engine":
            self._check_paths(workload, rig)
        expected = (
            self._expected(workload, rig, paths) if tool.name == "engine" else ExpectedAnswers()
        )
        words = None
        if workload.recording is not None:
            from intop.config.recording import words_of

            words = words_of(workload.recording)
        return Sent(
            rig=rig,
            tool=tool,
            paths=paths,
            expected=expected,
            conditions=of_workload(workload, cluster, tool),
            words=words,
        )

    def _check_paths(self, workload: Workload, rig: Rig) -> None:
        """Ask for the paths of a workload that no doctor has examined. Raises IntopError."""
        generator, url = rig.load_generator, rig.cluster.url
        fetched = [
            answer
            for (http, headers), paths in load_paths.asked((workload,), rig.cluster).items()
            for answer in fetch(
                generator, load_directory(generator), url, paths, headers=headers, http=http
            )
        ]
        if problems := load_paths.problems(generator.address.name, url, fetched):
            lines = "\n  ".join(problems)
            raise IntopError(f"{self.task.title}: {workload.name} can't be measured:\n  {lines}")

    def _expected(self, workload: Workload, rig: Rig, paths: tuple[str, ...]) -> ExpectedAnswers:
        """Put a replica's answers of before its first trial on its load generators.

        They are asked for once in a session, since that may take seconds.
        """
        known, balancer = self.task.context.expected, rig.load_balancer.address.name
        place = (f"{self.task.subject.arch} {workload.name}", balancer)
        if place not in known:
            known[place] = expected_answers(rig, workload, paths)
        known[place].put(rig)
        return known[place]


def workload_of(planned: PlannedTrial, task: Task) -> Workload:
    """Return the workload of a planned trial: the task's, or another of the study.

    Raises UsageError for one that the study no longer has.
    """
    if not (name := planned.other_workload):
        return task.workload
    study = task.context.study
    if (workload := study.workloads.get(name)) is None:
        raise UsageError(
            f"{task.title}: trials under {name} are planned, and {study.path} has no "
            f"[workload.{name}] any more. Bring it back, or begin anew with --again"
        )
    # The plan has the duration that a pilot chose for it.
    return replace(workload, duration_s=planned.duration_s or workload.duration_s)


def load_of(planned: PlannedTrial, workload: Workload) -> Workload:
    """Return the load of a trial: its workload's, changed as the plan has it.

    Raises UsageError for a load that no command could have planned.
    """
    own: dict[str, Any] = {
        name: value
        for name in ("duration_s", "rate_rps", "connections")
        if (value := getattr(planned, name)) is not None
    }
    if planned.closed_loop:
        own["arrivals"] = "closed"
    if planned.path:
        own["only_path"] = planned.path
    load = replace(workload, **own)
    if problem := load_problem(load) or _beyond_sweeps(planned, workload):
        raise UsageError(
            f"{workload.name}: trial {planned.index} is planned with a load that the study doesn't "
            f"allow, {problem}. Begin anew with --new"
        )
    return load


def _beyond_sweeps(planned: PlannedTrial, workload: Workload) -> str:
    """Return what no sweep could have planned of a load, or ""."""
    if planned.path and workload.kind != "slt":
        return f"path: {workload.name} asks for no files"
    if planned.role == "soak":  # its rate is typed as a number of its own
        return ""
    for name in ("rate_rps", "connections"):
        point, own = getattr(planned, name), getattr(workload, name)
        if point is not None and not is_in_reach(point, own):
            return f"{name}: {point:g} is out of a sweep's reach, where the workload has {own:g}"
    return ""
