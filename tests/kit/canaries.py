"""Canaries on a lab whose traffic is not intop's: the study, the clients, and what is set."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from intop.lab.cluster import cluster
from intop.lab.state import folders_of
from kit.studies import Study

Make = Callable[..., Any]

KEY, OWN, TRIED = "net.ipv4.tcp_fin_timeout", "60", "31"
BASELINE = f"""
schema = 1
title = "A key that does nothing here"
source = "this test"
[values]
"{KEY}" = {TRIED}
"""
CLIENTS = """
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
            for _ in range(5):
                began = time.monotonic()
                connection.putrequest("POST", "/dynamic?r=1")
                connection.putheader("Content-Length", "10")
                connection.endheaders()
                connection.send(b"12345")
                if value == slow_at:
                    time.sleep(WAIT_S)  # a slow client, as far as nginx can tell
                connection.send(b"67890")
                connection.getresponse().read()
                # Short waits leave the rate as it is, so that only they tell values apart.
                time.sleep(max(began + 0.45 - time.monotonic(), 0))
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()

for work in [look] + 150 * [ask]:
    threading.Thread(target=work, daemon=True).start()
print("flows", flush=True)
sys.stdin.read()
"""
TRAFFIC = CLIENTS.replace("WAIT_S", "0.4")
VERY_SLOW = CLIENTS.replace("WAIT_S", "3")
"""Clients whose requests become fewer, too, however busy the machine is."""


def made(make_study: Make, link: str = "", more: str = "") -> Study:
    """A study whose lab logs, with baselines of its own."""
    study: Study = make_study("x86")
    study.run("lab", "down")
    path = study.folder / "intop.toml"
    text = path.read_text().replace("[study]\n", '[study]\nbaselines = "mine"\n')
    text = text.replace("machines = [", 'access_log = "disk"\nmachines = [')
    text = text.replace("{ rate_mbit = 300 }", link or "{ rate_mbit = 300 }")
    text = text[: text.index("[workload.dlt]")] + text[text.index("[budget]") :]
    text += more.replace("LOG", str(log_of(study)))
    path.write_text(text)
    (study.folder / "mine").mkdir()
    (study.folder / "mine/mine.toml").write_text(BASELINE)
    (study.folder / "mine/bbr.toml").write_text(BBR)
    study.run("lab", "up")
    return study


@contextmanager
def traffic(study: Study, word: str = "never", program: str = TRAFFIC) -> Iterator[None]:
    """Requests of clients that intop knows nothing of, until the block ends."""
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


# Tests that run beside this one slow single blocks, and a limit would stop its canary.
NO_LIMIT = ("--limit-times", "1000")


def canary(*more: str) -> tuple[str, ...]:
    blocks = ("--block-s", "4", "--washout-s", "1", "--margin", "1.001")
    return ("canary", "--configuration", "mine", "--json", *blocks, *more)


def log_of(study: Study) -> Path:
    """The balancer's access log."""
    return folders_of(study.labs[0]).host("lb") / "disk/access.log"
