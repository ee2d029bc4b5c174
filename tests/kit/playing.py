"""Runs of an exported playbook by the real ansible."""

import sys
from pathlib import Path

from kit.own_machine import OwnMachine


class Playing:
    """Runs of one playbook on the machine itself."""

    def __init__(self, machine: OwnMachine, folder: Path) -> None:
        self.machine = machine
        self.folder = folder

    def write(self, text: str) -> None:
        (self.folder / "play.yml").write_text(text)

    def __call__(self, *words: str) -> tuple[str, int]:
        """What it says, and how many tasks changed something."""
        message = self.machine.run(
            *(sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local"),
            *(str(self.folder / "play.yml"), "-e", "intop_hosts=localhost", *words),
            ANSIBLE_HOME=str(self.folder / "ansible"),
            ANSIBLE_PIPELINING="1",
            ANSIBLE_PYTHON_INTERPRETER="/usr/bin/python3",
            ANSIBLE_NOCOLOR="1",
            PYTHONPATH="",
        )
        [recap] = [line for line in message.splitlines() if line.startswith("localhost ")]
        numbers = dict(word.split("=") for word in recap.split()[2:])
        assert "0" == numbers["failed"] == numbers["unreachable"], message
        return message, int(numbers["changed"])
