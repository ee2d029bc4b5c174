"""Results as JSON, for programs.

A dataclass has its fields there, and beside them the properties that its `ALSO_IN_JSON` names. One
that is something else for programs has a method `as_json`.
"""

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

from intop.masking import masked, masked_header


def to_json(value: Any) -> str:
    """Return any result, or a mapping or list of results, as indented JSON."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=False)


def _plain(value: Any, name: str = "") -> Any:
    """Return what JSON can have of a value that is called `name`."""
    if hasattr(value, "as_json"):
        return _plain(value.as_json())
    if is_dataclass(value) and not isinstance(value, type):
        names = (*(f.name for f in fields(value)), *getattr(value, "ALSO_IN_JSON", ()))
        return {each: _plain(getattr(value, each), each) for each in names}
    if isinstance(value, dict):
        return {str(key): _plain(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item, name) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    if not isinstance(value, str):
        return value
    return masked_header(value) if name == "headers" else masked(value)
