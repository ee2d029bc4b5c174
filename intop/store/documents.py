"""Results and requests as JSON documents, as their columns keep them."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


class _Adapters(dict[type, TypeAdapter[Any]]):
    """To make one takes longer than to read a result with it."""

    def __missing__(self, kind: type) -> TypeAdapter[Any]:
        return self.setdefault(kind, TypeAdapter(kind))


_ADAPTERS = _Adapters()


def document_of(found: object) -> str:
    """The document of a dataclass, with infinite numbers, which pydantic's own JSON has as null."""
    return json.dumps(_ADAPTERS[type(found)].dump_python(found))


def read_document(kind: type[T], text: str) -> T:
    """What a document of that type says. Raises ValueError where it is none."""
    found: T = _ADAPTERS[kind].validate_json(text)
    return found
