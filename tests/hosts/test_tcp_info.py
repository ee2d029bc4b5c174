"""TCP_INFO as `ss` prints it, of both sides of a load balancer."""

import pytest
from hypothesis import given

from builders.damage import anything, damaged
from intop.hosts.tcp_info import SocketSample, growth, parse_sample

LISTEN = "LISTEN 3      511          0.0.0.0:80        0.0.0.0:*     ino:1 sk:1 cgroup:/ <->"
SSH = "LISTEN 0      128          0.0.0.0:22        0.0.0.0:*     ino:2 sk:2 cgroup:/ <->"
NEITHER = "ESTAB  0      0       192.0.2.20:22     192.0.2.1:40000 ino:3 sk:3 cgroup:/ <->"
CLIENT = "ESTAB  7      100     [::ffff:192.0.2.20]:80 [::ffff:192.0.2.10]:50000"
INFO = (
    "\t cubic wscale:10,7 rto:204 backoff:2 rtt:4.5/1.25 ato:40 mss:1448 cwnd:12 ssthresh:7 "
    "bytes_sent:5000 bytes_retrans:1448 bytes_acked:4000 segs_out:9 segs_in:8 send 1bps "
    "unacked:3 retrans:1/5 lost:1 sacked:2 dsack_dups:4 reordering:9 reord_seen:6 app_limited "
    "busy:100ms rwnd_limited:30ms(30.0%) sndbuf_limited:20ms(20.0%) notsent:77 minrtt:0.5 "
    "snd_wnd:0"
)
UPSTREAM = "ESTAB  0      0      192.0.2.20:40001 192.0.2.31:80 uid:33 ino:5 sk:5 cgroup:/ <->"
PLAIN = "\t reno rto:300 rtt:10/2 cwnd:20 bytes_sent:50 retrans:0/0 busy:7ms"
LISTED = [LISTEN, "\t cubic cwnd:10", SSH, NEITHER, PLAIN, CLIENT, INFO, UPSTREAM, PLAIN]


def sample(*listed: str) -> SocketSample:
    result = parse_sample(listed, 80)
    assert result is not None
    return result


def test_every_field_of_a_client() -> None:
    result = sample(*LISTED)
    ends = ("[::ffff:192.0.2.20]:80", "[::ffff:192.0.2.10]:50000")
    assert result.growing[ends] == (
        "clients",
        {
            "busy_ms": 100,
            "rwnd_limited_ms": 30,
            "sndbuf_limited_ms": 20,
            "cwnd_limited_ms": 50,
            "bytes_sent": 5000,
            "bytes_retrans": 1448,
            "segs_out": 9,
            "segs_in": 8,
            "retrans": 5,
            "dsack_dups": 4,
            "reord_seen": 6,
        },
    )
    of = {
        n.removeprefix("clients."): v for n, v in result.levels.items() if n.startswith("clients")
    }
    assert of == {
        "sockets": 1,
        "app_limited": 1,
        "backed_off": 1,
        "zero_window": 1,
        "unacked": 3,
        "notsent": 77,
        "lost": 1,
        "sacked": 2,
        "reordering": 9,
        "recv_q": 7,
        "recv_q.max": 7,
        "send_q": 100,
        "send_q.max": 100,
        "rtt_us.p50": 4500,
        "rtt_us.p90": 4500,
        "rtt_us.max": 4500,
        "rto_ms.p50": 204,
        "rto_ms.max": 204,
        "cwnd.p10": 12,
        "cwnd.p50": 12,
        "cwnd.max": 12,
    }


def test_sides_are_told_apart_and_other_services_are_none() -> None:
    result = sample(*LISTED)
    assert [side for side, _ in result.growing.values()] == ["clients", "upstreams"]
    assert (result.levels["listen.queue"], result.levels["listen.limit"]) == (3, 511)
    assert result.levels["upstreams.rtt_us.max"] == 10_000


def test_growth_is_by_socket_and_a_new_one_begins_at_zero() -> None:
    before, after = sample(*LISTED), sample(*LISTED[:-1], PLAIN.replace("busy:7ms", "busy:9ms"))
    assert +growth(before, after) == {"upstreams.busy_ms": 2, "upstreams.cwnd_limited_ms": 2}
    again = sample(*LISTED[:-1], PLAIN.replace("busy:7ms", "busy:6ms"))
    assert growth(before, again)["upstreams.busy_ms"] == 6
    # One that is gone takes nothing away.
    assert +growth(before, sample(*LISTED[:-2])) == {}


@pytest.mark.parametrize("listed", [[], ["many"], [LISTEN, "unseen"]])
def test_sockets_that_are_too_many_or_not_listed_are_not_known(listed: list[str]) -> None:
    assert parse_sample(listed, 80) is None


@given(damaged("\n".join(LISTED)) | anything)
def test_no_list_of_sockets_is_too_odd_to_be_read(text: str) -> None:
    result = parse_sample(text.split("\n"), 80)
    assert result is None or all(v >= 0 for v in result.levels.values())
