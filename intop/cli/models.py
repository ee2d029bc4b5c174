"""models: what saved models are."""

import sys
from pathlib import Path

import click

from intop.command.options import json_option, subcommand
from intop.command.output import say, show_result


@subcommand("models", "intop models models", "intop models models --json")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Describe the models in a folder.

    It shows the campaign, the target, the space and the errors of each. It only reads, and loads no
    model. The exit code is 1 when one of the files can't be used.
    """
    from intop import artefacts
    from intop.campaign.train import view as report
    from intop.errors import IntopError

    manifests, refused = {}, []
    for path in artefacts.paths(folder):
        try:
            manifests[path.name] = artefacts.read(path).manifest
        except IntopError as error:
            refused.append(error)
    show_result(
        manifests,
        lambda by_name: (report.manifest(*item) for item in by_name.items()),
        as_json=as_json,
    )
    for reason in refused:
        say(f"intop: {reason}")
    if refused:
        sys.exit(1)
