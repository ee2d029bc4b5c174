"""What the paths of a load answer when each is asked for once."""

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
"""What each kind of problem means, but `status`: that one is said by the status itself."""

PROBLEMS = frozenset({"", "status", *SENTENCES})
"""All that `Fetched.problem` may be."""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """One path, asked for once over this `http`, with these further `headers` ("Name: value").

    `status` is the answer's; 0 where none came. `bytes` is the length of its body, `check` the
    CRC-32 of that. `seconds` go from when it was asked for (with the connection, where it needed
    one) to the last byte; 0 where no answer came. `problem` is empty for a whole answer with a
    status below 400, else its kind: one of `PROBLEMS`.
    """

    path: str
    status: int
    bytes: int
    check: int
    seconds: float
    problem: str = ""
    headers: tuple[str, ...] = ()
    http: Http = "1.1"

    @property
    def complaint(self) -> str:
        """Why a load of this path would not measure a server that works; "" where it would."""
        if self.problem in SENTENCES:
            return SENTENCES[self.problem]
        if self.problem or self.status >= 400:
            return f"answers {self.status}"
        return "" if self.bytes else f"answers {self.status} with an empty body"

    @property
    def is_redirect(self) -> bool:
        """Whether the answer only names another address."""
        return 300 <= self.status < 400 and not self.problem
