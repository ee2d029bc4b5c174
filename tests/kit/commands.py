"""Programs that tests run, intop's command line among them."""

import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from kit.forked import Forked


def ran(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a program says and how it ends; `options` are those of `subprocess.run`."""
    return subprocess.run(
        words, **({"capture_output": True, "text": True, "timeout": 120} | options)
    )


def intop(*words: object, before: str = "") -> subprocess.CompletedProcess[str]:
    """intop in a process of its own, without a terminal; `before` is Python to run first."""
    arguments = [str(word) for word in words]
    with tempfile.TemporaryDirectory(prefix="intop-said-") as output:
        prepare = partial(exec, before, {})
        process = Forked(arguments, folder=Path.cwd(), output=Path(output), prepare=prepare)
        out, err, code = process.communicate()
    return subprocess.CompletedProcess(arguments, code, out, err)
