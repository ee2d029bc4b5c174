"""The catalogue of counters: what the kernel counts, and which mechanism it is a sign of."""

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import MinLen

from intop.config.source import Source
from intop.domain.counters import CounterCatalogue, Direction, KernelCounter, Mechanism
from intop.domain.matching import matching
from intop.errors import ConfigurationError

Sentence = Annotated[str, matching(r"[A-Z].{0,298}\.", "a sentence, from capital to full stop")]
Name = Annotated[str, matching("[A-Za-z][A-Za-z0-9_.]*", "a name of letters, digits, _ and .")]
_MECHANISMS: Any = dict[
    Annotated[str, matching("[a-z]+(-[a-z]+)*", "words of a-z with hyphens between")], Sentence
]
_BLOCKS: Any = dict[str, tuple[Annotated[dict[str, str], MinLen(1)], ...]]


@dataclass(frozen=True, kw_only=True)
class _Group:
    table: Name
    document: Annotated[
        str, matching(r"[A-Za-z0-9_./-]+\.(c|h|rst)|https://nginx\.org/.*", "a file or a page")
    ]
    levels: tuple[Name, ...] = ()
    sizes: tuple[Name, ...] = ()
    counters: Annotated[dict[Name, tuple[Direction, str, Sentence]], MinLen(1)]

    def strays(self) -> list[tuple[str, str]]:
        """Return names of levels and sizes that are no counters of the group."""
        kinds = {"levels": self.levels, "sizes": self.sizes}
        return [(k, n) for k, names in kinds.items() for n in names if n not in self.counters]


def load_counters(path: Path) -> CounterCatalogue:
    """Return the catalogue in a file. Raises ConfigurationError with a line for each problem."""
    source = Source.read(path)
    source.check_format("mechanism", "block", "group")
    mechanisms = _mechanisms(source)
    blocks = _blocks(source, mechanisms)
    counters: dict[str, KernelCounter] = {}
    for index, entry in enumerate(source.tables("group")):
        place = ("group", index)
        group = source.convert(_Group, entry, place)
        if group is None:
            continue
        for kind, name in group.strays():
            source.problem((*place, kind), f"{name} is no counter of this group")
        for counter in _counters(group):
            if counter.name in counters:
                source.problem((*place, "counters"), f"{counter.name} stands there twice")
            if counter.mechanism and counter.mechanism not in mechanisms:
                what = f"{counter.name} names the unknown mechanism {counter.mechanism!r}"
                source.problem((*place, "counters"), what)
            counters[counter.name] = counter
    if source.problems:
        raise ConfigurationError(source.problems)
    return CounterCatalogue(counters, mechanisms, blocks)


def _mechanisms(source: Source) -> dict[str, Mechanism]:
    table = source.data.get("mechanism", {})
    sentences = source.convert(_MECHANISMS, table, ("mechanism",)) or {}
    return {name: Mechanism(name=name, about=about) for name, about in sentences.items()}


def _blocks(source: Source, mechanisms: Container[str]) -> dict[str, tuple[dict[str, str], ...]]:
    table = source.data.get("block", {})
    blocks: dict[str, tuple[dict[str, str], ...]]
    blocks = source.convert(_BLOCKS, table, ("block",)) or {}
    for unknown in sorted(name for name in blocks if name not in mechanisms):
        source.problem(("block", unknown), "is not a known mechanism")
    return blocks


def _counters(group: _Group) -> list[KernelCounter]:
    return [
        KernelCounter(
            name=f"{group.table}.{name}",
            meaning=meaning,
            document=group.document,
            mechanism=mechanism,
            direction=direction,
            level=name in group.levels,
            size=name in group.sizes,
        )
        for name, (direction, mechanism, meaning) in group.counters.items()
    ]
