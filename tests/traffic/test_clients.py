"""Classes of clients, by their round trips or their addresses."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from builders.campaigns import LAB
from intop.config.study import Study, load_study
from intop.domain.cluster import LabSpec
from intop.errors import UsageError
from intop.traffic.clients import ClientClasses, prefixes_of
from intop.traffic.log_format import format_of
from intop.traffic.profile import Profile, profile_of
from intop.traffic.workload_text import lab_text, workload_text

FORMAT = (
    "$msec $remote_addr $tcpinfo_rtt $connection $connection_requests $request_time "
    '"$request" $status $body_bytes_sent'
)
START = 1_795_773_600.0
NEAR, FAR = "192.0.2.1", "2001:db8::7"

Clients = tuple[str, float, int, float]
"""Address, round trip (ms), requests of each connection, and the pause between them (s)."""


def lines(clients: Sequence[Clients], connections: int = 20) -> list[str]:
    """The lines of so many connections of each class, one after the other."""
    made: list[tuple[float, str]] = []
    for place, (address, trip_ms, each, idle_s) in enumerate(clients):
        for n in range(connections):
            for nth in range(1, each + 1):
                at = START + n + (nth - 1) * (idle_s + 0.01) + place / 10
                about = f"{address} {1000 * trip_ms:.0f} {place}-{n} {nth} 0.010"
                made.append((at, f'{at:.3f} {about} "GET /a HTTP/1.1" 200 1000'))
    return [line for _, line in sorted(made)]


def profile(clients: Sequence[Clients], *words: str) -> Profile:
    parse = format_of(FORMAT).parse
    read = (("a.log:1", parse(line)) for line in lines(clients))
    return profile_of(read, clients=ClientClasses(prefixes_of(words)))


def study(text: str, folder: Path) -> Study:
    path = folder / "intop.toml"
    path.write_text(f"{LAB.format(folder=folder)}\n{text}")
    return load_study(path)


TWO = [(NEAR, 1.0, 2, 0.0), (FAR, 40.0, 8, 0.5)]


def test_round_trips_make_classes_with_their_own_connections_and_pauses(tmp_path: Path) -> None:
    text = workload_text(profile(TWO), "shop")
    near, far = study(text, tmp_path).workloads["shop"].clients
    assert (near.name, far.name) == ("rtt-under-5", "rtt-20-50")
    assert (near.share, far.share) == (0.2, 0.8)
    assert (near.requests_per_connection, far.requests_per_connection) == (2.0, 8.0)
    assert (near.think_ms, far.think_ms) == (0.0, 500.0)
    assert {near.lifetimes, far.lifetimes} == {"geometric"}
    assert "80% of the requests, round trips of 20 to 50 ms; median round trip 40 ms" in text


def test_a_lab_has_a_link_for_each_class_in_place_of_classes_of_the_load(tmp_path: Path) -> None:
    own = profile(TWO)
    text = workload_text(own, "shop", has_classes=False) + lab_text(own, "x86")
    result = study(text, tmp_path)
    (spec,) = result.clusters["x86"]
    assert isinstance(spec, LabSpec)
    assert [(c.name, c.share) for c in spec.clients] == [("rtt-under-5", 0.2), ("rtt-20-50", 0.8)]
    near, far = (clients.link for clients in spec.clients)
    assert far is not None
    assert far.delay_ms == 20
    assert near is not None
    assert near.delay_ms == 0.5
    assert len(result.workloads["shop"].clients) == 1
    assert "add loss_percent where you know it" in text


def test_links_lose_what_the_host_has_sent_again(tmp_path: Path) -> None:
    text = lab_text(profile(TWO), "x86", lost_percent=0.318)
    workload = workload_text(profile(TWO), "shop", has_classes=False)
    (spec,) = study(workload + text, tmp_path).clusters["x86"]
    assert isinstance(spec, LabSpec)
    assert [c.link and c.link.loss_percent for c in spec.clients] == [0.32, 0.32]
    assert "# started, also to backends." in text
    assert "loss_percent" not in lab_text(profile(TWO), "x86", lost_percent=0.0)


def test_clients_next_door_have_no_link() -> None:
    text = lab_text(profile([(NEAR, 0.4, 2, 0.0), (FAR, 40.0, 8, 0.5)]), "x86")
    assert text.count("link = ") == 1


def test_one_class_far_away_is_one_link_and_one_near_by_is_none() -> None:
    assert "link = { delay_ms = 20.0 }" in lab_text(profile([TWO[1]]), "x86")
    assert "clients" not in lab_text(profile([(NEAR, 0.4, 2, 0.0)]), "x86")
    assert "# Clients: 100% of the requests, round trips of 20" in workload_text(
        profile([TWO[1]]), "shop"
    )


def test_prefixes_make_classes_and_the_rest_are_others() -> None:
    third = ("::ffff:198.51.100.9", 5.0, 2, 0.0)
    own = profile([*TWO, third], "office=192.0.2.0/24", "office=198.51.100.9", "far=2001:db8::/32")
    assert [(c.name, c.requests) for c, _ in own.clients.shares()] == [("office", 80), ("far", 160)]
    own = profile([*TWO, third], "far=2001:db8::/32")
    (far, _), (others, share) = own.clients.shares()
    assert (far.name, others.name, others.requests) == ("far", "others", 80)
    assert share == pytest.approx(80 / 240, abs=1e-4)
    assert far.about == "2001:db8::/32"
    assert far.delay_ms == 20


def test_shares_add_up_in_whatever_way_they_are_rounded() -> None:
    three = [(NEAR, 1.0, 1, 0.0), (FAR, 40.0, 1, 0.0), (FAR, 150.0, 1, 0.0)]
    assert sum(share for _, share in profile(three).clients.shares()) == pytest.approx(1, abs=1e-9)


def test_a_class_with_hardly_any_request_joins_its_neighbour() -> None:
    few = [(NEAR, 1.0, 100, 0.0), (FAR, 10.0, 1, 0.0), (FAR, 40.0, 100, 0.0)]
    own = profile(few)
    first = own.clients.shares()
    assert [c.name for c, _ in first] == ["rtt-under-5", "rtt-20-50"]
    assert first[0][0].requests == 2020
    assert first[0][0].about == "round trips below 5 ms and a few others"
    assert [(c.requests, share) for c, share in own.clients.shares()] == [
        (c.requests, share) for c, share in first
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["10.0.0.0/8"], "it has no =. Write NAME=PREFIX, such as office=10.0.0.0/8"),
        (["a=10.0.0.0/99"], "does not appear to be an IPv4 or IPv6 network"),
        (["A b=10.0.0.0/8"], "a name has up to 15 of a-z"),
        (["lb=10.0.0.0/8"], "is none of lb, b1, b2, b3"),
        (["others=10.0.0.0/8"], "others are all clients without a prefix"),
        ([f"c{n}=10.{n}.0.0/16" for n in range(9)], "at most 8 classes, and others"),
    ],
)
def test_words_that_make_no_class_are_one_error(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match="--clients") as refusal:
        prefixes_of(words)
    assert message in str(refusal.value)


def test_prefixes_without_addresses_in_the_log_say_what_to_add() -> None:
    parse = format_of('$msec "$request" $status').parse
    line = f'{START} "GET / HTTP/1.1" 200'
    classes = ClientClasses(prefixes_of(["office=10.0.0.0/8"]))
    own = profile_of([("a.log:1", parse(line))] * 3, clients=classes)
    with pytest.raises(UsageError, match=r"add \$remote_addr to log_format"):
        workload_text(own, "shop")


def test_the_command_takes_prefixes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from intop.cli import cli

    monkeypatch.chdir(tmp_path)
    Path("a.log").write_text("".join(f"{line}\n" for line in lines(TWO)))
    words = ["workload", "learn", "a.log", "--format", FORMAT, "--clients", "office=192.0.2.0/24"]
    call: Callable[..., object] = cli
    call(words, prog_name="intop", standalone_mode=False)
    assert "[[workload.learned.clients]]        # 20% of the requests, 192.0.2.0/24" in (
        capsys.readouterr().out
    )
