"""completion: the script that lets a shell complete intop's commands, options and values."""

import click
from click.shell_completion import get_completion_class

from intop.command.options import subcommand
from intop.command.output import print_result
from intop.errors import UsageError

PROGRAM, VARIABLE = "intop", "_INTOP_COMPLETE"
"""The completed name, and the variable by which the shell asks."""


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
    """Print the script that completes commands in a shell.

    Put it where the examples say, and open another shell. It completes commands, options, and the
    architectures and workloads of the study in the current folder.
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise UsageError(f"there is no completion for {shell}")
    # Without click's own look at the version of bash here: another bash may read the script.
    script = completion(context.find_root().command, {}, PROGRAM, VARIABLE)
    print_result(script.source_template % script.source_vars())
