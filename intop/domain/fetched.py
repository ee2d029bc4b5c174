"""Answers to the paths of a load, each asked for once."""

from dataclasses import dataclass

from intop.domain.workload import Http

UNASKED = "unasked"
"""The problem of a path that was not asked for: those before it took all the time there was."""

NO_HTTP2 = "http2"
"""The problem of a path that was asked for over HTTP/2 from a server that speaks HTTP/1.1 only."""

SENTENCES = {
    "refused": "the connection is refused",
    "reset": "the connection is reset",
    "unreachable": "there is no route to it",
    "ports": "no port is left for a connection",
    "connect": "no connection can be made",
    "tls": "the TLS handshake fails",
    "write": "the request can't be sent",
    "read": "the answer can't be read",
    "closed": "the connection is closed before the answer is complete",
    "malformed": "the answer is not HTTP",
    NO_HTTP2: "the server doesn't offer HTTP/2",
    "timeout": "no answer in time",
    "content": "the answer has another content than expected",
    UNASKED: "not asked for, since the paths before it took too long",
}
"""The meaning of each kind of problem but `status`, which the status itself tells."""

PROBLEMS = frozenset({"", "status", *SENTENCES})
"""All values of `Fetched.problem`."""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """One path, asked for once."""

    path: str
    status: int
    """The status of the answer; 0 where none came."""
    bytes: int
    """The length of the answer's body."""
    check: int
    """The CRC-32 of the body."""
    seconds: float
    """Seconds from the request (with the connection, where it needed one) to the last byte. 0 where
    no answer came."""
    problem: str = ""
    """Empty for a whole answer with a status below 400, else one of `PROBLEMS`."""
    headers: tuple[str, ...] = ()
    """Further headers of the request ("Name: value")."""
    http: Http = "1.1"

    @property
    def complaint(self) -> str:
        """The reason why a load of this path would measure no working server; "" where it would."""
        if self.problem in SENTENCES:
            return SENTENCES[self.problem]
        if self.problem or self.status >= 400:
            return f"answers {self.status}"
        return "" if self.bytes else f"answers {self.status} with an empty body"

    @property
    def is_redirect(self) -> bool:
        """Whether the answer only names another address."""
        return 300 <= self.status < 400 and not self.problem
