"""A line of an access log as values by nginx's names of variables."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from intop.domain.nginx.access_logs import COMBINED, parts
from intop.errors import UsageError

COMMON = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'
JSON = "json"

_WHOLE = re.compile(r"\d+|-")
_ALIASES: Mapping[str, str] = {
    "ts": "msec",
    "time": "time",
    "@timestamp": "time",
    "timestamp": "time",
    "method": "request_method",
    "path": "request_uri",
    "uri": "request_uri",
    "proto": "server_protocol",
    "protocol": "server_protocol",
    "size": "body_bytes_sent",
    "bytes": "body_bytes_sent",
    "duration": "request_time",
}
"""Names that JSON logs of nginx and Caddy have, by nginx's variables."""

Values = Mapping[str, str]


@dataclass(frozen=True)
class LineFormat:
    """A format of lines."""

    name: str
    variables: frozenset[str]
    """The variables that it has; empty where a line may have any."""
    parse: Callable[[str], Values | None]
    """Returns the values of a line, or None for a line of another format."""


def text_format(text: str, name: str = "") -> LineFormat:
    """Return a format by the text of nginx's `log_format`. Raises UsageError without variables."""
    literals, variables = parts(text)
    if not variables:
        raise UsageError(f"{text!r} is no log_format: it has no variable, such as $request")
    quick = re.compile(_pattern(literals, _bounded))
    slow = re.compile(_pattern(literals, lambda _before, after: "(.*?)" if after else "(.*)"))

    def parse(line: str) -> Values | None:
        match = quick.fullmatch(line) or slow.fullmatch(line)
        return None if match is None else dict(zip(variables, match.groups(), strict=True))

    return LineFormat(name or text, frozenset(variables), parse)


def _pattern(literals: Sequence[str], value: Callable[[str, str], str]) -> str:
    parts = [re.escape(literals[0])]
    for before, after in pairwise(literals):
        parts += [value(before, after), re.escape(after)]
    return "".join(parts)


def _bounded(before: str, after: str) -> str:
    """Return the pattern of a value that ends before the next literal's first character."""
    if before.endswith('"') and after.startswith('"'):
        return r'((?:[^"\\]|\\.)*)'
    return rf"([^{re.escape(after[0])}]*)" if after else "(.*)"


def json_format() -> LineFormat:
    """Return the format of a JSON object a line, by the usual names of nginx's and Caddy's."""
    return LineFormat(JSON, frozenset(), _parse_json)


def _parse_json(line: str) -> Values | None:
    try:
        # nginx writes \xHH, which JSON does not know, unless escape=json is set.
        table = json.loads(re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", line))
    except (ValueError, RecursionError):
        return None
    return dict(_flat(table)) if isinstance(table, dict) else None


def _flat(table: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, dict):
            # Caddy's "request" is an object with method, uri and proto.
            yield from _flat({k: v for k, v in value.items() if not isinstance(v, dict | list)})
        elif isinstance(value, str | int | float):
            yield _ALIASES.get(name, name), str(value)


KNOWN = (text_format(COMBINED, "combined"), text_format(COMMON, "common"), json_format())


def format_of(text: str) -> LineFormat:
    """Return a known format by its name, or the one of a log_format's text. Raises UsageError."""
    return next((known for known in KNOWN if known.name == text), None) or text_format(text)


def _is_sound(values: Values | None) -> bool:
    """Return whether a line has the format, rather than one that begins alike."""
    return values is not None and bool(_WHOLE.fullmatch(values.get("body_bytes_sent", "-")))


def guessed(lines: Sequence[str]) -> LineFormat:
    """Return the known format that most of these lines have. Raises UsageError for none."""
    counts = [sum(_is_sound(known.parse(line)) for line in lines) for known in KNOWN]
    best = max(range(len(KNOWN)), key=counts.__getitem__)
    if not lines or counts[best] * 2 < len(lines):
        raise UsageError(
            "the log has none of the known formats (combined, common, json). Give its log_format, "
            "as nginx -T shows it, or read it by --host: --format '$remote_addr ...'"
        )
    return KNOWN[best]
