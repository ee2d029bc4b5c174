"""Programs that tests run."""

import subprocess
from pathlib import Path
from typing import Any


def ran(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a program says and how it ends; `options` are those of `subprocess.run`."""
    return subprocess.run(
        words, **({"capture_output": True, "text": True, "timeout": 120} | options)
    )
