"""A way to a PostgreSQL server that loses connections where a test wants it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Literal

from sqlalchemy import make_url

Loss = Literal["answer", "command"]
"""A commit's answer is lost when the server has carried it out; or the command on its way there,
of which the server learns nothing: its end stays open, as by a network that is cut.
"""


@dataclass
class Cut:
    """What is lost next: the commits of as many transactions as there are `losses`."""

    url: str
    losses: list[Loss] = field(default_factory=list)
    kept: list[socket.socket] = field(default_factory=list)

    def serve(self, client: socket.socket, server: socket.socket) -> None:
        Thread(target=self._forward, args=(client, server), daemon=True).start()
        Thread(target=self._answer, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if b"COMMIT\0" in data and self.losses:  # and not READ COMMITTED
                    loss = self.losses.pop(0)
                    if loss == "command":
                        self.kept.append(server)
                    else:
                        client.shutdown(socket.SHUT_WR)
                        server.sendall(data)
                        return  # its answer finds nobody
                    _close(client)
                    return
                server.sendall(data)
            _close(server)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
        _close(client, server)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextmanager
def cut_between(url: str, folder: Path) -> Iterator[Cut]:
    """The same database by a socket in another folder."""
    there = make_url(url)
    target = f"{there.query['host']}/.s.PGSQL.5432"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/.s.PGSQL.5432")
        listening.listen()
        shown = there.update_query_dict({"host": str(folder)}).render_as_string(hide_password=False)
        made = Cut(shown)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    server = socket.socket(socket.AF_UNIX)
                    server.connect(target)
                    made.serve(client, server)

        Thread(target=accept, daemon=True).start()
        yield made
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
    _close(*made.kept)
