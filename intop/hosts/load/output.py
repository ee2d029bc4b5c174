"""The line of JSON that a load prints. All of it is hostile until it is checked."""

import json
from collections.abc import Mapping
from typing import Any

from intop.domain.histogram import Histogram

LARGEST = 2**63 - 1
"""The largest count; floating point holds its ratios."""


def json_line(text: str) -> dict[str, Any]:
    """Return the JSON object. Raises ValueError for none, more than one, or a broken one."""
    lines = [line for line in text.split("\n") if line.startswith("{")]
    if len(lines) != 1:
        raise ValueError(f"expected one line of JSON, found {len(lines)}")
    try:
        data: dict[str, Any] = json.loads(lines[0])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the line of JSON is broken ({error})") from error
    return data


def check_kind(data: Mapping[str, Any], schema: int, script: str) -> None:
    """Raise ValueError unless it is what our scripts print."""
    kind = (data.get("schema"), data.get("script"))
    if kind != (schema, script):
        raise ValueError(f"schema and script are {short(kind)}, not {(schema, script)}")


def whole(data: Mapping[str, Any], key: str, *, least: int = 0, most: int = LARGEST) -> int:
    """Return a whole number from `least` to `most`. Raises ValueError, which names the key."""
    number = data.get(key)
    if type(number) is not int or not least <= number <= most:
        limit = f" up to {most}" if most < LARGEST else ""
        raise ValueError(f"{key} is {short(number)}, not a whole number{limit}")
    return number


def flag(data: Mapping[str, Any], key: str) -> bool:
    """Return whether a flag is set. Raises ValueError, which names the key of another value."""
    value = data.get(key)
    if type(value) is not bool:
        raise ValueError(f"{key} is {short(value)}, neither true nor false")
    return value


def counts(data: object, kinds: tuple[str, ...]) -> dict[str, int]:
    """Return errors by kind. Raises ValueError unless it is an object with all of them."""
    if not isinstance(data, dict):
        raise ValueError(f"errors is {short(data)}, not an object")  # noqa: TRY004 - it is input
    return {kind: whole(data, kind) for kind in kinds}


def histogram(data: object, name: str = "histogram") -> Histogram:
    """Return the histogram of a list of pairs. Raises ValueError for something else."""
    if not isinstance(data, list):
        raise ValueError(f"{name} is {short(data)}, not a list")  # noqa: TRY004 - it is input
    for pair in data:
        if not (isinstance(pair, list) and [type(number) for number in pair] == [int, int]):
            raise ValueError(f"{name} has {short(pair)}, not a latency and a count")
        if max(pair) > LARGEST:
            raise ValueError(f"{name} has a number that no histogram holds")
    return Histogram.from_pairs((value, count) for value, count in data)


def short(value: object) -> str:
    """Return a value for a message: `repr` fails for a number of thousands of digits."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "too much to be shown"
    return text if len(text) <= 100 else text[:97] + "..."


def tail(text: str, lines: int = 8, width: int = 200) -> str:
    """Return the last lines of an output for a message, long ones cut."""
    kept = [line[:width] for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(kept) or "(nothing was printed)"
