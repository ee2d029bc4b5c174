"""completion: the script that lets a shell complete intop's commands, options and values."""

import click
from click.shell_completion import get_completion_class

from intop.cli.options import subcommand
from intop.cli.output import print_result
from intop.errors import UsageError

PROGRAM, VARIABLE = "intop", "_INTOP_COMPLETE"
"""The name that is completed, and what the shell asks by."""


@subcommand(
    "completion",
    "intop completion bash > ~/.local/share/bash-completion/completions/intop",
    "intop completion zsh > ~/.zfunc/_intop    with fpath+=~/.zfunc before compinit",
    "intop completion fish > ~/.config/fish/completions/intop.fish",
    'eval "$(intop completion bash)"           this shell only',
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and values in a shell.

    Put it where the examples say and open another shell. --arch and --workload are completed with
    what the study's file in the current folder has.
    """
    made = get_completion_class(shell)
    if made is None:
        raise UsageError(f"there is no completion for {shell}")
    # Without click's own look at the version: it asks the bash of this machine, which need not be
    # the one that reads the script, and warns where there is none.
    found = made(context.find_root().command, {}, PROGRAM, VARIABLE)
    print_result(found.source_template % found.source_vars())
