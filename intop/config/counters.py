"""The catalogue of counters: what the kernel counts, and which mechanism it is a sign of."""

from collections.abc import Container
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.types import Strict

from intop.config.source import Listed, Model, Source
from intop.domain.counters import CounterCatalogue, Direction, KernelCounter, Mechanism
from intop.errors import ConfigurationError

Sentence = Annotated[str, Field(min_length=2, max_length=300, pattern=r"^[A-Z].*\.$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.]*$")]


class _GroupModel(Model):
    table: Name
    document: str = Field(pattern=r"^[A-Za-z0-9_./-]+\.(c|h|rst)$|^https://nginx\.org/")
    levels: Listed[Name] = ()
    sizes: Listed[Name] = ()
    counters: dict[Name, Annotated[tuple[Direction, str, Sentence], Strict(strict=False)]] = Field(
        min_length=1
    )

    def strays(self) -> list[tuple[str, str]]:
        """What is named as a level or a size, and is no counter of the group."""
        kinds = {"levels": self.levels, "sizes": self.sizes}
        return [(k, n) for k, names in kinds.items() for n in names if n not in self.counters]


def load_counters(path: Path) -> CounterCatalogue:
    """The catalogue in a file. Raises ConfigurationError with a line for each problem."""
    source = Source.read(path)
    source.check_format()
    for unknown in sorted(set(source.data) - {"schema", "mechanism", "block", "group"}):
        source.problem((unknown,), "is not a known table")
    mechanisms = _mechanisms(source)
    blocks = _blocks(source, mechanisms)
    counters: dict[str, KernelCounter] = {}
    for index, entry in enumerate(source.tables("group")):
        place = ("group", index)
        group = source.check(partial(_GroupModel.model_validate, entry), place)
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


class _MechanismsModel(Model):
    mechanism: dict[Annotated[str, Field(pattern=r"^[a-z]+(-[a-z]+)*$")], Sentence]


def _mechanisms(source: Source) -> dict[str, Mechanism]:
    entries = {"mechanism": source.data.get("mechanism", {})}
    made = source.check(partial(_MechanismsModel.model_validate, entries), ())
    of = {} if made is None else made.mechanism
    return {name: Mechanism(name=name, about=about) for name, about in of.items()}


class _BlocksModel(Model):
    block: dict[str, Listed[Annotated[dict[str, str], Field(min_length=1)]]]


def _blocks(source: Source, mechanisms: Container[str]) -> dict[str, tuple[dict[str, str], ...]]:
    entries = {"block": source.data.get("block", {})}
    made = source.check(partial(_BlocksModel.model_validate, entries), ())
    found = {} if made is None else made.block
    for unknown in sorted(name for name in found if name not in mechanisms):
        source.problem(("block", unknown), "is not a known mechanism")
    return found


def _counters(group: _GroupModel) -> list[KernelCounter]:
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
