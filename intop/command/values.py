"""The values with which a shell completes --arch, --workload and baselines, by the study's file.

Nothing is checked and nothing is said: a file that can't be read has no values. A shell asks at
every press of a key, so nothing heavy is imported.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click


def archs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the architectures that the study has clusters of."""
    from intop.domain.cluster import MACHINES, native_arch, other_arch

    meant = {"native": native_arch(), "other": other_arch()}
    names = (meant.get(name, name) for name in _table(context, "cluster"))
    return [name for name in _fitting(names, incomplete) if name in MACHINES]


def workloads(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the workloads that the study has."""
    return _fitting(_table(context, "workload"), incomplete)


def baselines(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the baselines of intop, and the study's own."""
    from intop.resources import shipped

    folders = [shipped("configs") / "baselines"]
    own = _table(context, "study").get("baselines")
    if isinstance(own, str):
        folders.append(_path(context).parent / own)
    try:
        names = {path.stem for folder in folders for path in folder.glob("*.toml")}
    except OSError:
        return []
    return sorted(_fitting(names, incomplete))


def configurations(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return what `across` takes: the winner, and baselines."""
    winner = ["winner"] if "winner".startswith(incomplete) else []
    return winner + baselines(context, parameter, incomplete)


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin so, without control characters, since a shell prints them."""
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


def _table(context: click.Context, name: str) -> dict[str, Any]:
    """Return a table of the study's file, or an empty one."""
    try:
        with _path(context).open("rb") as file:
            table = tomllib.load(file).get(name)
    except (OSError, ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def _path(context: click.Context) -> Path:
    from intop.config.location import default_path

    return context.params.get("config") or default_path()
