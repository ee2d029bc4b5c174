"""models: what saved models are."""

import sys
from pathlib import Path

import click

from intop.cli.options import Command, examples, json_option, print_result, say


@click.command(
    "models", cls=Command, epilog=examples("intop models models", "intop models models --json")
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Say what the models in a folder are: of which campaign, target and space, and how good.

    Reads only, and no model is loaded. The exit code is 1 when one of the files can't be used.
    """
    from intop import artefacts
    from intop.errors import IntopError
    from intop.report import models as report
    from intop.report.machine import to_json
    from intop.report.text import show

    manifests, refused = {}, []
    for path in artefacts.paths(folder):
        try:
            manifests[path.name] = artefacts.read(path).manifest
        except IntopError as error:
            refused.append(error)
    if as_json:
        print_result(to_json(manifests))
    else:
        show(*(report.manifest(name, found) for name, found in manifests.items()))
    for reason in refused:
        say(f"intop: {reason}")
    if refused:
        sys.exit(1)
