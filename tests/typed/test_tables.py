"""train --data, as it is typed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from intop.cli import _Stop
from kit.commands import intop, ran

ROOT = Path(__file__).parents[2]
QUICK = ["--family", "svr", "--folds", 2, "--trials", 1]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs whose time is that of the size, and threefold in one mode; one of them failed."""
    path = tmp_path / "runs.csv"
    rows = [
        f"{mode},{(3 if mode == 'slow' else 1) * 2**n},w{n % 2},{2**n}kb"
        for n in range(20)
        for mode in ("slow", "fast")
    ]
    path.write_text("\n".join(["mode,ms,worker,size", *rows, "fast,-1,w0,3kb"]))
    return path


def test_a_table_is_fitted_without_a_study_and_nothing_is_left_behind(runs: Path) -> None:
    words = ("--data", runs, "--target", "ms", "--ignore", "worker", "--failed", -1, *QUICK)
    # Not forked: it starts processes of its own, by a library that doesn't work in a forked one.
    done = ran(sys.executable, "-m", "intop", "train", *map(str, words), "--json", cwd=runs.parent)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert tuple(result["table"][name] for name in ("rows", "failed", "lost")) == (41, 1, 1)
    assert result["training"]["keys"] == ["mode", "size"]
    (error,) = result["training"]["errors"]
    assert error["family"] == "SVR"
    assert 0.9 < error["r2"] <= 1
    assert [runs] == list(runs.parent.iterdir())


def test_people_are_told_what_was_left_out_and_why(runs: Path) -> None:
    unfitted = (
        "from intop.learn import tuning; "
        "tuning.train_all = lambda *_, begin, **__: begin(5, 0) or []"
    )
    words = ("--data", runs, "--target", "2", "--failed", -1, *QUICK)
    done = intop("train", *words, before=unfitted)
    assert done.returncode == 0, done.stderr
    assert "runs.csv ms: 41 rows, 3 variables: 1 number (1 on a logarithmic" in done.stdout
    assert (
        "  nothing to learn from 1 failed trial; 1 configuration without others left" in done.stdout
    )
    assert "runs.csv ms: error of the models on configurations they have not seen" in done.stdout
    assert f"{runs}: train: 5 steps" in done.stderr


def test_a_wrong_table_is_one_sentence_on_stderr(runs: Path) -> None:
    done = intop("train", "--data", runs, "--target", "ms", *QUICK)
    assert (done.returncode, done.stdout) == (2, "")
    (message,) = done.stderr.splitlines()
    assert message.startswith(f"intop: {runs}:42: column 'ms': the target must be positive, since")


def test_a_stopped_fit_tells_nothing_of_hosts(runs: Path) -> None:
    script = "from intop.cli import main; main()"
    words = ["train", "--data", str(runs), "--target", "2", "--failed", "-1", "--trials", "1000"]
    with subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as going:
        assert going.stderr
        assert ": train: " in going.stderr.readline()
        going.send_signal(signal.SIGINT)
        _, message = going.communicate(timeout=60)
    assert (going.returncode, message) == (130, "intop: stopped; of a table nothing is stored\n")


def test_a_second_signal_claims_no_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    """The program `timeout` sends two; a fit of a table holds no host."""
    stop = _Stop()
    with pytest.raises(KeyboardInterrupt):
        stop(signal.SIGTERM, None)
    stop(signal.SIGTERM, None)
    assert "intop: stopping already; hosts that it holds are given back" in capsys.readouterr().err
