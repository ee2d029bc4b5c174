"""A winner under several workloads on a real lab: weights, uploads, TLS, a script of our own."""

import json
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders import results as findings
from intop.domain.configuration import Configuration
from intop.lab.state import DISKS_FOLDER
from intop.store import Subject, opened
from kit.studies import Study, wait_for

Make = Callable[..., Any]
WINNER = Configuration({"net.ipv4.tcp_slow_start_after_idle": "0"})
SCRIPT = """
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local intop = dofile(here .. "intop.lua")
intop.script("mine", { paths = "text", only = "text" }, function()
   local text = wrk.format(nil, "/about.html?mine")
   return function() return text end
end, { only = true })
"""
MORE = """
[workload.cdn]
kind = "slt"
tuned = false
scheme = "http"
rate_rps = 100
connections = 8
duration_s = 1
warmup_s = 0
paths = { "/img/icon-1.png" = 9, "/css/print.css" = 1 }

[workload.upload]
kind = "dlt"
tuned = false
scheme = "http"
rate_rps = 50
connections = 8
duration_s = 1
warmup_s = 0
method = "POST"
body_bytes = 60_000

[workload.tls]
kind = "slt"
tuned = false
scheme = "https"
rate_rps = 50
connections = 8
duration_s = 1
warmup_s = 0
requests_per_connection = 5

[workload.mine]
kind = "slt"
script = "mine.lua"
tuned = false
scheme = "http"
rate_rps = 50
connections = 8
duration_s = 1
warmup_s = 0
"""
COMMAND = ("across", "--rounds", "2")
NAMES = ["slt", "cdn", "upload", "tls", "mine"]


def written(study: Study) -> None:
    """The study with a lab that logs, ties its worker, and has a certificate."""
    path = study.folder / "intop.toml"
    text = path.read_text()
    lab = 'access_log = "disk"\nserver_cpus = "0"\ntls_key_bits = 2048\n'
    text = text.replace('load_cpus = "0-1"\n', f'load_cpus = "0-1"\n{lab}')
    text = text.replace("rate_rps = 300", 'scheme = "http"\nrate_rps = 60')
    text = re.sub(r"\[workload\.dlt\][^[]*", MORE, text)
    path.write_text(text)
    (study.folder / "mine.lua").write_text(SCRIPT)


def conditions(study: Study) -> list[dict[str, Any]]:
    """Those of all trials across workloads."""
    connection = sqlite3.connect(study.folder / "small.db", timeout=10)
    query = (
        "SELECT conditions FROM trial JOIN planned ON planned.id = planned_id "
        "WHERE stage = 'across' ORDER BY trial.id"
    )
    try:
        return [json.loads(text) for (text,) in connection.execute(query)]
    finally:
        connection.close()


@pytest.mark.long
def test_the_winner_is_measured_under_all_workloads(make_study: Make) -> None:
    study = make_study("x86")
    study.run("lab", "down")
    written(study)
    study.run("lab", "up")
    with opened(str(study.folder / "small.db")) as store:
        campaign = store.begin("small", seed=1, tool_version="0")
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.put(subject, replace(findings.VERDICT, configuration=WINNER))

    # Interrupted, it gives the host back and goes on.
    interrupted = study.start(*COMMAND)
    wait_for(lambda: len(study.trials("across")) >= 3, "the first trials")
    interrupted.send_signal(signal.SIGINT)
    _, message = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130, message
    assert study.balancer("cat /proc/sys/net/ipv4/tcp_slow_start_after_idle").strip() == "1"
    result = study.json(*COMMAND, expected=(0, 3))["x86 slt"]
    assert len({place for place, *_ in study.trials("across")}) == 20

    assert (
        [one["workload"] for one in result["workloads"]],
        result["reference"],
        result["rounds"],
    ) == (NAMES, "default", 2)
    for one in result["workloads"]:
        assert one["verdict"] is not None, one["problem"]
        sides = one["verdict"]["sides"]
        assert sides["error_share"]["default"] == 0
        for name in ("mean_ms", "received_mb_s", "memory_mib", "achieved_rps", "balancer_cpu"):
            assert sides[name]["tuned"] > 0
    made = conditions(study)
    assert {c["traffic"].split(";")[0] for c in made if c["workload"] == "tls"} == {"https"}
    assert {c["paths"].partition(" (")[0] for c in made if c["workload"] == "cdn"} == {
        "2 weighted paths"
    }
    scripts = {c["workload"]: c["script"] for c in made}
    assert scripts["slt"] == scripts["cdn"] != scripts["mine"]
    assert {c["server_cpus"] for c in made} == {"0"}

    log = DISKS_FOLDER / study.labs[0] / "access.log"
    asked = Counter(re.findall(r'"(\S+ \S+) HTTP', log.read_text()))
    assert asked["GET /about.html?mine"] >= 4 * 50
    assert asked["GET /img/icon-1.png"] > 3 * asked["GET /css/print.css"] > 0
    assert sum(n for what, n in asked.items() if what.startswith("POST /dynamic")) >= 4 * 50

    # Asked again, nothing is measured; the text has the line, and so have status and report.
    out, _ = study.run(*COMMAND, expected=(0, 3))
    assert out.count("worse here: ") == 1
    assert len({place for place, *_ in study.trials("across")}) == 20
    assert "winner under 5 workloads" in study.run("progress")[0]
    study.run("report", "--output", "report.html")
    assert "Under all workloads" in (study.folder / "report.html").read_text()
