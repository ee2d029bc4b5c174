"""The options of a canary, by what they are about."""

import click

from intop.command.options import costs_option, together, winner_option
from intop.command.values import configurations

side_options = together(
    winner_option,
    click.option(
        "--configuration",
        default="",
        metavar="NAME",
        shell_complete=configurations,
        help="In place of what intop plan would deploy: winner, or a baseline. Values that need a "
        "restart of nginx are refused.",
    ),
    costs_option,
)
"""The configuration: `winner`, `configuration` and `accept_costs`."""

source_options = together(
    click.option(
        "--log",
        "log_path",
        default="",
        metavar="PATH",
        help="The access log on the host.  [default: the only one with $request_time and $status]",
    ),
    click.option(
        "--connections",
        type=click.Choice(["new", "all"]),
        help="Count only requests of connections that began in the block, or all.  [default: new, "
        "if the log has $connection]",
    ),
)
"""The traffic that counts: `log_path` and `connections`."""

block_options = together(
    click.option(
        "--pairs",
        type=click.IntRange(min=1, max=500),
        default=60,
        show_default=True,
        help="The most pairs of blocks. It ends earlier where the outcome is clear.",
    ),
    click.option(
        "--block-s",
        type=click.IntRange(min=1, max=3600),
        default=60,
        show_default=True,
        help="Seconds of a block that count.",
    ),
    click.option(
        "--washout-s",
        type=click.IntRange(min=0, max=600),
        default=10,
        show_default=True,
        help="Seconds after a switch that don't count.",
    ),
)
"""The blocks: `pairs`, `block_s` and `washout_s`."""

limit_options = together(
    click.option(
        "--margin",
        type=click.FloatRange(min=1.001, max=2),
        default=1.05,
        show_default=True,
        help="A ratio that matters. Smaller differences are none.",
    ),
    click.option(
        "--limit-times",
        type=click.FloatRange(min=1, min_open=True),
        default=3.0,
        show_default=True,
        help="Stop at once when P99 is so many times the default's.",
    ),
    click.option(
        "--limit-errors",
        type=click.FloatRange(min=0, max=100),
        default=1.0,
        show_default=True,
        metavar="POINTS",
        help="Stop at once when the share of failed requests is so many percentage points higher.",
    ),
)
"""The limits of a difference and of a harm: `margin`, `limit_times` and `limit_errors`."""

pause_options = together(
    click.option(
        "--between", metavar="HH:MM-HH:MM", help="Set the configuration only at these hours."
    ),
    click.option(
        "--alert",
        metavar="COMMAND",
        help="A command here that fails during an alert: then the configuration waits.",
    ),
)
"""Times without the configuration: `between` and `alert`."""

end_options = together(
    click.option(
        "--keep",
        is_flag=True,
        help="After a gain leave the values there, until the next reboot or intop rollback. Not "
        "where only nginx's times show the gain, and the values move these.",
    ),
    click.option(
        "--again", is_flag=True, help="Begin again; what was measured stays in the store."
    ),
)
"""The begin and the end: `keep` and `again`."""
