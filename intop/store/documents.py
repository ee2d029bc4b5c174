"""Results and requests as JSON documents, as their columns keep them."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


class _Adapters(dict[type, TypeAdapter[Any]]):
    """Adapters by type, kept since making one takes longer than reading a result with it."""

    def __missing__(self, kind: type) -> TypeAdapter[Any]:
        return self.setdefault(kind, TypeAdapter(kind))


_ADAPTERS = _Adapters()


def adapted(kind: type[T], values: object) -> T:
    """Return the object of a type that these values are of. Raises ValidationError."""
    result: T = _ADAPTERS[kind].validate_python(values)
    return result


def document_of(result: object) -> str:
    """Return the document of a dataclass, with infinite numbers, which pydantic has as null."""
    return json.dumps(_ADAPTERS[type(result)].dump_python(result))


def read_document(kind: type[T], text: str) -> T:
    """Return the object that a document holds. Raises ValueError where it is none of that type."""
    result: T = _ADAPTERS[kind].validate_json(text)
    return result
