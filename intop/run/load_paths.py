"""The paths of all loads on a cluster: which they are, and what is wrong with their answers."""

import shlex
from collections.abc import Iterable, Sequence

from intop.domain.cluster import Cluster
from intop.domain.fetched import Fetched
from intop.domain.workload import Workload
from intop.report.text import few


def paths_of(workloads: Iterable[Workload], cluster: Cluster) -> tuple[str, ...]:
    """What the workloads ask for, each path once; dlt adds a number to its path, as its load does
    (lua/dlt.lua).
    """
    found: dict[str, None] = {}
    for workload in workloads:
        for path in workload.asked(cluster.static_paths, cluster.dynamic_path):
            join = "&" if "?" in path else "?"
            found[f"{path}{join}r=1" if workload.name == "dlt" else path] = None
    return tuple(found)


def problems(cluster: Cluster, fetched: Iterable[Fetched]) -> list[str]:
    """A line for each thing that is wrong: the paths, what they answer, and what to do.

    Wrong are connections that fail, a status of 400 or more, and empty bodies.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for one in fetched:
        if one.complaint:
            found.setdefault((one.complaint, _hint(one)), []).append(one.path)
    return [
        _line(cluster, paths, f"{complaint}: {hint}") for (complaint, hint), paths in found.items()
    ]


def warnings(cluster: Cluster, fetched: Iterable[Fetched]) -> list[str]:
    """A line for redirects: they are answers, but hardly the ones that were meant."""
    paths = [one.path for one in fetched if one.is_redirect]
    text = "answers with a redirect, and the load doesn't follow it: name the path it leads to"
    return [_line(cluster, paths, text)] if paths else []


def _line(cluster: Cluster, paths: Sequence[str], text: str) -> str:
    """Such as: x86-load: /a, /b: answers 404: ... By hand, on that host: curl -i http://lb/a"""
    by_hand = shlex.join(["curl", "-i", f"{cluster.url}{paths[0]}"])
    return f"{cluster.load_generator.name}: {few(paths)}: {text}. By hand, on that host: {by_hand}"


def _hint(one: Fetched) -> str:
    """What to do about it."""
    if one.status >= 500:
        return "look at nginx's error log and at the backends"
    if one.status:
        return "correct the path in the study, or what the server has there"
    return "see that nginx and its backends are at work, and that url is right"
