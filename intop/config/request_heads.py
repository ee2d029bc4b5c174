"""Headers and methods that a load's requests may have: those that the load tools don't break at."""

import re
from collections.abc import Iterable

LONGEST = 1000

_FRAMING = "the load writes it itself, by body_bytes, and a server waits for what it announces"
REFUSED_HEADERS = {
    "content-length": _FRAMING,
    "transfer-encoding": _FRAMING,
    "trailer": "it announces what the load does not send",
    "te": "it asks for answers in an encoding that the load does not read",
    "expect": "the load does not wait for an interim answer",
    "upgrade": "it asks for another protocol, which the load does not speak",
    "http2-settings": 'it belongs to an upgrade: write http = "2"',
    "connection": "the load says by itself when connections end: see requests_per_connection",
    "keep-alive": "the load says by itself when connections end: see requests_per_connection",
    "proxy-connection": "the load says by itself when connections end: see requests_per_connection",
}
"""Names in lower case, and why a request of a load can't have them."""

REFUSED_METHODS = {
    "CONNECT": "it asks for a tunnel, and its requests have no path",
    "TRACE": "its answer is the request itself, and nginx always refuses it",
    "PRI": "it is the first word of an HTTP/2 connection, and no request",
}


def header_line(line: str) -> str:
    """Raises ValueError for what is not one line of a request's head, or not a load's to say."""
    if line.startswith(":"):
        raise ValueError(
            f"{line.partition(' ')[0]} is a pseudo-header of HTTP/2: the load makes it of method, "
            "url and paths"
        )
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+: [ -~]+", line):
        raise ValueError("a header is 'Name: value' in printable ASCII, with one blank in between")
    name, _, value = line.partition(":")
    if why := REFUSED_HEADERS.get(name.lower()):
        raise ValueError(f"the header {name} is not for a load: {why}")
    if not value.strip():
        raise ValueError(f"the header {name} has no value")
    return line


def method(name: str) -> str:
    """Raises ValueError for what is no method, or one that a load can't send."""
    if not re.fullmatch("[A-Z]{1,20}", name):
        raise ValueError("a method has 1 to 20 of A-Z")
    if why := REFUSED_METHODS.get(name):
        raise ValueError(f"the method {name} is not for a load: {why}")
    return name


def check_together(headers: Iterable[str], method: str, body_bytes: int) -> None:
    """Raises ValueError for headers that stand twice, and for a body that its method has not."""
    names = [header.partition(":")[0].lower() for header in headers]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(
            f"headers: {twice} stands there twice, and the load sends it once: join the values "
            "with a comma, or leave one out"
        )
    if method == "HEAD" and body_bytes:
        raise ValueError("body_bytes: a HEAD request has no body")
