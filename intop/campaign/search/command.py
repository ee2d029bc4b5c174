"""search: promising configurations by the models."""

from pathlib import Path
from typing import Any

import click

from intop.command.options import (
    figures_options,
    models_option,
    only_option,
    stage_options,
    subcommand,
)
from intop.command.running import connect_to_none, run_stage
from intop.errors import UsageError


@subcommand(
    "search",
    "intop search",
    "intop search --workload dlt",
    "intop search --models models",
    "intop search --objectives p99,cpu --figures figures",
    "intop search --algorithm annealing",
)
@stage_options
@only_option
@figures_options
@models_option("Search models saved in this folder, in place of fitting the campaign's.")
@click.option(
    "--algorithm",
    type=click.Choice(["genetic", "annealing", "swarm", "evolution", "random"]),
    default="genetic",
    show_default=True,
    help="How to search; the others are there to be compared with.",
)
@click.option(
    "--objectives",
    metavar="NAME,NAME",
    help="Search for the front of two or three of p99, cpu and throughput, by NSGA-II.",
)
def command(models: Path | None, algorithm: str, objectives: str | None, **options: Any) -> None:
    """Search the models for promising configurations.

    The default is a genetic algorithm. With --objectives the result is a front of trade-offs,
    beside the candidates that verify measures.
    """
    if objectives is not None:
        _search_front(objectives, models, algorithm, **options)
        return
    from intop.campaign.search import view as report
    from intop.campaign.search.stage import search as stage

    run_stage(
        lambda task: stage(task, models, algorithm),
        report.search,
        connect=connect_to_none,
        **options,
    )


def _search_front(objectives: str, models: Path | None, algorithm: str, **options: Any) -> None:
    from intop.campaign.search.pareto import chosen_objectives, search_front
    from intop.campaign.search.view import tradeoff

    if models is not None:
        raise UsageError("--models has models of latency only: leave it out with --objectives")
    if algorithm != "genetic":
        raise UsageError(f"--objectives is searched by NSGA-II: leave out --algorithm {algorithm}")
    chosen = chosen_objectives(objectives)
    run_stage(lambda task: search_front(task, chosen), tradeoff, connect=connect_to_none, **options)
