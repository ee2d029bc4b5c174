"""A study's recording: what it becomes, and what is wrong with one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from builders.config_files import DURATION, SLT, edited, problems, study
from builders.recordings import words_of, written
from intop.config.recording import HEAD_BYTES, VERSION
from intop.config.recording import words_of as words_in
from intop.domain.recording import paths_of, times_us
from intop.errors import UsageError

TIMES_US, PATHS = np.array([0, 5, 5, 2_000_000]), np.array([0, 2, 3, 1])
WORDS = words_of(TIMES_US, PATHS)
LINES = """\
arrivals = "recorded"
recording = "own.recording"
paths = { "/a" = 9, "/b" = 3, "/c" = 1, "/d" = 1 }
"""
STUDY = edited(DURATION, f"{DURATION}\n{LINES}")
MAKE = "make it again: intop workload learn LOG --record FILE"


def test_a_workload_has_the_recording_beside_its_study(tmp_path: Path) -> None:
    path = written(tmp_path / "own.recording", WORDS, seconds=4)
    slt = study(tmp_path, STUDY).workloads["slt"]
    assert slt.recording is not None
    assert (slt.recording.path, slt.recording.requests) == (str(path), 4)
    assert (slt.recording.seconds, slt.recording.rate_rps) == (4, 1)
    assert slt.traffic == f"recorded arrivals ({slt.recording.digest})"
    words = words_in(slt.recording)
    assert (times_us(words).tolist(), paths_of(words).tolist()) == (
        TIMES_US.tolist(),
        PATHS.tolist(),
    )


def test_another_recording_is_another_load(tmp_path: Path) -> None:
    def traffic(seconds: float, first_us: int = 0) -> str:
        words = words_of(np.array([first_us, *TIMES_US[1:]]), PATHS)
        written(tmp_path / "own.recording", words, seconds)
        return study(tmp_path, STUDY).workloads["slt"].traffic

    assert traffic(4) == traffic(4)
    assert len({traffic(4), traffic(5), traffic(4, first_us=1)}) == 3


def test_pages_made_on_request_have_recorded_times_alone(tmp_path: Path) -> None:
    written(tmp_path / "own.recording", WORDS, seconds=4)
    lines = 'arrivals = "recorded"\nrecording = "own.recording"'
    text = edited(DURATION, f"{DURATION}\n{lines}", edited(SLT, "[workload.dlt]"))
    assert study(tmp_path, text).workloads["dlt"].recording is not None


def patched(at: int, new: bytes) -> Callable[[bytes], bytes]:
    return lambda old: old[:at] + new + old[at + len(new) :]


def word(time_us: int, path: int) -> bytes:
    return words_of(np.array([time_us]), np.array([path])).tobytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda _: b"", f"is no recording of intop: {MAKE}"),
        (lambda _: b"192.0.2.1 - - [27/Nov", f"is no recording of intop: {MAKE}"),
        (lambda old: old[: HEAD_BYTES - 1], f"is no recording of intop: {MAKE}"),
        (lambda old: old[:HEAD_BYTES], f"has no request: {MAKE}"),
        (lambda old: old[:-3], f"is cut off after request 3: {MAKE}"),
        (
            lambda old: old.replace(b"recording 1", b"recording 7"),
            f"is a recording of version 7, and this intop reads version {VERSION}: {MAKE}",
        ),
        (
            patched(HEAD_BYTES + 8, word(3_000_000, 2)),
            f"request 3: it is earlier than the request before it: {MAKE}",
        ),
        (
            patched(HEAD_BYTES + 24, word(4_000_000, 1)),
            f"request 4: its time is after the end of the recording: {MAKE}",
        ),
        (patched(HEAD_BYTES + 16, word(5, 4)), f"request 3: its path is none of the 4: {MAKE}"),
        (lambda old: old.replace(b"4000000 us", b"0000000 us"), f"it covers no time: {MAKE}"),
    ],
)
def test_a_damaged_recording_says_where_and_what_to_do(
    tmp_path: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    path = written(tmp_path / "own.recording", WORDS, seconds=4)
    before = path.read_bytes()
    path.write_bytes(damage(before))
    assert path.read_bytes() != before
    (problem,) = problems(tmp_path, STUDY)
    assert problem.startswith("study.toml:11: workload.slt.recording: ")
    assert problem.endswith(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('recording = "own.recording"\n', "", "must be a file of intop workload learn --record"),
        ('"own.recording"', "5", "must be a file of intop workload learn --record, beside"),
        ('"own.recording"', '"other"', "there is no file "),
        ('"recorded"', '"poisson"', 'it is for arrivals = "recorded", not "poisson"'),
        ('arrivals = "recorded"\n', "", 'it is for arrivals = "recorded", not "constant"'),
        (
            ', "/d" = 1',
            "",
            "own.recording counts 4 paths, and the workload has 3: copy the paths again",
        ),
        ('paths = { "/a" = 9, "/b" = 3, "/c" = 1, "/d" = 1 }\n', "", "it needs the workload's pa"),
    ],
)
def test_what_does_not_fit_a_recording_is_one_problem(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    written(tmp_path / "own.recording", WORDS, seconds=4)
    (problem,) = problems(tmp_path, edited(old, new, STUDY))
    assert f"workload.slt.recording: {message}" in problem


def test_a_recording_that_changes_under_a_session_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "own.recording", WORDS, seconds=4)
    recording = study(tmp_path, STUDY).workloads["slt"].recording
    assert recording is not None
    written(path, WORDS[:3], seconds=4)
    with pytest.raises(UsageError, match=r"own\.recording has changed meanwhile"):
        words_in(recording)
    path.unlink()
    with pytest.raises(UsageError, match="can't be read any more"):
        words_in(recording)
