"""A server on loopback that speaks HTTP/2 as oddly as it is told, and notes what it was asked.

It has frames of its own making, so that what no real server sends at will can be tested.
"""

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

BODY = bytes(range(256)) * 40
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0,
    1,
    3,
    4,
    6,
    7,
    8,
    9,
)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
OK = b"\x88"
"""A head with `:status: 200`, by the static table."""
REFUSED = 7


@dataclass(frozen=True)
class Asked:
    """One request: on which connection and stream, and what for."""

    connection: int
    stream: int
    path: str


@dataclass
class CrookedHttp2:
    """`frames` are all that came, as (kind, flags, stream, payload); `asked` are the requests.

    By connection and stream, `bodies` are what was sent of a body, `granted` how much more than the
    first window might be, and `ended` those that are whole. `most` is how many requests were
    answered slowly at once.
    """

    port: int = 0
    settings: bytes = b""
    asked: list[Asked] = field(default_factory=list)
    frames: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    bodies: dict[tuple[int, int], bytes] = field(default_factory=dict)
    granted: dict[tuple[int, int], int] = field(default_factory=dict)
    ended: set[tuple[int, int]] = field(default_factory=set)
    overruns: int = 0
    connections: int = 0
    slow: int = 0
    most: int = 0

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http://127.0.0.1:{self.port}"

    def of(self, kind: int) -> list[tuple[int, int, bytes]]:
        """Flags, stream and payload of the frames of this kind."""
        return [frame[1:] for frame in self.frames if frame[0] == kind]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        number, tasks = self.connections, []
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            assert await reader.readexactly(len(PREFACE)) == PREFACE
            writer.write(frame(SETTINGS, 0, 0, self.settings))
            while True:
                head = await reader.readexactly(9)
                payload = await reader.readexactly(int.from_bytes(head[:3]))
                stream = int.from_bytes(head[5:])
                self.frames.append((head[3], head[4], stream, payload))
                if head[3] == HEADERS:
                    one = Asked(number, stream, path_of(payload))
                    self.asked.append(one)
                    answer = ANSWERS[one.path.partition("?")[0]]
                    tasks.append(asyncio.ensure_future(answer(self, writer, one)))
                elif head[3] == DATA:
                    key = (number, stream)
                    self.bodies[key] = self.bodies.get(key, b"") + payload
                    self.overruns += len(self.bodies[key]) > 65535 + self.granted.get(key, 0)
                    if head[4] & END_STREAM:
                        self.ended.add(key)
        for task in tasks:
            task.cancel()
        writer.close()


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame as it is sent."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + stream.to_bytes(4) + payload


def path_of(block: bytes) -> str:
    """The path in a head that the engine sent: literals without indexing."""
    at = 0
    while at < len(block):
        if block[at] >= 128:
            at += 1
            continue
        is_path, named = block[at] == 4, block[at] == 0
        assert block[at] <= 15
        at += 1
        for _ in range(1 + named):
            length = block[at]
            at += 1
            if length == 127:
                length += block[at]
                assert block[at] < 128
                at += 1
            text = block[at : at + length]
            at += length
        if is_path:
            return text.decode()
    raise AssertionError("no path")


Answer = Callable[[CrookedHttp2, asyncio.StreamWriter, Asked], Awaitable[None]]
ANSWERS: dict[str, Answer] = {}


def answers(path: str) -> Callable[[Answer], Answer]:
    """Register what a path is answered with."""

    def register(answer: Answer) -> Answer:
        ANSWERS[path] = answer
        return answer

    return register


def sends(path: str, *frames: tuple[int, int, bytes]) -> None:
    """A path is answered with these frames (kind, flags, payload) on the request's stream."""

    async def answer(_: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
        writer.write(
            b"".join(frame(kind, flags, asked.stream, text) for kind, flags, text in frames)
        )

    ANSWERS[path] = answer


HEAD = (HEADERS, END_HEADERS, OK)
LAST = (DATA, END_STREAM, BODY)
sends("/ok", HEAD, LAST)
sends("/parts", HEAD, (DATA, 0, BODY[:5000]), (DATA, 0, b""), (DATA, END_STREAM, BODY[5000:]))
sends("/empty-end", HEAD, (DATA, 0, BODY), (DATA, END_STREAM, b""))
sends(
    "/padded",
    (HEADERS, END_HEADERS | PADDED | PRIORITY, b"\x03" + bytes(5) + OK + bytes(3)),
    (DATA, PADDED, b"\xff" + BODY[:5000] + bytes(255)),
    (DATA, PADDED | END_STREAM, b"\x00" + BODY[5000:]),
)
sends(
    "/continued",
    (HEADERS, 0, b""),
    (CONTINUATION, 0, b"\x20"),
    (CONTINUATION, END_HEADERS, OK),
    LAST,
)
sends("/early-hints", (HEADERS, END_HEADERS, b"\x08\x03103"), HEAD, LAST)
sends("/trailer", HEAD, (DATA, 0, BODY), (HEADERS, END_HEADERS | END_STREAM, b"\x00\x01a\x01b"))
sends("/huffman", (HEADERS, END_HEADERS, b"\x20\x48\x82\x10\x01\x5c\x05" + b"10240"), LAST)
sends("/unknown", (0xAA, 0xFF, b"whatever"), HEAD, (0xAB, 0, b""), LAST)
sends("/no-body", (HEADERS, END_HEADERS | END_STREAM, b"\x89"))

sends("/error", (HEADERS, END_HEADERS | END_STREAM, b"\x08\x03503"))
sends("/cut", (HEADERS, END_HEADERS, OK + b"\x5c\x0510241"), LAST)
sends("/half-hangs", HEAD, (DATA, 0, BODY))
sends("/hangs")
sends("/resets", HEAD, (DATA, 0, BODY), (RST_STREAM, 0, bytes([0, 0, 0, 2])))
sends("/no-head", LAST)
sends("/no-status", (HEADERS, END_HEADERS | END_STREAM, b"\x00\x01a\x01b"))
sends("/a-table", (HEADERS, END_HEADERS | END_STREAM, b"\xbe"))
sends("/too-long", (HEADERS, END_HEADERS, OK), (DATA, END_STREAM, bytes(16385)))
sends("/pushes", (5, END_HEADERS, bytes(4) + OK))
sends("/between", (HEADERS, 0, OK), (DATA, 0, b""))


@answers("/bytewise")
async def _bytewise(_: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Each byte alone, so that every place is a cut. One request at a time, or they would mix."""
    text = frame(HEADERS, END_HEADERS, asked.stream, OK)
    text += frame(DATA, PADDED, asked.stream, b"\x02ab" + bytes(2))
    text += frame(DATA, END_STREAM, asked.stream, b"c")
    for byte in text:
        writer.transport.write(bytes([byte]))
        await asyncio.sleep(0)


@answers("/closes")
async def _closes(_: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    writer.write(frame(HEADERS, END_HEADERS, asked.stream, OK))
    writer.close()


@answers("/pings")
async def _pings(_: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    writer.write(frame(PING, 0, 0, f"{asked.stream:08}".encode()))
    await ANSWERS["/ok"](_, writer, asked)


@answers("/slow")
async def _slow(server: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    server.slow += 1
    server.most = max(server.most, server.slow)
    await asyncio.sleep(0.03)
    server.slow -= 1
    await ANSWERS["/ok"](server, writer, asked)


@answers("/one-at-a-time")
async def _one(server: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Which the server says as late as that."""
    if server.slow:
        writer.write(frame(RST_STREAM, 0, asked.stream, REFUSED.to_bytes(4)))
    else:
        await _slow(server, writer, asked)


@answers("/refuses")
async def _refuses(_: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    writer.write(frame(RST_STREAM, 0, asked.stream, REFUSED.to_bytes(4)))


@answers("/leaves-after-5")
async def _leaves(server: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    """The fifth request of a connection is the last; later ones are not looked at."""
    if asked.stream <= 9:
        await asyncio.sleep(0.03)
        if asked.stream == 9:
            writer.write(frame(GOAWAY, 0, 0, (9).to_bytes(4) + bytes(4)))
        await ANSWERS["/ok"](server, writer, asked)


@answers("/leaves-at-once")
async def _leaves_at_once(_: CrookedHttp2, writer: asyncio.StreamWriter, __: Asked) -> None:
    writer.write(frame(GOAWAY, 0, 0, bytes(8)))


@answers("/takes-a-body")
async def _takes(server: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Windows are given in small steps, as the body comes."""
    key = (asked.connection, asked.stream)
    while key not in server.ended:
        await asyncio.sleep(0.001)
        more = len(server.bodies.get(key, b"")) - server.granted.get(key, 0)
        if more:
            server.granted[key] = server.granted.get(key, 0) + more
            writer.write(frame(WINDOW_UPDATE, 0, 0, more.to_bytes(4)))
            writer.write(frame(WINDOW_UPDATE, 0, asked.stream, more.to_bytes(4)))
    await ANSWERS["/ok"](server, writer, asked)


@answers("/refuses-a-body")
async def _refuses_body(_: CrookedHttp2, writer: asyncio.StreamWriter, asked: Asked) -> None:
    writer.write(frame(HEADERS, END_HEADERS | END_STREAM, asked.stream, b"\x08\x03413"))


@contextmanager
def crooked_http2(settings: bytes = b"") -> Iterator[CrookedHttp2]:
    """One that runs in a thread of its own, and begins with these SETTINGS."""
    server = CrookedHttp2(settings=settings)
    loop = asyncio.new_event_loop()
    ready, over = threading.Event(), asyncio.Event()

    async def main() -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=1024)
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
