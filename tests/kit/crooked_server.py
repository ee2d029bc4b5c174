"""An HTTP/1.1 server on loopback that does what it is told, and notes what it was asked."""

import asyncio
import os
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

BODY = bytes(range(256)) * 40
"""10,240 bytes, which only whole reads put together again."""


@dataclass(frozen=True)
class Asked:
    """One request. Times in s of CLOCK_MONOTONIC; `ended_at` is when the answer was handed over."""

    connection: int
    peer: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    ended_at: float = 0.0


@dataclass
class CrookedServer:
    """`asked` grows with each request. `stalled_until` is when it begins to answer again."""

    port: int = 0
    scheme: str = "http"
    asked: list[Asked] = field(default_factory=list)
    resumed: list[bool] = field(default_factory=list)
    stalled_until: float = 0.0
    hang_every: int = 0
    _connections: int = 0

    @property
    def url(self) -> str:
        """Without a path."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def of_connection(self) -> dict[int, list[Asked]]:
        """The requests of each connection, in their order."""
        result: dict[int, list[Asked]] = {}
        for one in self.asked:
            result.setdefault(one.connection, []).append(one)
        return result

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self._connections += 1
        number = self._connections
        tls = writer.get_extra_info("ssl_object")
        if tls is not None:
            self.resumed.append(tls.session_reused)
        try:
            async for asked in _requests(reader, number, writer.get_extra_info("peername")[0]):
                going_on = await self._answer(asked, writer)
                if not going_on:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        while (left := self.stalled_until - time.monotonic()) > 0:
            await asyncio.sleep(left)
        place = len(self.asked)
        self.asked.append(asked)
        parts = urlsplit(asked.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        if self.hang_every and place % self.hang_every == 0:
            await asyncio.sleep(3600)
        if "ms" in query:
            await asyncio.sleep(float(query["ms"]) / 1000)
        going_on = await ANSWERS[parts.path](writer, asked)
        await writer.drain()
        self.asked[place] = Asked(**{**asked.__dict__, "ended_at": time.monotonic()})
        return going_on and asked.headers.get("connection") != "close"


async def _requests(reader: asyncio.StreamReader, number: int, peer: str) -> AsyncIterator[Asked]:
    while True:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        except asyncio.IncompleteReadError:
            return
        at = time.monotonic()
        method, path, _ = head[0].split(" ")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        yield Asked(number, peer, method, path, headers, body, at)


def _whole(status: str, body: bytes, *more: str, version: str = "1.1") -> bytes:
    lines = [f"HTTP/{version} {status}", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def _ok(writer: asyncio.StreamWriter, asked: Asked) -> bool:
    whole = _whole("200 OK", BODY)
    writer.write(whole.removesuffix(BODY) if asked.method == "HEAD" else whole)
    return True


async def _large(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(_whole("200 OK", BODY * 20))
    return True


async def _closes(writer: asyncio.StreamWriter, _: Asked) -> bool:
    """Without saying so: every client has to expect it."""
    writer.write(_whole("200 OK", BODY))
    return False


async def _says_close(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(_whole("200 OK", BODY, "Connection: close"))
    return False


async def _old(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(_whole("200 OK", BODY, version="1.0"))
    return False


async def _until_close(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nServer: crooked\r\n\r\n" + BODY)
    return False


async def _cut(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(_whole("200 OK", BODY)[:-100])
    return False


async def _chunked(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for start in range(0, len(BODY), 1000):
        part = BODY[start : start + 1000]
        writer.write(f"{len(part):X};x=y\r\n".encode() + part + b"\r\n")
    writer.write(b"0\r\nTrailer: yes\r\n\r\n")
    return True


async def _bytewise(writer: asyncio.StreamWriter, _: Asked) -> bool:
    """Each byte of a chunked answer alone, so that every place is a cut."""
    text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    text += b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"
    for byte in text:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    return True


async def _continue(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" + _whole("200 OK", BODY))
    return True


async def _nothing(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    return True


async def _error(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(_whole("503 Service Unavailable", b"no"))
    return True


async def _garbage(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(b"hello, this is no HTTP at all\r\n\r\n")
    return True


async def _too_much(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(_whole("200 OK", BODY) + b"and more")
    return True


async def _endless_head(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000)
    return True


async def _hangs(_writer: asyncio.StreamWriter, _asked: Asked) -> bool:
    await asyncio.sleep(3600)
    return False


async def _half_hangs(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.write(_whole("200 OK", BODY)[:-100])
    await writer.drain()
    await asyncio.sleep(3600)
    return False


async def _resets(writer: asyncio.StreamWriter, _: Asked) -> bool:
    writer.transport.abort()
    return False


ANSWERS = {
    "/ok": _ok,
    "/large": _large,
    "/closes": _closes,
    "/says-close": _says_close,
    "/old": _old,
    "/until-close": _until_close,
    "/cut": _cut,
    "/chunked": _chunked,
    "/bytewise": _bytewise,
    "/continue": _continue,
    "/nothing": _nothing,
    "/error": _error,
    "/garbage": _garbage,
    "/too-much": _too_much,
    "/endless-head": _endless_head,
    "/hangs": _hangs,
    "/half-hangs": _half_hangs,
    "/resets": _resets,
}


@contextmanager
def crooked_server(certificate: Path | None = None) -> Iterator[CrookedServer]:
    """One that runs in a thread of its own; with a file of key and certificate it speaks TLS."""
    server = CrookedServer(scheme="http" if certificate is None else "https")
    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    loop = asyncio.new_event_loop()
    ready, over = threading.Event(), asyncio.Event()

    async def main() -> None:
        # This thread only: what other tests do at the same time must not be taken for the load's.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        listening = await asyncio.start_server(
            server.serve, "127.0.0.1", 0, ssl=context, backlog=1024
        )
        server.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await over.wait()
        listening.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()
