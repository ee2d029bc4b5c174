"""What a replica's load generators send: one workload at a time, whose files they have."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A workload on one replica: the tool that sends it, its paths, and what answers have to be.

    On its `rig` the load goes to the workload's URL. `conditions` are those that come from it
    (`comparability.OF_WORKLOAD`).
    """

    rig: Rig
    tool: LoadTool
    paths: tuple[str, ...]
    expected: ExpectedAnswers
    conditions: Mapping[str, Any]


@dataclass(kw_only=True)
class Loads:
    """The workloads that have been sent on a replica. Its load generators have the files of the
    last one.
    """

    task: Task
    rig: Rig
    _sent: dict[str, Sent] = field(default_factory=dict)
    _last: str = ""

    def ready(self, workload: Workload) -> Sent:
        """Put the files of a workload on the load generators, unless they have them.

        What its paths answer is asked for once in a session. Raises UsageError for a script that
        can't be read, IntopError for paths of another workload than the task's that are not
        answered, ResultMissingError where its duration is not known, CommandError without a load
        tool that can send it, and what connections do.
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
        return Sent(
            rig=rig,
            tool=tool,
            paths=paths,
            expected=expected,
            conditions=of_workload(workload, cluster, tool),
        )

    def _check_paths(self, workload: Workload, rig: Rig) -> None:
        """Of a workload that nobody looked at when the campaign began. Raises IntopError."""
        generator, url = rig.load_generator, rig.cluster.url
        fetched = [
            one
            for (http, headers), paths in load_paths.asked((workload,), rig.cluster).items()
            for one in fetch(
                generator, load_directory(generator), url, paths, headers=headers, http=http
            )
        ]
        if problems := load_paths.problems(generator.address.name, url, fetched):
            told = "\n  ".join(problems)
            raise IntopError(f"{self.task.title}: {workload.name} can't be measured:\n  {told}")

    def _expected(self, workload: Workload, rig: Rig, paths: tuple[str, ...]) -> ExpectedAnswers:
        """What a replica answered before its first trial, on its load generators.

        Asked for once in a session: over a long way it takes seconds, and `tune` connects twice.
        """
        known, balancer = self.task.context.expected, rig.load_balancer.address.name
        place = (f"{self.task.subject.arch} {workload.name}", balancer)
        if place not in known:
            known[place] = expected_answers(rig, workload, paths)
        known[place].put(rig)
        return known[place]


def workload_of(planned: PlannedTrial, task: Task) -> Workload:
    """The workload that a place is measured under: the task's, or another one of the study.

    Raises UsageError for one that the study no longer has.
    """
    if not (name := planned.other_workload):
        return task.workload
    study = task.context.study
    if (found := study.workloads.get(name)) is None:
        raise UsageError(
            f"{task.title}: trials under {name} are planned, and {study.path} has no "
            f"[workload.{name}] any more. Bring it back, or begin anew with --again"
        )
    # What a pilot chose for it stands in the plan.
    return replace(found, duration_s=planned.duration_s or found.duration_s)


def load_of(planned: PlannedTrial, workload: Workload) -> Workload:
    """The load of a trial: its workload's, with what its place has of its own.

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
    """Return what of a place's own load no sweep has, or ""."""
    if planned.path and workload.kind != "slt":
        return f"path: {workload.name} asks for no files"
    if planned.role == "soak":  # its rate is typed as a number of its own
        return ""
    for name in ("rate_rps", "connections"):
        point, own = getattr(planned, name), getattr(workload, name)
        if point is not None and not is_in_reach(point, own):
            return f"{name}: {point:g} is out of a sweep's reach, where the workload has {own:g}"
    return ""
