"""The catalogue of counters that is shipped, and what a file may not say."""

from pathlib import Path

import pytest

from intop.config.counters import load_counters
from intop.domain.counters import CounterCatalogue, HostCounters
from intop.errors import ConfigurationError
from intop.hosts.kernel_counters import is_level, parse_stub_status, parse_tables
from intop.hosts.tcp_info import GROWING

ROOT = Path(__file__).parents[1]
GOOD = """
schema = 1
[mechanism]
rto = "A timer."
[[group]]
table = "TcpExt"
document = "net/ipv4/tcp_timer.c"
levels = ["B"]
[group.counters]
A = ["worse", "rto", "It ran out."]
B = ["neutral", "", "Another one."]
"""


@pytest.fixture(scope="module")
def shipped() -> CounterCatalogue:
    return load_counters(ROOT / "configs" / "counters.toml")


@pytest.mark.parametrize("name", ["reading-x86-6.18-balancer.txt", "reading-arm-6.1-guest.txt"])
def test_all_that_real_kernels_count_of_tcp_ip_and_udp_is_explained(
    shipped: CounterCatalogue, name: str
) -> None:
    text = (ROOT / "tests" / "data" / "hosts" / name).read_text()
    listed = text.partition("@ tables\n")[2].partition("@ conntrack")[0].split("\n")
    counters = parse_tables(listed)
    assert len(counters) > 250
    others = ("MPTcpExt.", "Icmp.", "IcmpMsg.", "UdpLite.")
    assert [n for n in counters if shipped.find(n) is None and not n.startswith(others)] == []
    for counter in counters:
        if (entry := shipped.find(counter)) is not None:
            assert entry.level == is_level(counter), counter


def test_every_mechanism_has_counters(shipped: CounterCatalogue) -> None:
    named = {counter.mechanism for counter in shipped.counters.values()}
    assert {"", *shipped.mechanisms} == named


def test_what_nginx_tells_is_explained(shipped: CounterCatalogue) -> None:
    page = ["HTTP/1.1 200 OK", "", "Active connections: 3 ", "server accepts handled requests"]
    words = parse_stub_status([*page, " 17 15 40 ", "Reading: 0 Writing: 1 Waiting: 2 "])
    assert {name: value for name, value in words.items() if not is_level(name)} == {
        "nginx.accepts": 17,
        "nginx.dropped": 2,
        "nginx.requests": 40,
    }
    for name in words:
        entry = shipped.find(name)
        assert entry is not None, name
        assert entry.level == is_level(name)


@pytest.mark.parametrize("body", ["", "Active connections: x", "<html>not found</html>"])
def test_another_page_says_nothing(body: str) -> None:
    assert parse_stub_status(["HTTP/1.1 404 Not Found", "", body]) == {}


def test_what_sockets_tell_is_explained(shipped: CounterCatalogue) -> None:
    for side in ("clients", "upstreams"):
        for name in (*GROWING.values(), "cwnd_limited_ms"):
            entry = shipped.find(f"{side}.{name}")
            assert entry is not None, name
            assert not entry.level


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "schema = 2", "must be 1, got 2"),
        ('"worse"', '"bad"', "'worse', 'better' or 'neutral'"),
        ('"rto", "It', '"rtt", "It', "names the unknown mechanism 'rtt'"),
        ('levels = ["B"]', 'levels = ["C"]', "C is no counter of this group"),
        ('levels = ["B"]', 'sizes = ["C"]', "C is no counter of this group"),
        ('"It ran out."', '"it ran out"', "must be a sentence"),
        ("tcp_timer.c", "tcp_timer", "document: must be a file or"),
        ("[mechanism]", "[mechanisms]", "is not a known table"),
    ],
)
def test_a_wrong_file_names_each_problem(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "counters.toml"
    file.write_text(GOOD)
    assert set(load_counters(file).counters) == {"TcpExt.A", "TcpExt.B"}
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigurationError, match=message):
        load_counters(file)


def test_a_counter_that_stands_there_twice(tmp_path: Path) -> None:
    file = tmp_path / "counters.toml"
    file.write_text(GOOD + GOOD.partition("[[group]]")[2].join(["[[group]]", ""]))
    with pytest.raises(ConfigurationError, match=r"TcpExt\.A stands there twice"):
        load_counters(file)


def test_series_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"TcpExt\.A has 1 points of 2"):
        HostCounters(at_s=(1.0, 2.0), growth={"TcpExt.A": (1,)})
