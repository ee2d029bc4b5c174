"""TuneD's own loader on made-up profiles, in one process of the system's Python.

For each folder on its standard input it prints what TuneD would set, as JSON: a list of sections
in the order in which TuneD applies them, each its type and a list of options with their values, or
null.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PYTHON = "/usr/bin/python3"


class Loader:
    """The process that is asked."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def sections(self, root: Path) -> Any:
        """The sections that set sysctls with the profiles below a root; None where TuneD fails.

        Those of its scheduler have the options that set keys of the kernel, as keys.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{root}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def loader() -> Iterator[Loader]:
    """A process that is there as long as this is open."""
    process = subprocess.Popen(
        [PYTHON, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Loader(process)
    finally:
        process.communicate(timeout=30)


def _loaded(root: str) -> object:
    from tuned import profiles  # type: ignore[import-not-found]
    from tuned.plugins.plugin_scheduler import SchedulerPlugin  # type: ignore[import-not-found]
    from tuned.utils.commands import commands  # type: ignore[import-not-found]

    variables = profiles.variables.Variables()
    locator = profiles.Locator([f"{root}/usr/lib/tuned", f"{root}/etc/tuned"])
    made = profiles.Loader(locator, profiles.Factory(), profiles.Merger(), None, variables)
    try:
        profile = made.load(Path(f"{root}/etc/tuned/active_profile").read_text().strip())
        units = [unit for unit in profile.units.values() if unit.enabled]
        units.sort(key=lambda unit: int(unit.options.pop("priority", 0)))
    except Exception:  # noqa: BLE001  # whatever it is, TuneD sets nothing then
        return None
    unquote = commands().unquote
    keys = {
        option: f"kernel.{option}"
        for option in SchedulerPlugin._get_config_options()
        if option.startswith(("sched_", "numa_"))
    }
    return [
        [
            unit.type,
            [
                [keys[option], variables.expand(value)]
                if unit.type == "scheduler"
                else [option, variables.expand(unquote(value))]
                for option, value in unit.options.items()
                if unit.type == "sysctl" or option in keys
            ],
        ]
        for unit in units
        if unit.type in ("sysctl", "scheduler")
    ]


if __name__ == "__main__":
    import logging

    logging.disable(logging.CRITICAL)
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(_loaded(line.rstrip("\n"))), file=out, flush=True)
