"""The kernel's knowledge of each TCP connection (TCP_INFO), as `ss -tinH` prints it.

The load balancer's connections have two sides: clients', which come in on the URL's port, and
upstreams', which it opened itself. Others that come in, such as ours by SSH, are neither.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

Ends = tuple[str, str]
"""The local and the other end of a connection, each ADDRESS:PORT."""

GROWING = {
    "busy": "busy_ms",
    "rwnd_limited": "rwnd_limited_ms",
    "sndbuf_limited": "sndbuf_limited_ms",
    "bytes_sent": "bytes_sent",
    "bytes_retrans": "bytes_retrans",
    "bytes_received": "bytes_received",
    "segs_out": "segs_out",
    "segs_in": "segs_in",
    "retrans": "retrans",
    "dsack_dups": "dsack_dups",
    "reord_seen": "reord_seen",
    "rcv_ooopack": "rcv_ooopack",
    "delivered_ce": "delivered_ce",
}
"""Quantities that only grow: the names of `ss`, and ours."""
ONLY_UP = ("busy_ms", "segs_out", "segs_in", "bytes_sent")
"""Quantities that tell a connection from an earlier one of the same ends."""
SUMMED = ("unacked", "notsent", "lost", "sacked")
LARGEST = ("reordering",)
LEVELS = ("rtt", "rto", "cwnd", "backoff", "snd_wnd", *SUMMED, *LARGEST)
QUANTILES = {"rtt_us": (50, 90), "rto": (50,), "cwnd": (10, 50)}
RENAMED = {"rto": "rto_ms"}

_NUMBER = re.compile(r"([0-9]{1,20})(?:ms)?(?:\([0-9.]{1,10}%\))?")
_RATIO = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)(?:/([0-9.]{1,20}))?")
_FIELDS = re.compile(rf"\s({'|'.join([*GROWING, *LEVELS])}):(\S{{1,60}})")
_HEAD = re.compile(r"(LISTEN|ESTAB) +([0-9]{1,10}) +([0-9]{1,10}) +(\S{1,100}) +(\S{1,100})(?: |$)")


@dataclass(frozen=True)
class SocketSample:
    """All connections of a load balancer at one moment."""

    growing: Mapping[Ends, tuple[str, Mapping[str, int]]] = field(default_factory=dict)
    """The side of each connection, and the quantities that only grow."""
    levels: Mapping[str, float] = field(default_factory=dict)
    """Sums and quantiles over the connections of a side (`clients.rtt_us.p50`).

    `listen.queue` and `listen.limit` are the longest queue and the shortest limit of the URL's
    listening sockets.
    """


def parse_sample(listed: Sequence[str], port: int) -> SocketSample | None:
    """Return a sample from the reader's list of sockets.

    None where they could not be listed, or are too many. What is no socket is skipped: `ss` of each
    version prints other fields.
    """
    if not listed or listed[-1] in ("many", "unseen"):
        return None
    listening, connections = _taken_apart(listed)
    growing: dict[Ends, tuple[str, Mapping[str, int]]] = {}
    sides: dict[str, list[dict[str, float]]] = {}
    for head, text in connections:
        local = _port(head[4])
        if local == str(port):
            side = "clients"
        elif local in listening:
            continue
        else:
            side = "upstreams"
        fields = dict(_FIELDS.findall(text))
        growing[head[4], head[5]] = (side, _growing(fields))
        now = _levels(fields) | {"recv_q": int(head[2]), "send_q": int(head[3])}
        now["app_limited"] = float(" app_limited" in text)
        sides.setdefault(side, []).append(now)
    levels = {
        f"{side}.{name}": value for side, all_ in sides.items() for name, value in _over(all_)
    }
    if queues := listening.get(str(port)):
        levels["listen.queue"] = max(queue for queue, _ in queues)
        levels["listen.limit"] = min(limit for _, limit in queues)
    return SocketSample(growing, levels)


def _taken_apart(
    listed: Sequence[str],
) -> tuple[dict[str, list[tuple[int, int]]], list[tuple[re.Match[str], str]]]:
    """Return queue and limit of listening sockets by port, and head and fields of all others."""
    listening: dict[str, list[tuple[int, int]]] = {}
    connections: list[tuple[re.Match[str], str]] = []
    for line, after in zip_longest(listed, listed[1:], fillvalue=""):
        if (head := _HEAD.match(line)) is None:
            continue
        if head[1] == "LISTEN":
            listening.setdefault(_port(head[4]), []).append((int(head[2]), int(head[3])))
        else:
            connections.append((head, after if after.startswith("\t") else ""))
    return listening, connections


def _port(end: str) -> str:
    return end.rpartition(":")[2]


def _growing(fields: Mapping[str, str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for name, ours in GROWING.items():
        # Retransmitted now / in all.
        text = fields.get(name, "").partition("/")[2] if name == "retrans" else fields.get(name)
        if text and (match := _NUMBER.fullmatch(text)):
            numbers[ours] = int(match[1])
    if "busy_ms" in numbers:
        # The kernel's three reasons exclude each other, and `ss` leaves out the third, which is the
        # congestion window or the network (tcp_chrono_start in net/ipv4/tcp_output.c).
        limited = numbers.get("rwnd_limited_ms", 0) + numbers.get("sndbuf_limited_ms", 0)
        numbers["cwnd_limited_ms"] = max(numbers["busy_ms"] - limited, 0)
    return numbers


def _levels(fields: Mapping[str, str]) -> dict[str, float]:
    levels: dict[str, float] = {}
    for name in LEVELS:
        if (text := fields.get(name)) and (match := _RATIO.fullmatch(text)):
            levels[name] = float(match[1])
    if "rtt" in levels:
        levels["rtt_us"] = round(levels["rtt"] * 1000)
    return levels


def _over(sockets: Sequence[Mapping[str, float]]) -> Iterable[tuple[str, float]]:
    """Return sums and quantiles over the sockets of a side."""
    yield "sockets", len(sockets)
    yield "app_limited", sum(s["app_limited"] for s in sockets)
    yield "backed_off", sum(s.get("backoff", 0) > 0 for s in sockets)
    yield "zero_window", sum(s.get("snd_wnd", 1) == 0 for s in sockets)
    for name in SUMMED:
        yield name, sum(s.get(name, 0) for s in sockets)
    for name in LARGEST:
        yield name, max(s.get(name, 0) for s in sockets)
    for name in ("recv_q", "send_q"):
        yield name, sum(s[name] for s in sockets)
        yield f"{name}.max", max(s[name] for s in sockets)
    for name, shown in QUANTILES.items():
        values = sorted(s[name] for s in sockets if name in s)
        ours = RENAMED.get(name, name)
        if values:
            for percent in shown:
                # The nearest rank: the least value that so many per cent don't exceed.
                yield f"{ours}.p{percent}", values[-(-len(values) * percent // 100) - 1]
            yield f"{ours}.max", values[-1]


def growth(before: SocketSample, after: SocketSample) -> Counter[str]:
    """Return by how much the growing quantities grew, summed over the sockets of each side.

    A socket that is new began at 0, and so did one with less than before: its ends were used again.
    What a socket did between a sample and its end is not seen.
    """
    growths: Counter[str] = Counter()
    for ends, (side, now) in after.growing.items():
        _, then = before.growing.get(ends, (side, {}))
        if any(then.get(name, 0) > value for name, value in now.items() if name in ONLY_UP):
            then = {}
        for name, value in now.items():
            if more := value - then.get(name, 0):
                growths[f"{side}.{name}"] += max(more, 0)
    return growths
