"""A canary on a real lab, whose traffic is not intop's: the switches, a harm, and what is left."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit

import pytest

from intop.lab.cluster import cluster
from intop.lab.state import folders_of
from kit.studies import Study, wait_for

Make = Callable[..., Any]

KEY, OWN, TRIED = "net.ipv4.tcp_fin_timeout", "60", "31"
BASELINE = f"""
schema = 1
title = "A key that does nothing here"
source = "this test"
[values]
"{KEY}" = {TRIED}
"""
TRAFFIC = """
import http.client, subprocess, sys, threading, time

host, namespace, slow_at = sys.argv[1:]
value = ""

def look():
    global value
    command = ["ip", "netns", "exec", namespace, "sysctl", "-n", "net.ipv4.tcp_fin_timeout"]
    while True:
        value = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        time.sleep(0.1)

def ask():
    while True:
        connection = http.client.HTTPConnection(host, 80, timeout=20)
        try:
            for _ in range(20):
                connection.putrequest("POST", "/dynamic?r=1")
                connection.putheader("Content-Length", "10")
                connection.endheaders()
                connection.send(b"12345")
                if value == slow_at:
                    time.sleep(0.2)  # a slow client, as far as nginx can tell
                connection.send(b"67890")
                connection.getresponse().read()
                time.sleep(0.005)
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()

for work in [look] + 40 * [ask]:
    threading.Thread(target=work, daemon=True).start()
print("flows", flush=True)
sys.stdin.read()
"""


def made(make_study: Make, link: str = "", more: str = "") -> Study:
    """A study whose lab logs, with baselines of its own."""
    study: Study = make_study("x86")
    study.run("lab", "down")
    path = study.folder / "intop.toml"
    text = path.read_text().replace("[study]\n", '[study]\nbaselines = "mine"\n')
    text = text.replace("machines = [", 'access_log = "disk"\nmachines = [')
    text = text.replace("{ rate_mbit = 300 }", link or "{ rate_mbit = 300 }")
    text = text[: text.index("[workload.dlt]")] + text[text.index("[budget]") :]
    log = folders_of(study.labs[0]).host("lb") / "disk/access.log"
    text += more.replace("LOG", str(log))
    path.write_text(text)
    (study.folder / "mine").mkdir()
    (study.folder / "mine/mine.toml").write_text(BASELINE)
    (study.folder / "mine/bbr.toml").write_text(BBR)
    study.run("lab", "up")
    return study


@contextmanager
def traffic(study: Study, word: str = "never", program: str = TRAFFIC) -> Iterator[None]:
    """Requests of forty clients that intop knows nothing of, until the block ends."""
    (lab,) = study.labs
    host = str(urlsplit(cluster(lab).url).hostname)
    words = ["ip", "netns", "exec", f"intop-{lab}-lg", sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*words, host, f"intop-{lab}-lb", word], stdin=pipe, stdout=pipe, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "flows\n"
            yield
        finally:
            process.kill()


DOWNLOADS = """
import http.client, subprocess, sys, threading, time

host, namespace, log = sys.argv[1:]
key = "net.ipv4.tcp_congestion_control"

def ask(after, file):
    time.sleep(after)
    while True:
        command = ["ip", "netns", "exec", namespace, "sysctl", "-n", key]
        value = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        connection = http.client.HTTPConnection(host, 80, timeout=20)
        try:
            for _ in range(10):
                began = time.monotonic()
                connection.request("GET", "/size/100k.jpg")
                connection.getresponse().read()
                file.write(f"{value} {1000 * (time.monotonic() - began):.1f}\\n")
                time.sleep(0.05)
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()

with open(log, "a", buffering=1) as file:
    for n in range(16):
        threading.Thread(target=ask, args=(n / 20, file), daemon=True).start()
    print("flows", flush=True)
    sys.stdin.read()
"""
"""Clients that note how long each of their requests takes, by the balancer's algorithm."""
ALGORITHM = "net.ipv4.tcp_congestion_control"
BBR = f'schema = 1\ntitle = "bbr"\nsource = "this test"\n[values]\n"{ALGORITHM}" = "bbr"\n'


def value(study: Study) -> str:
    return study.balancer(f"sysctl -n {KEY}").strip()


def canary(*more: str) -> tuple[str, ...]:
    blocks = ("--block-s", "4", "--washout-s", "1", "--margin", "1.001")
    return ("canary", "--configuration", "mine", "--json", *blocks, *more)


def test_values_switch_on_real_traffic_and_nothing_is_left(make_study: Make) -> None:
    study = made(make_study)
    with traffic(study):
        process = study.start(*canary("--pairs", "3"))
        wait_for(lambda: value(study) == TRIED, "the configuration")
        wait_for(lambda: value(study) == OWN, "the default again")
        out, err = process.communicate(timeout=300)
    assert process.returncode == 3, err
    result = json.loads(out)
    assert (result["outcome"], result["pairs"], result["only_new"]) == ("undecided", 3, True)
    assert result["requests"] > 500
    assert result["canary_requests"] > 500
    assert value(study) == OWN
    # All of it is stored.
    assert json.loads(study.run(*canary("--pairs", "3"), expected=(3,))[0]) == result


def test_a_harm_is_stopped_and_undone_at_once(make_study: Make) -> None:
    study = made(make_study)
    with traffic(study, word=TRIED):
        process = study.start(*canary("--pairs", "20"))
        out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    result = json.loads(out)
    assert (result["outcome"], result["pairs"]) == ("harm", 0)
    assert re.search(r"-lb: (P99 was|only) ", result["stopped"])
    assert value(study) == OWN


def test_a_gain_can_be_kept_and_rolled_back(make_study: Make) -> None:
    """The clients are slow with the default, which is what a gain looks like."""
    study = made(make_study)
    with traffic(study, word=OWN):
        out, err = study.run(*canary("--pairs", "12", "--keep", "--connections", "all"))
        assert json.loads(out)["outcome"] == "gain"
        assert "keeps mine until its next reboot" in err
        assert value(study) == TRIED
        assert f"{KEY}   {OWN}       {TRIED}" in study.run("status")[0]
        study.run("rollback")
    assert value(study) == OWN


def test_a_killed_controller_leaves_the_host_its_own_values_and_the_canary_goes_on(
    make_study: Make,
) -> None:
    study = made(make_study)
    with traffic(study):
        process = study.start(*canary("--pairs", "2"))
        wait_for(lambda: value(study) == TRIED, "the configuration")
        process.kill()
        process.communicate()
        wait_for(lambda: value(study) == OWN, "the watchdog")
        out, _ = study.run(*canary("--pairs", "2"), expected=(3,))
    assert json.loads(out)["pairs"] == 2


LOSSY = "{ delay_ms = 15, loss_percent = 1, up = { delay_ms = 15 } }"


def test_congestion_control_is_judged_by_the_kernels_tcp_info(make_study: Make) -> None:
    """Clients that intop does not control, behind a link that loses one packet in a hundred."""
    study = made(make_study, link=LOSSY)
    own = study.balancer(f"sysctl -n {ALGORITHM}").strip()
    words = ("--configuration", "bbr", "--block-s", "6", "--washout-s", "2", "--keep", "--json")
    log = study.folder / "clients.log"
    with traffic(study, str(log), DOWNLOADS):
        out, err = study.run("canary", *words, "--pairs", "12", "--limit-times", "100")
    result = json.loads(out)
    sides = {side["quantity"]: side for side in result["sides"]}
    assert own == "cubic"
    assert (result["outcome"], result["judged_by"]) == ("gain", "delivery time"), sides
    assert sides["delivery time"]["high"] < 1
    assert sides["delivery time"]["default"] > 50  # ms/MB: 100 KB take several round trips
    assert sides["P99"]["limit"] is None
    # The clients' own times, which intop does not see.
    noted: dict[str, list[float]] = {"cubic": [], "bbr": []}
    for line in log.read_text().splitlines():
        algorithm, ms = line.split()
        noted[algorithm].append(float(ms))
    clients = fmean(noted["bbr"]) / fmean(noted["cubic"])
    print(f"clients' mean {clients:.2f}, {result['sides']}")
    assert clients < 0.9
    assert sides["delivery time"]["ratio"] == pytest.approx(clients, rel=0.5)
    assert sides["retransmitted segments"]["default"] > 0.002
    assert "The verdict uses delivery time by TCP_INFO" in err
    # What clients notice may stay.
    assert "keeps bbr until its next reboot" in err
    assert study.balancer(f"sysctl -n {ALGORITHM}").strip() == "bbr"
    study.run("rollback")
    assert study.balancer(f"sysctl -n {ALGORITHM}").strip() == own


METRIC = """
[canary.metrics.waiting]
better = "lower"
command = '''tail -n 300 LOG | awk '{ sum += 1000 * $NF } END { print 1 + sum / NR }' '''
"""


def test_a_metric_of_the_users_own_is_asked_on_the_host(make_study: Make) -> None:
    study = made(make_study, more=METRIC)
    words = ("--pairs", "1", "--limit-times", "1000", "--connections", "all")
    with traffic(study, word=TRIED):
        out, err = study.run(*canary(*words), expected=(3,))
    (side,) = (side for side in json.loads(out)["sides"] if side["quantity"] == "waiting")
    assert side["ratio"] > 2, err
    assert (side["better"], side["limit"]) == ("lower", 1.001)
    assert value(study) == OWN


def test_a_metric_without_a_number_is_refused_before_anything_is_set(make_study: Make) -> None:
    study = made(make_study, more=METRIC.replace("LOG", "/nowhere"))
    _, err = study.run(*canary("--pairs", "1"), expected=(2,))
    assert "[canary.metrics.waiting]: exit code 2" in err
    assert "then run: intop canary" in err
    assert study.trials("canary") == []
