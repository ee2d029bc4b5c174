"""docs/commands.md: every command with its arguments, options and examples, from --help."""

import inspect
import re
from collections.abc import Iterator

import click

from intop.cli import cli
from scripts.references.markdown import MADE, anchor, table

DEFAULT = re.compile(r"\s*\[(?:default: (?P<value>[^\]]*)|(?P<required>required))\](?=$|\s+\[)")
EXAMPLES = "Examples:\n"
HEAD = """\
The output of `intop COMMAND --help` for all commands. The
[study's file](study.md) has a page of its own.
"""


def document(group: click.Group = cli) -> str:
    """The whole document; `group` stands for the program."""
    found = list(_commands(click.Context(group, info_name="intop", **group.context_settings)))
    overview = table(
        ["command", "what it does"],
        (
            [f"[`{context.command_path}`](#{anchor(context.command_path)})", _first_line(context)]
            for context in found[1:]
        ),
    )
    source = MADE.format(source="the help texts in `intop/cli/`")
    return "\n".join(["# Commands\n", source, HEAD, overview, *map(_section, found)])


def _commands(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name, command in sorted(context.command.commands.items()):
            if not command.hidden:
                yield from _commands(click.Context(command, info_name=name, parent=context))


def _section(context: click.Context) -> str:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## {context.command_path}\n", f"`{context.command_path} {usage}`\n", _help(command)]
    if rows := [row for p in command.params if (row := _row(p, context))]:
        parts.append(table(["option", "what it does", "default"], rows))
    shown, _, told = (command.epilog or "").partition("\n\n")
    if shown.startswith(EXAMPLES):
        lines = "\n".join(line.strip() for line in shown.removeprefix(EXAMPLES).splitlines())
        parts.append(f"```\n{lines}\n```\n")
    if told:
        parts.append(told + "\n")
    return "\n".join(parts)


def _row(parameter: click.Parameter, context: click.Context) -> list[str] | None:
    """An option of --help, with its default in a separate column."""
    if not isinstance(parameter, click.Option):
        return None
    if (record := parameter.get_help_record(context)) is None:
        return None
    words, text = record
    default = ""
    if match := DEFAULT.search(text):
        default = match["value"] or match["required"]
        text = text[: match.start()] + text[match.end() :]
    if parameter.envvar:
        text += f" Or by the variable `{parameter.envvar}`."
    return [f"`{words}`", " ".join(text.split()), default]


def _help(command: click.Command) -> str:
    """The help text as paragraphs: its lines are broken for a terminal."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "".join(" ".join(p.replace("\b", "").split()) + "\n\n" for p in paragraphs)[:-1]


def _first_line(context: click.Context) -> str:
    return context.command.get_short_help_str(limit=200)
