"""The command line within this process, on a pseudo-terminal where it matters."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest

from builders.campaigns import STUDY
from builders.testbeds import FakeTestbed, probe_of
from intop.cli import cli
from intop.command import running
from intop.domain.configuration import Configuration
from intop.resources import shipped


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study whose only cluster is a lab that isn't up."""
    path = tmp_path / "intop.toml"
    path.write_text(STUDY.format(folder=tmp_path))
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit code, standard output and error of a command."""

    def called(*words: object) -> tuple[int, str, str]:
        try:
            code = cli([str(word) for word in words], prog_name="intop", standalone_mode=False)
        except SystemExit as ended:
            code = ended.code
        return code or 0, *capsys.readouterr()

    return called


@pytest.fixture
def on_testbed(
    testbed: FakeTestbed, call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """A command on the testbed's task, whose trials are made up."""

    @contextmanager
    def context(*_: Any, **__: Any) -> Iterator[Any]:
        yield testbed.task.context

    monkeypatch.setenv("INTOP_CONFIG", str(shipped("configs") / "lab.toml"))
    monkeypatch.setattr(running, "stored_context", context)
    monkeypatch.setattr(running, "check_up", lambda *_: None)
    return call


@pytest.fixture
def quick(testbed: FakeTestbed) -> Configuration:
    """A configuration whose trials are five times quicker than the default's."""
    configuration = Configuration({"net.core.somaxconn": "64"})
    probe = probe_of({"net.ipv4.tcp_fin_timeout": "60", "net.core.somaxconn": "4096"})
    testbed.task.store.put(testbed.task.subject, probe)
    testbed.p99_us[configuration.digest] = 1_000
    return configuration


class Terminal:
    """A pseudo-terminal and what was written to it."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        self.stream = os.fdopen(slave, "w")
        self._read = b""
        self._reader = Thread(target=self._drain)
        self._reader.start()

    def _drain(self) -> None:
        try:
            while data := os.read(self._master, 65536):
                self._read += data
        except OSError:  # the other end was closed
            pass

    def text(self) -> str:
        """All of it; nothing can be written any more."""
        self.stream.close()
        self._reader.join()
        os.close(self._master)
        return self._read.decode()


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a piece of work writes to a terminal, by the environment's TERM and the like."""
    for name in ("NO_COLOR", "CLICOLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def shown(work: Callable[[], object], **environment: str) -> str:
        terminal = Terminal()
        with monkeypatch.context() as patched:
            for name, value in {"TERM": "xterm-256color", **environment}.items():
                patched.setenv(name, value)
            patched.setattr(sys, "stdout", terminal.stream)
            patched.setattr(sys, "stderr", terminal.stream)
            try:
                work()
            except click.ClickException as error:
                error.show()
            finally:
                text = terminal.text()
        return text

    return shown
