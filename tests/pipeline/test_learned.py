"""A workload that is learned from a log runs on a lab that serves the log's files."""

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from intop.lab.cluster import cluster
from intop.lab.state import folders_of
from intop.lab.texts import LOG_FORMAT
from kit.studies import Study

Make = Callable[..., Any]
FORMAT = (
    '$msec $connection $connection_requests "$request" $status $body_bytes_sent $request_time '
    "$upstream_response_time $tcpinfo_rtt"
)
FETCH = """
import sys, time, urllib.request as r
begun = time.monotonic()
sys.stdout.buffer.write(r.urlopen(sys.argv[1]).read())
sys.stderr.write(str(time.monotonic() - begun))
"""
SIZES = {"/": 14_200, "/blog": 3_000, "/blog/first": 52_000, "/a%20b.css": 700}
SLOW, WAIT_S = "/blog", 0.064


def log_of(path: Path, seconds: int = 60) -> Path:
    """Requests of connections with four each, half of them for the first path."""
    rng, lines, at = random.Random(1), [], 1_700_000_000.0
    while at < 1_700_000_000 + seconds:
        at += rng.expovariate(40)
        (asked,) = rng.choices(list(SIZES), [4, 2, 1, 1])
        number, nth = divmod(len(lines), 4)
        waited, trip_us = WAIT_S if asked == SLOW else "-", 40_000 if number % 10 < 3 else 300
        request = f'"GET {asked} HTTP/1.1" 200 {SIZES[asked]} 0.01 {waited} {trip_us}'
        lines.append(f"{at:.3f} {number} {nth + 1} {request}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture
def learned(make_study: Make) -> Study:
    """A study with the learned workload alone, whose lab serves its files and logs."""
    study: Study = make_study("x86")
    study.run("lab", "down")
    log = log_of(study.folder / "access.log")
    words = ("learn", str(log), "--format", FORMAT, "--name", "mine", "--lab", "x86")
    text, _ = study.run("workload", *words)
    workload, _, rest = text.partition("# A link's delay")
    cluster_text = f"# {rest}"
    workload = workload.replace("[workload.mine]", "[workload.mine]\nduration_s = 4", 1)
    path = study.folder / "intop.toml"
    old = path.read_text().replace("machines = [", 'access_log = "disk"\nmachines = [')
    before, _, after = old.partition("[workload.slt]")
    _, _, budget = after.partition("[budget]")
    one = before.replace("[[cluster.x86]]", "[cluster.x86]")
    path.write_text(f"{one}\n{cluster_text}\n{workload}\n[budget]{budget}")
    study.run("lab", "up")
    return study


@pytest.mark.long
def test_the_lab_serves_the_logs_files_and_the_load_asks_for_them(learned: Study) -> None:
    (lab,) = learned.labs
    host = urlsplit(cluster(lab).url).hostname
    for asked, size in SIZES.items():
        command = ["ip", "netns", "exec", f"intop-{lab}-lg", sys.executable, "-c", FETCH]
        url = f"http://{host}{asked}"
        took_s = []
        for _ in range(5):  # the machine may be busy for a moment
            done = subprocess.run([*command, url], capture_output=True, check=True, timeout=20)
            assert len(done.stdout) == size, asked
            took_s.append(float(done.stderr))
        assert (min(took_s) >= WAIT_S) == (asked == SLOW), asked
    learned.run("collect", "--samples", "8")
    generated = folders_of(lab).host("lb") / "disk/access.log"
    senders = Counter(line.partition(" ")[0] for line in generated.read_text().splitlines())
    (_, near), (_, far) = senders.most_common(2)
    assert far / (near + far) == pytest.approx(0.3, abs=0.05)
    checked = learned.run("workload", "check", "access.log", str(generated), "--format", FORMAT,
                          "--load-format", LOG_FORMAT, "--json")[0]  # fmt: skip
    result = json.loads(checked)
    rows = {row["quantity"]: row for row in result["compared"]}
    assert result["mix_difference"] < 5 * result["mix_by_chance"]
    for quantity, tolerance in (("mean answer", 0.1), ("requests of a connection", 0.25)):
        row = rows[quantity]
        assert row["load"] == pytest.approx(row["log"], rel=tolerance), quantity
