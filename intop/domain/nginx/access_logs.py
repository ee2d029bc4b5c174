"""The access logs that an nginx writes, with their formats."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from intop.domain.nginx.conf import Conf

COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
    '"$http_referer" "$http_user_agent"'
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class AccessLog:
    """A file that nginx writes a line to for each request."""

    path: str
    name: str
    """The name of its log_format."""
    text: str
    """The text of its log_format; "" for an unknown one."""
    is_delayed: bool = False
    """Whether lines wait in a buffer, or are compressed."""
    condition: str = ""
    """The variable that decides which requests are logged."""

    def has(self, *variables: str) -> bool:
        """Return whether its lines have all of these variables, without their dollar signs."""
        return set(variables) <= set(parts(self.text)[1])


def access_logs(conf: Conf) -> Iterator[AccessLog]:
    """Yield each log once, in nginx's order. Logs with variables in their path are left out."""
    formats = {"combined": COMBINED} | dict(_formats(conf))
    known: set[AccessLog] = set()
    for place in conf.named("access_log"):
        path, *rest = place.statement.arguments or ("off",)
        if path == "off" or "$" in path or path.startswith("syslog:"):
            continue
        options = [word for word in rest if "=" in word]
        name = next((word for word in rest if "=" not in word), "combined")
        log = AccessLog(
            path=path,
            name=name,
            text=formats.get(name, ""),
            is_delayed=any(word.startswith(("buffer=", "gzip=")) for word in options)
            or "gzip" in rest,
            condition=next((w.removeprefix("if=") for w in options if w.startswith("if=")), ""),
        )
        if log not in known:
            known.add(log)
            yield log


def parts(text: str) -> tuple[list[str], list[str]]:
    """Return the texts around a log_format's variables, one more than these, and their names."""
    literals, variables, end = [], [], 0
    for match in _VARIABLE.finditer(text):
        literals.append(text[end : match.start()])
        variables.append(match[1] or match[2])
        end = match.end()
    return [*literals, text[end:]], variables


def _formats(conf: Conf) -> Iterator[tuple[str, str]]:
    for place in conf.named("log_format"):
        name, *texts = place.statement.arguments or ("",)
        yield name, "".join(text for text in texts if not text.startswith("escape="))
