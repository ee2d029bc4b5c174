"""What answers to static paths have to be: as they were before the first trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from intop.domain.fetched import Fetched
from intop.domain.workload import Clients, Workload
from intop.hosts.fetch import fetch
from intop.hosts.rig import Rig, load_directory


@dataclass(frozen=True)
class ExpectedAnswers:
    """What came, as the engine reads it: a text for each file of the folder of the scripts.

    `names` has the file's name by that of each class of clients that is checked.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def put(self, rig: Rig) -> None:
        """Onto the load generators. Raises what their connections do."""
        if self.files:
            for generator in rig.load_generators:
                generator.put(load_directory(generator), dict(self.files))


def expected_answers(rig: Rig, workload: Workload, paths: Sequence[str]) -> ExpectedAnswers:
    """Ask for each path, for the classes of clients that are checked: those that GET static ones.

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
        f"{one.path} {one.bytes} {one.check if workload.check == 'content' else '-'}\n"
        for one, other in zip(first, again, strict=True)
        if _is_same(one, other)
    ]


def _is_same(one: Fetched, other: Fetched) -> bool:
    return not one.problem and (one.bytes, one.check) == (other.bytes, other.check)
