"""The command line: parse, wire, call, print, exit code. Nothing is decided here.

A feature has its commands in its own folder (`intop.features`); the others are here. Heavy
libraries are imported in the commands that need them, so that `--help` is instant.
"""

import io
import os
import signal
import sys

import click

from intop import features
from intop.cli import completion, doctor, lab, models, status, store, tune, worker
from intop.command.exit_codes import INTERRUPTED
from intop.command.options import Group, examples
from intop.command.output import say, say_stopped
from intop.errors import IntopError
from intop.version import __version__


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "intop lab up && intop tune && intop lab down    the whole study on this machine",
        "intop doctor -c cluster.toml                    can my own clusters be measured?",
        "intop collect --arch arm                        one stage, one architecture",
        "intop compare x86 arm",
    )
    + "\n\nExit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 no gain, "
    "4 drift of what was applied, 130 interrupted.",
)
@click.version_option(__version__, prog_name="intop")
def cli() -> None:
    """Tune the Linux kernel parameters of Nginx clusters, and prove the result by measurement.

    The stages screen, collect, refine, train, search, verify and explain can be run one by one;
    tune runs them all. Each can be interrupted and picks up where it stopped. Hosts are always
    given back as they were; only apply leaves values there.
    """


for command in (
    *features.commands(),
    lab.group,
    doctor.command,
    tune.command,
    worker.command,
    status.command,
    models.command,
    store.group,
    completion.command,
):
    cli.add_command(command)


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
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    stop = _Stop()
    for name in signals:
        signal.signal(name, stop)
    try:
        # Without click's own handling; the code of --help and --version comes back as a value.
        code = cli(prog_name=completion.PROGRAM, standalone_mode=False)
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
    except (KeyboardInterrupt, click.Abort):
        say_stopped(
            ". The hosts are as they were found, and everything that was measured "
            "is stored: the same command (tune with --resume) goes on from here"
        )
        sys.exit(INTERRUPTED)
    finally:
        # All is restored by now: only our own idle processes are still to end.
        for name in signals:
            signal.signal(name, signal.SIG_DFL)
