"""Which mechanisms are named by what the kernel counted on both sides of a verdict."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from intop.campaign.verify.causes import causes
from intop.config.counters import load_counters
from intop.domain.causes import Causes
from intop.domain.counters import HELD_BACK, HostCounters, with_clients
from intop.resources import shipped

CATALOGUE = load_counters(shipped("configs") / "counters.toml")


def counted(totals: Mapping[str, int], **levels: float) -> HostCounters:
    """A trial of two points."""
    return HostCounters(
        at_s=(1.0, 2.0),
        growth={name: (total // 2, total - total // 2) for name, total in totals.items()},
        levels={f"tcp_info.{name}.p50": (level, level) for name, level in levels.items()},
    )


def noise(rng: random.Random) -> dict[str, int]:
    """What goes on in any trial: some of it is rare, and some of it often."""
    names = ("TcpExt.TCPTimeouts", "TcpExt.TCPRcvCollapsed", "TcpExt.TCPLossProbes")
    result = {name: sum(rng.random() < 0.01 for _ in range(100)) for name in names}
    result["Tcp.RetransSegs"] = rng.randint(300, 500)
    result["TcpExt.DelayedACKs"] = rng.randint(2000, 2100)
    return result


def sides(
    pairs: int, more: Callable[[random.Random], Mapping[str, int]], seed: int = 1
) -> Causes | None:
    """`more` is what the default alone has."""
    rng = random.Random(seed)
    default = [counted({**noise(rng), **more(rng)}) for _ in range(pairs)]
    return causes(default, [counted(noise(rng)) for _ in range(pairs)], CATALOGUE)


def test_a_full_queue_of_handshakes_is_told_from_a_full_accept_queue() -> None:
    result = sides(4, lambda rng: {"TcpExt.ListenDrops": rng.randint(40, 60)})
    assert result is not None
    assert [(c.mechanism, c.eased) for c in result.mechanisms] == [("syn-backlog", True)]
    (moved,) = result.mechanisms[0].counters
    assert (moved.tuned, moved.least) > (0, 30)
    assert moved.times.low < moved.times.value < moved.times.high
    assert result.summary.startswith("less of syn-backlog (TcpExt.ListenDrops ")

    def overflowing(rng: random.Random) -> dict[str, int]:
        count = rng.randint(40, 60)
        return {"TcpExt.ListenOverflows": count, "TcpExt.ListenDrops": count}

    result = sides(4, overflowing)
    assert result is not None
    assert [c.mechanism for c in result.mechanisms] == ["accept-queue"]


def test_what_became_worse_is_told_as_that() -> None:
    rng = random.Random(1)
    default = [counted(noise(rng)) for _ in range(5)]
    tuned = [counted({**noise(rng), "TcpExt.TCPTimeouts": 80 + n}) for n in range(5)]
    result = causes(default, tuned, CATALOGUE)
    assert result is not None
    assert (result.eased, [c.mechanism for c in result.worsened]) == ((), ["rto"])
    assert result.summary.startswith("more of rto (TcpExt.TCPTimeouts ")


def test_sockets_that_one_side_did_not_list_are_no_cause() -> None:
    """There are too many of them with the tuned configuration, and so none is read."""
    read = [
        HostCounters(at_s=(1.0,), growth={"clients.retrans": (300 + n,), "Tcp.InSegs": (9,)})
        for n in range(5)
    ]
    unread = [replace(one, growth={}, unread=("sockets",)) for one in read]
    result = causes(read, [replace(one, growth={}) for one in read], CATALOGUE)
    assert result is not None
    assert [cause.mechanism for cause in result.mechanisms] == ["congestion"]
    result = causes(read, unread, CATALOGUE)
    assert result is not None
    assert result.mechanisms == ()


def test_clients_know_what_the_receive_window_held_back() -> None:
    balancer = HostCounters(at_s=(1.0, 2.0), growth={"Tcp.InSegs": (5, 6)})
    client = HostCounters(at_s=(1.0,), growth={"upstreams.rwnd_limited_ms": (300,)})
    both = with_clients(balancer, [client, client])
    assert both.totals == {"Tcp.InSegs": 11, HELD_BACK: 600}
    free = with_clients(balancer, [replace(client, growth={})])
    result = causes([both] * 5, [free] * 5, CATALOGUE)
    assert result is not None
    assert [cause.mechanism for cause in result.eased] == ["receive-window"]
    # Of clients that have too many sockets, or have counted nothing, nothing is known.
    for unknown in ([client, replace(client, unread=("sockets",))], []):
        assert not with_clients(balancer, unknown).shows(HELD_BACK)


def test_a_level_that_is_better_higher() -> None:
    default = [counted({}, cwnd=10 + n / 10) for n in range(5)]
    tuned = [counted({}, cwnd=40 - n / 10) for n in range(5)]
    result = causes(default, tuned, CATALOGUE)
    assert result is not None
    assert [(c.mechanism, c.eased) for c in result.mechanisms] == [("congestion", True)]


def test_the_one_that_changed_most_comes_first() -> None:
    def both(rng: random.Random) -> dict[str, int]:
        return {"TcpExt.ListenOverflows": 20 + rng.randint(0, 3), "TcpExt.TCPTimeouts": 2000}

    result = sides(6, both)
    assert result is not None
    assert [c.mechanism for c in result.mechanisms] == ["rto", "accept-queue"]


def test_a_change_that_is_clear_and_small_explains_nothing() -> None:
    default = [counted({"TcpExt.TCPTimeouts": 10_000 + n}) for n in range(8)]
    tuned = [counted({"TcpExt.TCPTimeouts": 8_500 + n}) for n in range(8)]
    result = causes(default, tuned, CATALOGUE)
    assert result is not None
    assert result.mechanisms == ()
    assert result.summary == "no known mechanism: none of 1 counters changed clearly in 8 pairs"


@pytest.mark.parametrize("pairs", [3, 10])
def test_of_equal_sides_nothing_is_named(pairs: int) -> None:
    named = [sides(pairs, lambda _: {}, seed) for seed in range(60)]
    assert sum(bool(result and result.mechanisms) for result in named) <= 1


def test_what_happened_once_on_one_side_is_no_cause() -> None:
    once = [counted({"TcpExt.TCPTimeouts": 1})] * 2
    result = causes(once, [counted({})] * 2, CATALOGUE)
    assert result is not None
    assert result.mechanisms == ()


def test_of_one_pair_nothing_can_be_said() -> None:
    assert causes([counted({})], [counted({})], CATALOGUE) is None
    with pytest.raises(ValueError, match="1 trials against 0"):
        causes([counted({})], [], CATALOGUE)
