"""Programs that tests run, intop's command line among them."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_LIBRARIES = ("pandas", "scipy.stats", "sklearn.ensemble", "optuna", "paramiko", "sqlalchemy")
_LIBRARIES += ("pydantic", "rich", "deap", "joblib", "jinja2", "alembic", "hdrh.histogram")
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([*_LIBRARIES, "intop.cli"])


def ran(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a program says and how it ends; `options` are those of `subprocess.run`."""
    return subprocess.run(
        words, **({"capture_output": True, "text": True, "timeout": 120} | options)
    )


def intop(*words: object, before: str = "") -> subprocess.CompletedProcess[str]:
    """intop in a process of its own, without a terminal; `before` is Python to run first.

    It is forked from one that has imported the libraries already, which else is most of its time.
    What starts processes of its own, as a fit does, must not be forked.
    """
    arguments = [str(word) for word in words]
    with tempfile.TemporaryDirectory(prefix="intop-forked-") as folder:
        environment = {**os.environ, "NO_COLOR": "1"}
        given = (arguments, before, folder, Path.cwd(), environment)
        process = _SERVER.Process(target=_main, args=given)
        process.start()
        process.join(120)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(arguments, 120)
        out, err = (Path(folder, name).read_text() for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(arguments, process.exitcode, out, err)


def _main(
    words: list[str], before: str, folder: str, current: Path, environment: dict[str, str]
) -> None:
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT), number)
    os.chdir(current)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["intop", *words]
    exec(before, {})
    from intop.cli import main

    main()
