"""Each server in nginx's place, on a lab of its own: asked, measured on, killed beside, given back.

The labs are at work at the same time, since most of it is waiting.
"""

import json
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builders.trials import search
from faults.sites import COLLECT, PROMISED_S, TRIALS, Site, ended, site
from intop.domain.configuration import Configuration
from intop.domain.search import Candidate
from intop.domain.server import SERVERS, ServerName
from intop.domain.trial import UNKNOWN, Trial
from intop.domain.verdict import Verdict
from intop.lab.content import static_paths
from intop.store import Subject, opened

OTHERS: tuple[ServerName, ...] = tuple(name for name in SERVERS if name != "nginx")
VERSIONS: dict[ServerName, str] = {
    "apache": r"Apache/2\.[\d.]+ .*",
    "haproxy": r"haproxy/\d[\w.+-]+",
    "lighttpd": r"lighttpd/1\.[\d.]+",
    "varnish": r"varnish/\d[\d.]+",
    "caddy": r"caddy/\d[\w.]+",
    "h2o": r"h2o/\d[\w.-]+",
}
KEY, WINNER = "net.core.somaxconn", "777"
TUNED = (KEY, "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_slow_start_after_idle")
"""Few, and none of them can make trials long."""


@dataclass
class Seen:
    """What there is to say of one server until its controller is killed, and the host given back.

    `wrong` is what doctor finds after its configuration was broken. `tuned` is the length of its
    listening socket's queue with WINNER, and `own` is what the host has. `seconds` went by from the
    controller's death in a trial until every key was as before.
    """

    found: dict[str, Any]
    wrong: list[str]
    own: int
    tuned: int
    seconds: float
    trials: list[Trial]


@dataclass
class Later:
    """The same once the campaign went on; `queue` is as `Seen.tuned`, at the end."""

    said: str
    verdict: Verdict | None
    trials: list[Trial]
    queue: int


def queue(place: Site) -> int:
    """The length of the queue of the socket that takes the load."""
    return int(place.inside("lb", "ss -Hltn 'sport = :80'").split()[2])


def restarted(place: Site, value: str) -> int:
    """The queue after a restart under a value of KEY."""
    place.inside("lb", f"sysctl -q -w {KEY}={value} && {place.cluster.server_restart}")
    return queue(place)


def broken(place: Site) -> list[str]:
    """The problems that doctor finds with a configuration that the server can't read."""
    conf = place.state.parent / "server.conf"
    good = conf.read_text()
    conf.write_text(f"{good}\n}} no such line {{\n")
    try:
        out, _ = place.run("doctor", expected=(1,))
    finally:
        conf.write_text(good)
    return re.findall(r"^ *PROBLEM  (.*)$", out, re.MULTILINE)


def verified(place: Site) -> Verdict | None:
    """The verdict on WINNER, as if a search had found it."""
    candidate = Candidate(
        configuration=Configuration({KEY: WINNER}), predicted_ms=1.0, model="ensemble"
    )
    with opened(str(place.store)) as store:
        campaign = store.latest("small")
        assert campaign is not None
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.put(subject, search(candidates=(candidate,)))
    place.run("verify", expected=(0, 3))
    with opened(str(place.store)) as store:
        return store.get(subject, Verdict)


def killed(place: Site) -> Seen:
    file = place.folder / "intop.toml"
    file.write_text(
        file.read_text().replace("[study]\n", f"[study]\nparameters = {json.dumps(TUNED)}\n", 1)
    )
    own = int(place.inside("lb", f"sysctl -n {KEY}"))
    tuned = restarted(place, WINNER)
    restarted(place, str(own))
    place.assert_untouched()
    result, wrong = place.doctor(), broken(place)
    # The default comes first: in the second load other values are set.
    process = place.signalled(signal.SIGKILL, "load", 2, "within")
    ended(process, -9)
    since = time.monotonic()
    assert place.is_changed()
    seconds = place.given_back(since)
    place.assert_untouched()
    return Seen(result, wrong, own, tuned, seconds, place.trials())


def gone_on(place: Site) -> Later:
    _, output = place.run(*COLLECT)
    verdict = verified(place)
    place.assert_untouched()
    return Later(output, verdict, place.trials(), queue(place))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[ServerName, Site]]:
    folder: Path = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(site(f"s{n}", folder / name, name))
            for n, name in enumerate(OTHERS)
        }


@pytest.fixture(scope="module")
def seen(places: dict[ServerName, Site]) -> dict[ServerName, Seen]:
    with ThreadPoolExecutor(len(places)) as pool:
        return dict(zip(places, pool.map(killed, places.values()), strict=True))


@pytest.fixture(scope="module")
def later(
    places: dict[ServerName, Site], seen: dict[ServerName, Seen]
) -> dict[ServerName, tuple[Seen, Later]]:
    with ThreadPoolExecutor(len(places)) as pool:
        ended_by = dict(zip(places, pool.map(gone_on, places.values()), strict=True))
    return {name: (seen[name], ended_by[name]) for name in places}


@pytest.mark.parametrize("name", OTHERS)
def test_doctor_knows_it(seen: dict[ServerName, Seen], name: ServerName) -> None:
    result = seen[name].found
    assert result["problems"] == []
    (version,) = [h["facts"]["nginx"] for h in result["hosts"] if h["role"] == "load-balancer"]
    assert re.fullmatch(VERSIONS[name], version)
    paths = {path["path"].partition("?")[0] for path in result["fetched"]}
    assert paths >= set(static_paths())
    assert {(path["status"], path["problem"]) for path in result["fetched"]} == {(200, "")}


@pytest.mark.parametrize("name", OTHERS)
def test_doctor_says_where_it_would_not_start_again(
    seen: dict[ServerName, Seen], name: ServerName
) -> None:
    (problem,) = seen[name].wrong
    assert f"-lb: {SERVERS[name].title} refuses its configuration as it is now" in problem


@pytest.mark.parametrize("name", OTHERS)
def test_its_restart_opens_its_socket_under_the_values_that_are_set(
    seen: dict[ServerName, Seen], name: ServerName
) -> None:
    assert int(WINNER) == seen[name].tuned != seen[name].own


@pytest.mark.parametrize("name", OTHERS)
def test_killed_in_a_trial_the_host_is_given_back(
    seen: dict[ServerName, Seen], name: ServerName, record_property: Any
) -> None:
    record_property("seconds", seen[name].seconds)
    assert seen[name].seconds <= PROMISED_S


@pytest.mark.parametrize("name", OTHERS)
def test_it_is_measured_and_told_in_the_conditions(
    seen: dict[ServerName, Seen], name: ServerName
) -> None:
    first = seen[name].trials[-1]
    assert (first.status, first.detail, first.configuration.is_default) == ("ok", "", True)
    assert name == first.conditions.server
    assert first.conditions.nginx_conf not in ("", UNKNOWN)


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_the_campaign_goes_on_to_a_verdict(
    later: dict[ServerName, tuple[Seen, Later]], name: ServerName
) -> None:
    before, after = later[name]
    message = "the server keeps what its sockets got of a trial's values until it is restarted"
    assert message in after.said
    assert before.trials == after.trials[: len(before.trials)]
    collected = [t for t in after.trials if t.stage == "collect"]
    assert set(range(TRIALS)) == {t.planned.index for t in collected}
    assert {"pick", "judge"} <= {t.stage for t in after.trials}
    assert all(t.usable for t in after.trials), [t.detail for t in after.trials]
    # The fingerprint survived restarts, a death and the sessions after it.
    assert len({t.conditions.nginx_conf for t in after.trials}) == 1
    assert after.verdict is not None
    assert after.verdict.pairs > 1
    assert before.own == after.queue
