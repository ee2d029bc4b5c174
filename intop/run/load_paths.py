"""The paths of all loads on a cluster: which they are, and what is wrong with their answers."""

import shlex
from collections.abc import Iterable, Sequence

from intop.domain.cluster import Cluster
from intop.domain.fetched import NO_HTTP2, Fetched
from intop.domain.workload import Http, Workload
from intop.report.words import few

Manner = tuple[Http, tuple[str, ...]]
"""How a class of clients asks: the version of HTTP, and its headers."""


def asked(workloads: Iterable[Workload], cluster: Cluster) -> dict[Manner, tuple[str, ...]]:
    """What the workloads GET, each path once, by how a class of clients asks.

    Clients of another method are left out: their requests may change something on the server.
    """
    found: dict[Manner, dict[str, None]] = {}
    for workload in workloads:
        for path in workload.asked(cluster.static_paths, cluster.dynamic_path):
            for clients in workload.clients:
                if clients.method == "GET":
                    manner = (clients.http, clients.headers)
                    found.setdefault(manner, {})[numbered(workload, path)] = None
    return {manner: tuple(paths) for manner, paths in found.items()}


def numbered(workload: Workload, path: str) -> str:
    """A path as the workload asks for it first: dlt adds a number (lua/dlt.lua)."""
    if workload.kind != "dlt":
        return path
    return f"{path}{'&' if '?' in path else '?'}r=1"


def problems(generator: str, url: str, fetched: Iterable[Fetched]) -> list[str]:
    """A line for each thing that is wrong: the paths, what they answer, and what to do.

    `generator` is the load generator that asked. Wrong are connections that fail, a status of 400
    or more, and empty bodies.
    """
    alike: dict[tuple[str, Manner], list[Fetched]] = {}
    for one in fetched:
        if one.complaint:
            alike.setdefault((one.complaint, (one.http, one.headers)), []).append(one)
    return [
        _line(generator, url, some, f"{complaint}: {_hint(some[0])}")
        for (complaint, _), some in alike.items()
    ]


def warnings(generator: str, url: str, fetched: Iterable[Fetched]) -> list[str]:
    """A line for redirects: they are answers, but hardly the ones that were meant."""
    some = [one for one in fetched if one.is_redirect]
    text = "answers with a redirect, and the load doesn't follow it: name the path it leads to"
    return [_line(generator, url, some, text)] if some else []


def _line(generator: str, url: str, some: Sequence[Fetched], text: str) -> str:
    """Such as: x86-load: /a, /b: answers 404: ... By hand, on that host: curl -i http://lb/a"""
    options = [word for header in some[0].headers for word in ("-H", header)]
    if some[0].http == "2":
        options.insert(0, "--http2" if url.startswith("https") else "--http2-prior-knowledge")
    by_hand = shlex.join(["curl", "-i", *options, f"{url}{some[0].path}"])
    paths = few([one.path for one in some])
    return f"{generator}: {paths}: {text}. By hand, on that host: {by_hand}"


def _hint(one: Fetched) -> str:
    """What to do about it."""
    if one.problem == NO_HTTP2:
        return (
            "switch it on there (nginx: listen ... http2; from 1.25.1 on http2 on), or leave "
            'http = "2" out of the study'
        )
    if one.status >= 500:
        return "look at the server's error log and at the backends"
    if one.status:
        return "correct the path in the study, or what the server has there"
    return "see that the server and its backends are at work, and that url is right"
