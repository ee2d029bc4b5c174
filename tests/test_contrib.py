"""The examples for running workers elsewhere, each checked by the tool at hand.

No container is built: an engine is not on every machine that runs the tests.
"""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from intop.cli.worker import command

ROOT = Path(__file__).parents[1]
CONTRIB = ROOT / "contrib"


def check_worker(words: list[str]) -> None:
    """Whether `intop worker` has these options. Variables stand for words."""
    context = command.make_context("worker", list(words), resilient_parsing=False)
    assert context.params["configs"]


def containerfile() -> list[tuple[str, str]]:
    """The instructions, with what follows them."""
    text = (CONTRIB / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", "")
    return [(i, rest) for i, _, rest in (s.partition(" ") for s in joined.splitlines() if s)]


def test_the_container_runs_a_worker_as_a_user_without_rights() -> None:
    instructions = containerfile()
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert known == {name for name, _ in instructions}
    assert instructions[0][0] == "FROM"
    result = dict(instructions)
    assert json.loads(result["ENTRYPOINT"]) == ["intop", "worker"]
    check_worker(json.loads(result["CMD"]))
    assert int(result["USER"]) != 0
    run = subprocess.run(["sh", "-n", "-c", result["RUN"]], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    (extra,) = re.findall(r"/src\[(\w+)\]", result["RUN"])
    assert re.search(rf"^{extra} = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (CONTRIB / "intop-worker@.service").read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, stage, *words = shlex.split(line)
    assert (program, stage) == ("/usr/local/bin/intop", "worker")
    check_worker(words)
    unit = tmp_path / "intop-worker@.service"
    # systemd looks for the program, too.
    unit.write_text(text.replace(program, sys.executable))
    assert verified(unit) == ""
    unit.write_text(unit.read_text().replace("RestartSec=", "RestartSeconds="))
    assert "RestartSeconds" in verified(unit)


def verified(unit: Path) -> str:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True
    )
    return done.stdout + done.stderr


@pytest.fixture
def deployment() -> Any:
    return yaml.safe_load((CONTRIB / "kubernetes.yaml").read_text())


def test_kubernetes_takes_the_deployment(deployment: Any) -> None:
    schema = json.loads((ROOT / "tests" / "data" / "kubernetes" / "deployment.json").read_text())
    jsonschema.validate(deployment, schema)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    check_worker(container["args"])
    container["imagePolicy"] = "Always"
    with pytest.raises(jsonschema.ValidationError, match="imagePolicy"):
        jsonschema.validate(deployment, schema)


def test_the_deployment_mounts_what_it_names_and_selects_its_own_pods(deployment: Any) -> None:
    spec = deployment["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert [v["name"] for v in pod["volumes"]] == [m["name"] for m in container["volumeMounts"]]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    (port,) = container["ports"]
    assert f"--metrics-port={port['containerPort']}" in container["args"]


DIRECTIVES = {
    "job-name": r"[\w-]+",
    "array": r"\d+-\d+",
    "ntasks": r"\d+",
    "cpus-per-task": r"\d+",
    "mem": r"\d+[KMGT]",
    "time": r"\d+:\d\d:\d\d",
    "signal": r"[A-Z]+@\d+",
    "output": r"[\w%.-]+",
}
"""What sbatch(1) says of those that are used."""


def test_bash_and_sbatch_take_the_script(tmp_path: Path) -> None:
    script = CONTRIB / "slurm.sh"
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    text = script.read_text()
    lines = text.splitlines()
    places = [n for n, line in enumerate(lines) if line.startswith("#SBATCH")]
    # sbatch reads no further than the first command.
    assert all(line.startswith("#") for line in lines[: places[-1]])
    result = dict(re.findall(r"^#SBATCH --([\w-]+)=(.*)$", text, re.MULTILINE))
    assert len(places) == len(result)
    for name, value in result.items():
        assert re.fullmatch(DIRECTIVES[name], value), name
    # What the script starts, with a program in srun's place that shows it.
    (tmp_path / "srun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "srun").chmod(0o755)
    task = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2", "PATH": f"{tmp_path}:/bin"}
    started = subprocess.run(
        ["bash", script, "web.toml"], env=task, capture_output=True, text=True, check=True
    )
    program, stage, *words = started.stdout.splitlines()
    assert (program, stage) == ("intop", "worker")
    assert {"web.toml", "slurm-7-2"} < set(words)
    check_worker(words)
