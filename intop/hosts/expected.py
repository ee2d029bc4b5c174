"""The expected answers to static paths: those of before the first trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from intop.domain.workload import Clients, Workload
from intop.hosts.fetch import fetch
from intop.hosts.rig import Rig, load_directory


@dataclass(frozen=True)
class ExpectedAnswers:
    """The expected answers, as the engine reads them."""

    files: Mapping[str, str] = field(default_factory=dict)
    """The text of each file, to be put into the folder of the scripts."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The file's name for each class of clients that is checked."""

    def put(self, rig: Rig) -> None:
        """Put them on the load generators. Raises what their connections do."""
        if self.files:
            for generator in rig.load_generators:
                generator.put(load_directory(generator), dict(self.files))


def expected_answers(rig: Rig, workload: Workload, paths: Sequence[str]) -> ExpectedAnswers:
    """Ask for each path, for the classes of clients that are checked: those that GET static paths.

    Each path is asked for twice. What differs is made for each request, and is not checked; what is
    no success shows as an error anyway.

    Raises what `fetch` does.
    """
    if workload.kind != "slt" or workload.check == "status":
        return ExpectedAnswers()
    paths = tuple(dict.fromkeys(paths))
    files: dict[str, str] = {}
    names: dict[str, str] = {}
    for number, clients in enumerate(workload.clients):
        if clients.method == "GET":
            names[clients.name] = f"expected-{number}.txt"
            files[names[clients.name]] = "".join(_lines(rig, workload, clients, paths))
    return ExpectedAnswers(files, names)


def _lines(rig: Rig, workload: Workload, clients: Clients, paths: Sequence[str]) -> list[str]:
    first, again = (
        fetch(
            rig.load_generator,
            load_directory(rig.load_generator),
            rig.cluster.url,
            paths,
            headers=clients.headers,
            http=clients.http,
        )
        for _ in range(2)
    )
    return [
        f"{early.path} {early.bytes} {early.check if workload.check == 'content' else '-'}\n"
        for early, late in zip(first, again, strict=True)
        if not early.problem and (early.bytes, early.check) == (late.bytes, late.check)
    ]
