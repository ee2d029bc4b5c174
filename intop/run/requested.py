"""The limits of what a job may ask of a worker: the loads of the worker's own study.

Whoever can write to the store can write a job. A job names a workload, and the changes that a
command may make. The rest is only compared with the worker's own file.
"""

import math
from dataclasses import fields, replace

from intop.config.source import short
from intop.config.study import Study
from intop.domain.job import Job
from intop.domain.workload import Workload
from intop.errors import UsageError

AGAIN = "Give this worker the file that the command has, and start it again"

NOT_COMPARED = ("duration_s", "script", "tuned")
"""Fields of a workload that make no other load, or are compared otherwise."""


def requested_study(job: Job, study: Study) -> Study:
    """Return a worker's study with the `tunes` that a job has narrowed, as --only does.

    Raises UsageError for a job that wants more of them than the study.
    """
    tunes = job.request.tunes
    if not tunes or not set(tunes) <= set(study.tunes):
        raise UsageError(
            f"asked is to tune {' and '.join(tunes) or 'nothing'}, and tunes in [study] of "
            f"{study.path} on this worker is {' and '.join(study.tunes)}. {AGAIN}"
        )
    kept = tuple(name for name in study.tunes if name in tunes)
    return study if kept == study.tunes else replace(study, tunes=kept)


def requested_workload(job: Job, study: Study) -> Workload:
    """Return the workload of a worker's own study that a job names, with the job's duration.

    Only a pilot gives it another duration than the study has. Raises UsageError for one that the
    study lacks or has otherwise, and for what no command asks of a worker.
    """
    request, name = job.request, job.workload
    if (own := study.workloads.get(name)) is None:
        raise UsageError(f"{study.path} on this worker has no [workload.{name}]. {AGAIN}")
    wanted = request.workload
    if own.duration_s is None or request.tries_durations:
        own = replace(own, duration_s=wanted.duration_s)
    if problem := _otherwise(wanted, own):
        raise UsageError(f"{name}: {problem} in {study.path} on this worker. {AGAIN}")
    limit = request.prune_above_ms
    if limit is not None and not (math.isfinite(limit) and limit > 0):
        raise UsageError(f"{name}: trials can't be pruned above {limit} ms")
    if job.planned is not None and job.planned.role == "soak":
        raise UsageError(f"{name}: a soak is measured by its own command, and by no worker")
    return own


def _otherwise(wanted: Workload, own: Workload) -> str:
    """Return the first difference between a workload that was asked for and the worker's, or ""."""
    pairs = {
        field.name: (getattr(wanted, field.name), getattr(own, field.name))
        for field in fields(Workload)
        if field.name not in NOT_COMPARED
    }
    # Each machine has its own folder. The script's text is compared with earlier trials.
    pairs |= {"script": (wanted.own_script, own.own_script)}
    pairs |= {"duration_s": (wanted.duration_s, own.duration_s)}
    pairs["objective"] = pairs.pop("judged_by")
    for name, (theirs, ours) in pairs.items():
        if theirs != ours:
            return f"{name} is {short(theirs)} where it was asked for, and {short(ours)}"
    return ""
