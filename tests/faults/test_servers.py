"""Each server in nginx's place, on a lab of its own: asked, measured on, killed beside, given back.

The labs are at work at the same time, since most of it is waiting.
"""

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

from faults.sites import COLLECT, PROMISED_S, TRIALS, Site, ended, site
from intop.domain.configuration import Configuration
from intop.domain.search import Candidate
from intop.domain.server import SERVERS, ServerName
from intop.domain.trial import UNKNOWN, Trial
from intop.domain.verdict import Verdict
from intop.lab.content import static_paths
from intop.store import Subject, opened
from samples import search

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


@dataclass
class Seen:
    """What there is to say of one server.

    `queues` are the lengths of its listening socket's queue with WINNER, and at the end; `own` is
    what the host has. `wrong` is what doctor finds after its configuration was broken. `seconds`
    went by from the controller's death in a trial until every key was as before.
    """

    found: dict[str, Any]
    wrong: list[str]
    queues: list[int]
    own: int
    seconds: float
    trials: list[Trial]
    verdict: Verdict | None
    later: str


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
        configuration=Configuration({KEY: WINNER}), predicted_p99_ms=1.0, model="ensemble"
    )
    with opened(str(place.store)) as store:
        campaign = store.latest("small")
        assert campaign is not None
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.put(subject, search(candidates=(candidate,)))
    place.run("verify", expected=(0, 3))
    with opened(str(place.store)) as store:
        return store.get(subject, Verdict)


def carried_out(place: Site) -> Seen:
    own = int(place.inside("lb", f"sysctl -n {KEY}"))
    queues = [restarted(place, WINNER)]
    restarted(place, str(own))
    place.assert_untouched()
    found, wrong = place.doctor(), broken(place)
    # The default comes first: in the second load other values are set.
    process = place.signalled(signal.SIGKILL, "load", 2, "within")
    ended(process, -9)
    since = time.monotonic()
    assert place.is_changed()
    seconds = place.given_back(since)
    place.assert_untouched()
    _, later = place.run(*COLLECT)
    verdict = verified(place)
    place.assert_untouched()
    queues.append(queue(place))
    return Seen(found, wrong, queues, own, seconds, place.trials(), verdict, later)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[ServerName, Seen]]:
    folder: Path = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack, ThreadPoolExecutor(len(OTHERS)) as pool:
        places = [
            stack.enter_context(site(f"s{n}", folder / name, name)) for n, name in enumerate(OTHERS)
        ]
        yield dict(zip(OTHERS, pool.map(carried_out, places), strict=True))


@pytest.mark.parametrize("name", OTHERS)
def test_doctor_knows_it(seen: dict[ServerName, Seen], name: ServerName) -> None:
    found = seen[name].found
    assert [] == found["problems"]
    (version,) = [h["facts"]["nginx"] for h in found["hosts"] if h["role"] == "load-balancer"]
    assert re.fullmatch(VERSIONS[name], version)
    paths = {path["path"].partition("?")[0] for path in found["fetched"]}
    assert paths >= set(static_paths())
    assert {(200, "")} == {(path["status"], path["problem"]) for path in found["fetched"]}


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
    tuned, at_the_end = seen[name].queues
    assert int(WINNER) == tuned != seen[name].own
    assert seen[name].own == at_the_end


@pytest.mark.parametrize("name", OTHERS)
def test_killed_in_a_trial_the_host_is_given_back(
    seen: dict[ServerName, Seen], name: ServerName, record_property: Any
) -> None:
    record_property("seconds", seen[name].seconds)
    assert seen[name].seconds <= PROMISED_S
    restart = "the server keeps what its sockets got of a trial's values until it is restarted"
    assert restart in seen[name].later


@pytest.mark.parametrize("name", OTHERS)
def test_it_is_measured_and_told_in_the_conditions(
    seen: dict[ServerName, Seen], name: ServerName
) -> None:
    trials = seen[name].trials
    assert set(range(TRIALS)) == {t.planned.index for t in trials if t.stage == "collect"}
    conditions = {(t.conditions.server, t.conditions.nginx_conf) for t in trials}
    ((server, fingerprint),) = conditions
    assert name == server
    assert fingerprint not in ("", UNKNOWN)
    defaults = [t for t in trials if t.configuration.is_default]
    assert {"ok"} == {t.status for t in defaults}, [t.detail for t in trials]
    assert not any("still listens on the socket from before" in t.detail for t in trials)


@pytest.mark.parametrize("name", OTHERS)
def test_there_is_a_verdict(seen: dict[ServerName, Seen], name: ServerName) -> None:
    verdict = seen[name].verdict
    assert verdict is not None
    # What was collected may be better than WINNER.
    assert {"pick", "judge"} <= {trial.stage for trial in seen[name].trials}
    assert verdict.pairs > 1
