"""The paths of all loads on a cluster, and the problems of their answers."""

import shlex
from collections.abc import Iterable, Sequence

from intop.domain.cluster import Cluster
from intop.domain.fetched import NO_HTTP2, Fetched
from intop.domain.workload import Http, Workload
from intop.words import few

Manner = tuple[Http, tuple[str, ...]]
"""The version of HTTP and the headers of a class of clients."""


def asked(workloads: Iterable[Workload], cluster: Cluster) -> dict[Manner, tuple[str, ...]]:
    """Return the paths that the workloads GET, each once for each manner of asking.

    Clients of another method are left out: their requests may change something on the server.
    """
    by_manner: dict[Manner, dict[str, None]] = {}
    for workload in workloads:
        for path in workload.asked(cluster.static_paths, cluster.dynamic_path):
            for clients in workload.clients:
                if clients.method == "GET":
                    manner = (clients.http, clients.headers)
                    by_manner.setdefault(manner, {})[numbered(workload, path)] = None
    return {manner: tuple(paths) for manner, paths in by_manner.items()}


def fixed(workloads: Iterable[Workload], cluster: Cluster) -> dict[Manner, tuple[str, ...]]:
    """Return the paths whose answers a load compares, as `asked` does.

    They are static, and their workload checks more than the status.
    """
    return asked((w for w in workloads if w.kind == "slt" and w.check != "status"), cluster)


def numbered(workload: Workload, path: str) -> str:
    """Return a path as the workload first asks for it: dlt adds a number (lua/dlt.lua)."""
    if workload.kind != "dlt":
        return path
    return f"{path}{'&' if '?' in path else '?'}r=1"


def problems(generator: str, url: str, fetched: Iterable[Fetched]) -> list[str]:
    """Return a line for each problem: the paths, their answer, and what to do.

    Problems are connections that fail, a status of 400 or more, and empty bodies.
    """
    alike: dict[tuple[str, Manner], list[Fetched]] = {}
    for answer in fetched:
        if answer.complaint:
            manner = (answer.http, answer.headers)
            alike.setdefault((answer.complaint, manner), []).append(answer)
    return [
        _line(generator, url, answers, f"{complaint}: {_hint(answers[0])}")
        for (complaint, _), answers in alike.items()
    ]


def differing(generator: str, url: str, fetched: Iterable[Fetched]) -> list[str]:
    """Return a line for the paths that had different bodies when they were asked for again."""
    bodies: dict[tuple[str, Manner], dict[tuple[int, int], Fetched]] = {}
    for answer in fetched:
        if answer.status and not answer.complaint:
            about = (answer.path, (answer.http, answer.headers))
            bodies.setdefault(about, {})[answer.bytes, answer.check] = answer
    different = [each for each in bodies.values() if len(each) > 1]
    if not different:
        return []
    lengths = " and ".join(f"{answer.bytes:,}" for answer in different[0].values())
    text = (
        f"has {lengths} bytes by turns, so the backends serve different files, and the load would "
        'count wrong answers: make them alike, or write check = "status" into the workload'
    )
    return [_line(generator, url, [next(iter(each.values())) for each in different], text)]


def warnings(generator: str, url: str, fetched: Iterable[Fetched]) -> list[str]:
    """Return a line for redirects: they are answers, but hardly the intended ones."""
    redirects = [answer for answer in fetched if answer.is_redirect]
    text = "answers with a redirect, and the load doesn't follow it: name the path it leads to"
    return [_line(generator, url, redirects, text)] if redirects else []


def _line(generator: str, url: str, answers: Sequence[Fetched], text: str) -> str:
    """Return such as: x86-load: /a, /b: answers 404: ... By hand: curl -i http://lb/a"""
    options = [word for header in answers[0].headers for word in ("-H", header)]
    if answers[0].http == "2":
        options.insert(0, "--http2" if url.startswith("https") else "--http2-prior-knowledge")
    by_hand = shlex.join(["curl", "-i", *options, f"{url}{answers[0].path}"])
    paths = few([answer.path for answer in answers])
    return f"{generator}: {paths}: {text}. By hand, on that host: {by_hand}"


def _hint(answer: Fetched) -> str:
    """Return what to do about a problem."""
    if answer.problem == NO_HTTP2:
        return (
            "switch it on there (nginx: listen ... http2; from 1.25.1 on http2 on), or leave "
            'http = "2" out of the study'
        )
    if answer.status >= 500:
        return "look at the server's error log and at the backends"
    if answer.status:
        return "correct the path in the study, or what the server has there"
    return "see that the server and its backends are at work, and that url is right"
