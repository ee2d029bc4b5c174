"""Light commands begin soon: each imports no library that its answer can do without."""

import json
import os
import sys
from pathlib import Path

import pytest

from builders.results import ORIGIN
from intop import artefacts
from intop.config.study import load_study
from intop.store import opened
from kit.commands import ran
from test_recorded_campaign import DATA, unpacked

ROOT = Path(__file__).parents[2]
LIBRARIES = {
    *("alembic", "catboost", "cryptography", "deap", "hdrh", "jinja2", "joblib", "lightgbm"),
    *("matplotlib", "numpy", "optuna", "pandas", "paramiko", "pydantic", "rich", "scipy"),
    *("scipy.stats", "sklearn", "skops", "sqlalchemy", "sqlalchemy.dialects.postgresql", "xgboost"),
    *("intop.hosts.guard", "intop.hosts.ssh", "intop.learn.samples", "intop.run.cluster_testbed"),
}
STORE = {"pydantic", "sqlalchemy"}
"""The store's rows, and the study's file."""
TEXT = {"rich"}
HOSTS = {"intop.hosts.guard"}
HISTOGRAMS = {"hdrh", "numpy"}
INTERVALS = {"numpy", "scipy"}
NEEDED = {
    "completion bash": set[str](),
    "models models": {"pydantic", "numpy"} | TEXT,
    "progress": STORE | TEXT,
    "progress --json": STORE,
    "progress --all": STORE | TEXT,
    "status": {"pydantic"} | TEXT | HOSTS,
    "rollback": {"pydantic"} | TEXT | HOSTS,
    "plan --arch x86": STORE | TEXT | HOSTS,
    "export --format sysctl": STORE | TEXT,
    "compare x86 arm": STORE | TEXT | INTERVALS,
    "report --json": STORE | HISTOGRAMS | INTERVALS,
    "report --output report.md": STORE | HISTOGRAMS | INTERVALS,
    "report --output report.html": STORE | HISTOGRAMS | INTERVALS | {"jinja2", "matplotlib"},
    "store check": STORE | TEXT | HISTOGRAMS,
    "store vacuum": STORE | TEXT,
}
"""The libraries that each light command may import, of those that take long."""
SCRIPT = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from intop.cli import main
main()
"""


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded study with its finished store, whose labs are not up."""
    folder = tmp_path_factory.mktemp("recorded")
    for path in DATA.glob("*.toml"):
        (folder / path.name).write_bytes(path.read_bytes())
    store = unpacked("finished", folder).rename(folder / load_study(DATA / "intop.toml").store)
    with opened(str(store)):
        pass
    (folder / "models").mkdir()
    artefacts.save(folder / "models" / "x86-slt.zip", ORIGIN, [])
    return folder


@pytest.mark.parametrize("words", NEEDED)
def test_a_light_command_imports_what_it_needs(words: str, folder: Path) -> None:
    assert imported(words, folder) <= NEEDED[words]


def test_the_time_of_a_training_to_come_is_reckoned_without_its_libraries(tmp_path: Path) -> None:
    for path in DATA.glob("*.toml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert imported("progress", tmp_path) <= NEEDED["progress"]


def imported(words: str, folder: Path) -> set[str]:
    """Return the libraries that a command imports, of those that take long."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = ran(sys.executable, "-c", SCRIPT, *words.split(), cwd=folder, env=environment)
    *messages, modules = done.stderr.splitlines()
    assert done.returncode in (0, 1), messages  # 1: the labs are not up, or there is no campaign
    assert "Traceback" not in done.stderr
    return LIBRARIES & set(json.loads(modules))
