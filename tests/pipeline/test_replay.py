"""A log that becomes a recording, whose windows a real lab is measured under."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intop.config.study import load_study
from intop.lab.state import DISKS_FOLDER
from intop.store import Subject, opened
from kit.studies import Study

Make = Callable[..., Any]
PATHS = {"/about.html": 12, "/css/print.css": 3, "/img/icon-1.png": 1}
START = 1_795_773_600.0
LAB = """\
access_log = "disk"
clients = [{ name = "near", share = 0.7 }, { name = "far", share = 0.3, link = { delay_ms = 5 } }]
"""
FORMAT = '$msec "$request" $status $request_time'


def log(path: Path) -> Path:
    """Ten minutes of 30 requests/s that come in bursts."""
    draws = random.Random(1)
    begins = [draws.uniform(0, 600) for _ in range(1500)]
    times = sorted(begin + draws.uniform(0, 0.3) for begin in begins for _ in range(12))
    names = draws.choices(list(PATHS), list(PATHS.values()), k=len(times))
    path.write_text(
        "".join(
            f'{START + at:.3f} "GET {name} HTTP/1.1" 200 0.002\n'
            for at, name in zip(times, names, strict=True)
        )
    )
    return path


def replays(study: Study) -> None:
    """Give the study a lab that logs, and the workload of a log."""
    words = ("--format", FORMAT, "--name", "shop", "--record", "shop.recording")
    text, _ = study.run("workload", "learn", str(log(study.folder / "a.log")), *words)
    file = study.folder / "intop.toml"
    own = file.read_text().replace("load_cpus =", f"{LAB}load_cpus =")
    own = re.sub(r"\[workload\.slt\].*(?=\[budget\])", "", own, flags=re.DOTALL)
    file.write_text(f"{own}\n{text}".replace("[workload.shop]", "[workload.shop]\nduration_s = 2"))


@pytest.mark.long
def test_arms_meet_the_same_windows_in_each_round(make_study: Make) -> None:
    study = make_study("x86")
    study.run("lab", "down")
    replays(study)
    study.run("lab", "up")
    study.run("contest", "ubuntu-18.04", "--rounds", "3", expected=(0, 3))
    with opened(str(study.folder / "small.db")) as store:
        (campaign,) = store.campaigns()
        trials = store.trials(Subject(campaign=campaign, arch="x86", workload="shop"), "contest")
    assert [trial.detail for trial in trials if not trial.usable] == []
    due = defaultdict(list)
    for trial in trials:
        due[trial.planned.round].append(trial.histogram.total if trial.histogram else 0)
    assert all(first == second > 0 for first, second in due.values())
    assert len({first for first, _ in due.values()}) == 3
    recording = load_study(study.folder / "intop.toml").workloads["shop"].recording
    assert recording is not None
    assert {trial.conditions.traffic.partition(";")[0] for trial in trials} == {
        f"recorded arrivals ({recording.digest})"
    }
    text = (DISKS_FOLDER / study.labs[0] / "access.log").read_text()
    asked = Counter(re.findall(r'"GET (\S+) HTTP', text))
    assert sum(asked.values()) >= sum(map(sum, due.values()))
    assert all(asked[path] > 0 for path in PATHS)
    assert asked["/about.html"] > 2 * asked["/css/print.css"]
