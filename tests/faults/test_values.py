"""Values that the kernel makes into others or refuses, and keys that go away meanwhile."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.sites import COLLECT, PROMISED_S, Site, ended, message, site

FIN = "net.ipv4.tcp_fin_timeout"
RETRIES = "net.ipv4.tcp_retries2"
RTO = "net.ipv4.tcp_rto_max_ms"
SOMAXCONN = "net.core.somaxconn"
GONE = "net.ipv4.neigh.gone0.ucast_solicit"

COMMON = """
unit = ""
scope = "namespace"
risk = "low"
mechanism = "the fault suite's"
document = "Documentation/networking/ip-sysctl.rst"
"""
RANGE = """
[[parameter]]
key = "{key}"
kind = "integer"
low = {low}
high = {high}
scale = "linear"
"""
OCTAL = ", ".join(f'"0{number:o}"' for number in range(16, 256))
SPELLED = f"""
[[parameter]]
key = "{RETRIES}"
kind = "choice"
choices = ["15", {OCTAL}]
{COMMON}"""
"""The kernel takes them, and spells them otherwise: 020 reads back as 16."""


def integer(key: str, low: int, high: int) -> str:
    return RANGE.format(key=key, low=low, high=high) + COMMON


def catalogue(*parameters: str) -> str:
    return "schema = 1\n" + integer(FIN, 10, 50) + "".join(parameters)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site("v", tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (SPELLED, rf"{RETRIES} was set to '0[0-7]+' and reads back as '[1-9]\d+'"),
        (integer(RTO, 120_000, 300_000), rf"{RTO} was set to '\d+' and reads back as '120000'"),
    ],
    ids=["made into another", "refused"],
)
def test_a_value_that_the_kernel_does_not_take(place: Site, parameter: str, words: str) -> None:
    place.write_file(catalogue=catalogue(parameter))
    process = place.signalled(signal.SIGKILL, "write", 3, "after")
    ended(process, -signal.SIGKILL)
    since = time.monotonic()
    assert place.is_changed()  # the other key
    assert place.given_back(since) <= PROMISED_S

    _, err = place.run(*COLLECT)
    place.assert_untouched()
    default, *others = place.trials()
    assert default.usable
    assert [trial.status for trial in others] == ["failed"] * 8
    for trial in others:
        assert re.search(words, trial.detail)
        assert err.count(f"trial {trial.planned.index} failed: {trial.detail}\n") == 1


@pytest.fixture
def interface(place: Site) -> None:
    """A host with a key that can go away."""
    place.inside("lb", "ip link add gone0 type veth peer name gone1")
    place.write_file(lease_s=30, catalogue=catalogue(integer(GONE, 1, 100)))


def remove(place: Site) -> None:
    place.inside("lb", "ip link delete gone0")


@pytest.mark.usefixtures("interface")
def test_a_key_that_goes_away_between_probe_and_snapshot(place: Site) -> None:
    with place.stopped("begin", 1, "before") as process:
        remove(place)
        process.send_signal(signal.SIGCONT)
        _, err = ended(process, 1)
    place.assert_untouched()
    assert f"{place.balancer}: can't be read there: {GONE}" in message(err)
    # The next one does without it, and says so.
    assert "this kernel doesn't have it" in place.doctor()["refused"][GONE]


@pytest.mark.usefixtures("interface")
def test_a_key_that_goes_away_under_a_session(place: Site) -> None:
    with place.stopped("write", 3, "before") as process:
        remove(place)
        process.send_signal(signal.SIGCONT)
        _, err = ended(process, 1)
    place.assert_untouched()
    assert re.search(r"neigh[./]gone0[./]ucast_solicit", message(err))
    assert place.trials()[0].usable


@pytest.mark.long
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_nginx_listens_as_before_when_a_session_has_ended(
    place: Site, ending: signal.Signals
) -> None:
    """Its sockets have the backlog of when it was started; a death leaves the command for that."""

    def backlogs() -> set[str]:
        listed = place.inside("lb", "ss -Hltn")
        return set(re.findall(r"^LISTEN +\d+ +(\d+) .*:80 ", listed, re.MULTILINE))

    place.write_file(catalogue=catalogue(integer(SOMAXCONN, 101, 400)))
    before = backlogs()
    assert before
    with place.stopped("load", 2, "within") as process:
        assert not before & backlogs()
        process.send_signal(signal.SIGCONT)
        process.send_signal(ending)
        ended(process, 130 if ending == signal.SIGINT else -ending)
    if ending == signal.SIGKILL:
        place.given_back(time.monotonic())
        place.wait_until_released()
        assert not before & backlogs()
        report = (place.state / "report").read_text()
        (command,) = re.findall(r"until it is restarted, as root: (.+)", report)
        place.inside("lb", command)
    place.assert_untouched()
    assert before == backlogs()
