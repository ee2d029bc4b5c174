"""intop as a user installs it: `pip install .`, on a controller without nginx, LuaJIT and QEMU."""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from intop.lab.cluster import cluster

Make = Callable[..., Any]
ROOT = Path(__file__).parents[2]
HOSTS_ONLY = ("nginx", "luajit", "qemu-system-aarch64", "qemu-system-x86_64")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, in an environment with nothing else, of a copy that `pip` may build in."""
    folder = tmp_path_factory.mktemp("controller")
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            (folder / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "copy" / name)
    # Our own pip does it from outside.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "env/bin/python"]
    pip += ["install", "--quiet", "--no-compile"]
    subprocess.run([*pip, "--constraint", ROOT / "constraints.txt", folder / "copy"], check=True)
    return folder / "env/bin/intop"


def toml(name: str, values: dict[str, Any]) -> str:
    known = {k: v for k, v in values.items() if v and k not in ("role", "jump")}
    return "\n".join([f"[{name}]", *(f"{k} = {json.dumps(v)}" for k, v in known.items()), ""])


def test_doctor_of_two_hosts_needs_no_nginx_luajit_or_qemu_here(
    make_study: Make, installed: Path, tmp_path: Path
) -> None:
    made = make_study("x86")
    result = cluster(made.labs[0])
    balancer = asdict(result.load_balancer)
    study = "\n".join(
        [
            "[study]",
            'name = "two-hosts"',
            toml(
                "cluster.x86",
                {
                    "url": result.url,
                    "server_restart": result.server_restart,
                    "static_paths": list(result.static_paths),
                    "dynamic_path": result.dynamic_path,
                    "machines": [platform.machine()],
                },
            ),
            toml("cluster.x86.load_generator", asdict(result.load_generator)),
            toml("cluster.x86.load_balancer", balancer),
            "["
            + toml("cluster.x86.backends", {**balancer, "name": "served-by-itself"}).replace(
                "]", "]]", 1
            ),
            "[workload.slt]\nrate_rps = 100\nconnections = 8\nthreads = 2\nduration_s = 2\n",
        ]
    )
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "intop.toml").write_text(study)
    here = [path for name in HOSTS_ONLY if (path := shutil.which(name))]
    assert len(here) > 2, "the machine of this test has them: they are hidden from the controller"
    hidden = "".join(f"mount --bind /dev/null {path}; " for path in here)
    check = "".join(f"! {path} -v 2>/dev/null || exit 9; " for path in here)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{hidden}{check}exec {installed} doctor --json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (diagnosis,) = json.loads(done.stdout)
    assert diagnosis["problems"] == []
    assert len(diagnosis["hosts"]) == 3
    assert len(diagnosis["offered"]) > 60
    assert [path.name for path in folder.iterdir()] == ["intop.toml"]
