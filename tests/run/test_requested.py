"""What a worker takes of a job: a study's own workloads, as they come out of the store."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from builders.shipped_studies import lab_study
from builders.stored import WORKLOAD
from intop.config.study import Study, load_study
from intop.domain.job import Job, JobSettings, Spot
from intop.domain.workload import Recording, Workload
from intop.errors import UsageError
from intop.resources import shipped
from intop.run.requested import NOT_COMPARED, requested_study, requested_workload
from intop.store.documents import document_of, read_document

STUDIES = [
    shipped("configs") / name
    for name in ("lab.toml", "paper.toml", "workloads.toml", "cluster.example.toml")
]


def job(workload: Workload, study: Study, **changes: object) -> Job:
    """A job of this workload, whose request has been in a store."""
    request = replace(JobSettings(workload=workload, tunes=study.tunes), **changes)  # type: ignore[arg-type]
    return Job(
        id=1,
        kind="open",
        campaign_id=1,
        spot=Spot(study=study.name, arch="x86", replica=0),
        workload=workload.name,
        request=read_document(JobSettings, document_of(request)),
    )


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_all_workloads_of_the_same_file_are_taken(path: Path) -> None:
    study = load_study(path)
    for workload in study.workloads.values():
        asked = job(workload, study)
        assert workload == requested_workload(asked, study)
        assert study == requested_study(asked, study)
        if workload.duration_s is None:  # as a pilot has chosen it
            timed = replace(workload, duration_s=11)
            assert timed == requested_workload(job(timed, study), study)


def test_the_folder_of_a_script_is_each_machines_own() -> None:
    ours = replace(WORKLOAD, script="/here/mine.lua")
    study = replace(lab_study(), workloads={"slt": ours})
    theirs = replace(WORKLOAD, script="/there/mine.lua")
    assert ours == requested_workload(job(theirs, study), study)
    with pytest.raises(UsageError, match="slt: script is 'other' where it was asked for, and 'min"):
        requested_workload(job(replace(theirs, script="/here/other.lua"), study), study)


def test_the_folder_of_a_recording_is_each_machines_own() -> None:
    recording = Recording(path="/here/a", seconds=60, requests=9, digest="0a1b2c3d")
    ours = replace(WORKLOAD, arrivals="recorded", recording=recording)
    study = replace(lab_study(), workloads={"slt": ours})
    theirs = replace(ours, recording=replace(recording, path="/there/a"))
    own = requested_workload(job(theirs, study), study).recording
    assert own is not None
    assert own.path == "/here/a"
    other = replace(ours, recording=replace(recording, digest="ffffffff"))
    with pytest.raises(UsageError, match="slt: recording is Recording"):
        requested_workload(job(other, study), study)


OTHER: dict[str, object] = {
    "kind": "dlt",
    "rate_rps": 61.0,
    "connections": 33,
    "threads": 2,
    "warmup_s": 2,
    "timeout_s": 3,
    "paths": ("/a",),
    "arrivals": "poisson",
    "clients": (replace(WORKLOAD.clients[0], headers=("A: c",)), WORKLOAD.clients[1]),
    "check": "length",
    "recording": Recording(path="/there/a", seconds=60, requests=9, digest="0a1b2c3d"),
    "only_path": "/a",
    "scheme": "https",
    "judged_by": "P90",
}


def test_every_other_field_is_compared() -> None:
    assert {f.name for f in fields(Workload)} == {*OTHER, *NOT_COMPARED, "name"}
    study = replace(lab_study(), workloads={"slt": WORKLOAD})
    for name, value in OTHER.items():
        theirs = replace(WORKLOAD, **{name: value})  # type: ignore[arg-type]
        setting = {"judged_by": "objective"}.get(name, name)
        with pytest.raises(
            UsageError, match=rf"^slt: {setting} is .* where it was asked for, and "
        ):
            requested_workload(job(theirs, study), study)
    for name, value in (("duration_s", 3), ("duration_s", None)):
        theirs = replace(WORKLOAD, **{name: value})  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"^slt: duration_s is "):
            requested_workload(job(theirs, study), study)
        assert theirs == requested_workload(job(theirs, study, tries_durations=True), study)
