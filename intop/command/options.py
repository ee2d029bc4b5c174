"""Options and help that commands share, and the study that they are about."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from intop.command import values
from intop.command.output import FIGURE_FORMAT, as_interrupt
from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.config.study import Study

ONLY = "intop.only"
"""Click's key for the value of --only."""
FIT_ON = "intop.fit_on"
"""Click's key for the value of --fit-on."""
LOCAL, DASK = "local", "dask="

F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose epilog keeps its lines: examples are there to be copied."""

    def format_epilog(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are."""
        if self.epilog:
            formatter.write("\n" + self.epilog.rstrip() + "\n")


class Group(click.Group):
    """A group of such commands, with examples of its own."""

    command_class = Command

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are."""
        if self.epilog:
            Command.format_epilog(self, context, formatter)  # type: ignore[arg-type]

    def invoke(self, context: click.Context) -> Any:
        """Run the command. Raises Abort after Ctrl-C, since click itself writes an empty line."""
        try:
            with as_interrupt():
                return super().invoke(context)
        except KeyboardInterrupt as error:
            raise click.Abort from error


Group.group_class = Group


def examples(*lines: str) -> str:
    """The epilog of a command."""
    return "Examples:\n" + "\n".join(f"  {line}" for line in lines)


def subcommand(name: str, *lines: str, more: str = "") -> Callable[[Callable[..., Any]], Command]:
    """A command of this name, with lines of examples, and `more` below them."""
    epilog = examples(*lines) + (f"\n\n{more}" if more else "")
    return click.command(name, cls=Command, epilog=epilog)


def together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Return several options as one, in this order."""

    def decorated(command: F) -> F:
        for option in reversed(decorators):
            command = option(command)
        return command

    return decorated


config_option = click.option(
    "--config",
    "-c",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="INTOP_CONFIG",
    help="The study's file.  [default: ./intop.toml]",
)
"""`config`: a path or None."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
"""`as_json`."""

arch_option = click.option(
    "--arch",
    type=click.Choice(["x86", "arm"]),
    help="Only this architecture.",
    shell_complete=values.archs,
)
"""`arch`: x86, arm or None for all."""

workload_option = click.option(
    "--workload",
    metavar="NAME",
    callback=lambda _context, _option, value: None if value == "all" else value,
    help="Only this workload of the file.",
    shell_complete=values.workloads,
)
"""`workload`: a name or None for all that are tuned."""

stage_options = together(config_option, arch_option, workload_option, json_option)
"""The options of every stage."""

winner_option = click.option(
    "--winner", is_flag=True, help="The whole winner, also where fewer keys will do."
)
"""`winner`."""

deployed_option = click.option(
    "--configuration",
    default="",
    metavar="NAME",
    shell_complete=values.configurations,
    help="What `intop across NAME` has measured, by its newest verdict: winner, or a baseline.",
)
"""`configuration`: a name, "" for the campaign's verdict."""

costs_option = click.option(
    "--accept-costs",
    is_flag=True,
    help="Also what lowers latency and breaks a guardrail of the file ([guardrails]).",
)
"""`accept_costs`."""

roll_out_options = together(
    click.option(
        "--persist",
        is_flag=True,
        help="Also write /etc/sysctl.d/99-zz-intop.conf, so that the values survive a reboot.",
    ),
    click.option(
        "--rounds",
        type=click.IntRange(min=2),
        help="How often both sides are measured on each host, at most.  [default: as often as for "
        "the verdict, or judge_pairs of the file if that is more]",
    ),
)
"""`persist` and `rounds`: what a plan says of its roll-out."""

samples_option = click.option(
    "--samples",
    type=click.IntRange(min=8),
    help="How many configurations to measure, in place of the file's number.",
)
"""`samples`: a number or None."""

new_option = click.option(
    "--new", is_flag=True, help="Start a new campaign; earlier ones stay in the store."
)
"""`new`."""

force_option = click.option(
    "--force", is_flag=True, help="Begin in spite of what intop doctor calls a PROBLEM."
)
"""`force`, for commands that may be the first of a campaign."""


def _keep_figure_format(context: click.Context, _option: click.Parameter, value: str) -> str:
    context.meta[FIGURE_FORMAT] = value
    return value


figures_options = together(
    click.option(
        "--figures",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Also draw the result, into files of this folder.",
    ),
    click.option(
        "--figure-format",
        type=click.Choice(["svg", "png"]),
        default="svg",
        expose_value=False,
        callback=_keep_figure_format,
        help="What the files of --figures are.  [default: svg]",
    ),
)
"""`figures`: a folder or None. Commands have no argument for the format: `say_figures` reads it."""


def models_option(help_text: str) -> Callable[[F], F]:
    """--models, as `models`: a folder or None."""
    return click.option(
        "--models",
        metavar="FOLDER",
        type=click.Path(path_type=Path, file_okay=False),
        help=help_text,
    )


def dry_run_option(instead: Callable[..., None]) -> Callable[[F], F]:
    """--dry-run: `instead` gets the command's options and runs in its place.

    It stands right above the command, below all other options.
    """

    def decorated(command: F) -> F:
        @wraps(command)
        def either(*, dry_run: bool, **options: Any) -> Any:
            return instead(**options) if dry_run else command(**options)

        flag = click.option(
            "--dry-run", is_flag=True, help="Only say what would be done where, and write nothing."
        )
        return cast("F", flag(either))

    return decorated


def _keep_only(context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    context.meta[ONLY] = value
    return value


only_option = click.option(
    "--only",
    type=click.Choice(["kernel", "nginx"]),
    expose_value=False,
    callback=_keep_only,
    help="Tune only sysctls or only nginx's directives, in place of tunes of the file.",
)
"""Commands have no argument for it: `study_of` reads it."""


def _keep_fit_on(context: click.Context, option: click.Parameter, value: str) -> str:
    if value != LOCAL and not (value.startswith(DASK) and value.removeprefix(DASK).strip()):
        raise click.BadParameter(
            f"{value!r} is neither {LOCAL} nor {DASK}ADDRESS", ctx=context, param=option
        )
    context.meta[FIT_ON] = value
    return value


fit_on_option = click.option(
    "--fit-on",
    metavar="WHERE",
    default=LOCAL,
    expose_value=False,
    callback=_keep_fit_on,
    help="Fit models in processes of this machine (local), or on the Dask cluster whose "
    "scheduler is at ADDRESS (dask=ADDRESS), with the same results.  [default: local]",
)
"""Commands have no argument for it: `dask_address` reads it."""


def dask_address() -> str | None:
    """Return the address of the Dask scheduler of --fit-on; None for this machine.

    Raises UsageError where no cluster is there that would compute the same.
    """
    context = click.get_current_context(silent=True)
    value = context.meta.get(FIT_ON, LOCAL) if context else LOCAL
    if value == LOCAL:
        return None
    from intop.learn.dask_cluster import check

    address = str(value).removeprefix(DASK)
    check(address)
    return address


def study_of(config: Path | None) -> "Study":
    """The study in the file that was asked for. Raises ConfigurationError, UsageError."""
    from intop.config.location import default_path
    from intop.config.study import load_study

    path = config or default_path()
    if not path.exists():
        where = f"{path}: no such file" if config else "there is no intop.toml in this folder"
        raise UsageError(
            f"{where}. Write one: intop init (your own hosts), or intop init --lab (an embedded "
            "lab)"
        )
    study = load_study(path)
    context = click.get_current_context(silent=True)
    only = context.meta.get(ONLY) if context else None
    if only == "nginx":
        for arch, server in study.without_nginx.items():
            raise UsageError(
                f"--only nginx: the server of {arch} is {server.title}, and directives are tuned "
                "for nginx only"
            )
    return replace(study, tunes=(only,)) if only else study
