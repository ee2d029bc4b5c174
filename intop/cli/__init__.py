"""The command line: parse, wire, call, print, exit code. Nothing is decided here.

A feature has its commands in its own folder (`intop.features`); the others are here. Heavy
libraries are imported in the commands that need them, so that `--help` is instant.
"""

import gc
import io
import os
import signal
import sys
from collections import UserDict
from typing import Any

import click

from intop import features
from intop.command.exit_codes import INTERRUPTED
from intop.command.options import Group, examples
from intop.command.output import say, say_stopped
from intop.errors import IntopError
from intop.version import __version__

LONGEST_SUMMARY = 60
"""Characters of a command's summary at most, so that a terminal of 80 columns has all of it."""

OBJECTS_BEFORE_COLLECTING = 250_000
"""New objects after which Python looks for those that nobody needs, in place of its own 700."""

HEADINGS = {
    "Start": ("init", "workload", "doctor", "tune"),
    "Pipeline": (
        "pilot",
        "screen",
        "collect",
        "refine",
        "train",
        "search",
        "verify",
        "explain",
    ),
    "Deploy": ("plan", "canary", "apply", "status", "rollback", "export"),
    "Look": ("progress", "report", "compare", "models"),
    "Measure more": ("contest", "across", "causes", "sweep", "soak", "transfer"),
    "Lab": ("lab",),
    "Operations": ("worker", "store", "completion"),
}
"""The commands in the order of --help, by heading."""


OF_NO_FEATURE = {
    **{
        name: f"intop.cli.{name}:command"
        for name in (
            "completion",
            "doctor",
            "init",
            "models",
            "progress",
            "status",
            "tune",
            "worker",
        )
    },
    "lab": "intop.cli.lab:group",
    "store": "intop.cli.store:group",
}


class OnDemand(UserDict[str, Any]):
    """The commands by name. A module is imported when its command is asked for."""

    def __getitem__(self, name: str) -> Any:
        return features.load(super().__getitem__(name))


class Commands(Group):
    """The commands under their headings."""

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list for each heading, with summaries that are never cut."""
        width = max(map(len, self.commands))
        for heading, names in HEADINGS.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(LONGEST_SUMMARY))
                for name in names
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)


@click.group(
    cls=Commands,
    commands=OnDemand(OF_NO_FEATURE | features.commands()),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "intop init && intop tune                        your own cluster",
        "intop init --lab && intop lab up && intop tune  an embedded lab of this machine",
        "intop collect --arch arm                        one stage, one architecture",
        "intop compare x86 arm",
    )
    + "\n\nExit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 no gain, "
    "4 drift of what was applied, 130 interrupted.",
)
@click.version_option(__version__, prog_name="intop")
def cli() -> None:
    """Tune the Linux kernel parameters of nginx clusters, and prove the result by measurement.

    tune runs all stages of the pipeline. Each is a command, too, and goes on where it stopped.
    intop restores the hosts after every command. Only apply leaves values there.
    """


class _Stop:
    """The first signal stops the work, so that hosts are restored; later ones wait for that."""

    def __init__(self) -> None:
        self._stopping = False

    def __call__(self, _signal: int, _frame: object) -> None:
        if not self._stopping:
            self._stopping = True
            raise KeyboardInterrupt
        say("intop: stopping already; hosts that it holds are given back first")


def main() -> None:
    """The entry point: errors become one message and an exit code."""
    # Imports make many objects that stay. To look through them again and again takes a tenth of
    # the time of a short command.
    gc.set_threshold(OBJECTS_BEFORE_COLLECTING)
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    stop = _Stop()
    for name in signals:
        signal.signal(name, stop)
    try:
        # Without click's own handling; the code of --help and --version comes back as a value.
        code = cli(prog_name="intop", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        # It repeats words of the command, which may be names of files.
        words = io.StringIO()
        error.show(words)
        say(words.getvalue().rstrip("\n"))
        sys.exit(2)
    except IntopError as error:
        say(f"intop: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of the results, such as head, has ended.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort) as error:
        # A question that Ctrl-C ends raises Abort without a cause. It may come before any work.
        was_asked = isinstance(error, click.Abort) and error.__cause__ is None
        say_stopped(
            ""
            if was_asked
            else ". The hosts are as they were found, and everything that was measured "
            "is stored: the same command (tune with --resume) goes on from here"
        )
        sys.exit(INTERRUPTED)
    finally:
        # All is restored by now: only our own idle processes are still to end.
        for name in signals:
            signal.signal(name, signal.SIG_DFL)
