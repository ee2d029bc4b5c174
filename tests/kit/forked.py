"""intop's command line in processes that are forked from one that has imported all already.

That takes most of a command's time. What starts processes of its own, as a fit does, and what ends
by Python's own end is not for a forked one.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path

PATIENCE_S = 120.0
STREAMS = ("stdout", "stderr")

_FORKS = multiprocessing.get_context("forkserver")
_LIBRARIES = ("pandas", "scipy.stats", "sklearn.ensemble", "optuna", "deap", "matplotlib.pyplot")
_OURS = ("intop.cli", "intop.hosts.ssh", "intop.campaign.collected", "intop.document.text")
_FORKS.set_forkserver_preload([*_LIBRARIES, *_OURS, "intop.store", "intop.store.opening"])

_exit_codes = threading.Lock()
"""For whoever reads exit codes. Each can be read once, and a second reader gets 255. The library
reads the codes of all its processes whenever it starts another one, in any thread."""


class Forked:
    """intop in a process and a session of its own, without a terminal.

    Runs in `folder` with the present environment; what it prints goes to files in the folder
    `said`. `prepare` is called in it first.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        folder: Path,
        output: Path,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._output = output
        given = (words, folder, output, prepare, dict(os.environ))
        self._process = _FORKS.Process(target=_be_intop, args=given)
        with _exit_codes:
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Its exit code, or None while it runs; one below 0 is the signal that ended it."""
        with _exit_codes:
            return self._process.exitcode

    def communicate(self, patience_s: float = PATIENCE_S) -> tuple[str, str, int]:
        """Standard output, error and exit code of its end. When that takes long it is killed."""
        wait([self._process.sentinel], timeout=patience_s)
        self.kill()
        out, err = ((self._output / name).read_text() for name in STREAMS)
        code = self.poll()
        assert code is not None
        return out, err, code

    def kill(self) -> None:
        """By force; it may have ended already."""
        if self.poll() is None:
            self._process.kill()
            wait([self._process.sentinel])


def _be_intop(
    words: Sequence[str],
    folder: Path,
    output: Path,
    prepare: Callable[[], object] | None,
    environment: Mapping[str, str],
) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    for descriptor, name in enumerate(STREAMS, start=1):
        with (output / name).open("w") as stream:
            os.dup2(stream.fileno(), descriptor)
    if prepare is not None:
        prepare()
    sys.argv[:] = ["intop", *words]
    from intop.cli import main

    main()
