"""Parameters of the kernel and directives of nginx in one space, on a real lab."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from intop.lab.state import STATE_FOLDER

Make = Callable[..., Any]
WORKERS = "nginx:main.worker_processes"
KEYS = ["net.core.somaxconn", "net.ipv4.tcp_rmem", "nginx:*"]


@pytest.mark.long
def test_both_are_tuned_and_given_back(make_study: Make) -> None:
    study = make_study("x86")
    path = study.folder / "intop.toml"
    wanted = f'tunes = ["kernel", "nginx"]\nparameters = {json.dumps(KEYS)}\n'
    path.write_text(path.read_text().replace('name = "small"\n', f'name = "small"\n{wanted}'))
    conf = STATE_FOLDER / study.labs[0] / "host-lb/nginx.conf"
    before = conf.read_bytes(), conf.stat().st_mode

    (result,) = study.json("doctor")
    assert result["problems"] == []
    offered = result["offered"]
    directives = [key for key in offered if key.startswith("nginx:")]
    assert set(offered) - set(directives) == {"net.core.somaxconn", "net.ipv4.tcp_rmem"}
    assert {"nginx:main.worker_processes", "nginx:listen.backlog"} < set(directives)
    assert len(directives) > 30

    few = ["net.core.somaxconn", "nginx:main.worker_processes", "nginx:listen.*"]
    path.write_text(path.read_text().replace(json.dumps(KEYS), json.dumps(few)))
    result = study.json("collect", "--workload", "slt", "--samples", "8")["x86 slt"]
    # Beside other tests one may be so slow that it is pruned.
    assert {t["status"] for t in result["trials"]} <= {"ok", "pruned"}
    varied = {key for *_, values in study.trials("collect") for key in json.loads(values)}
    assert {"net.core.somaxconn", "nginx:main.worker_processes", "nginx:listen.backlog"} < varied
    assert varied < set(offered)
    assert before == (conf.read_bytes(), conf.stat().st_mode)

    cores = ("sweep", "--workload", "slt", "--over", "cores", "--points", "1,2")
    points = study.json(*cores)["x86 slt"]["points"]
    assert [(p["label"], p["arms"][0]["trials"]) for p in points] == [("1", 3), ("2", 3)]
    set_to = {json.loads(values)[WORKERS] for *_, values in study.trials("sweep")}
    assert set_to == {"1", "2"}
    assert before == (conf.read_bytes(), conf.stat().st_mode)

    study.run("train", "--workload", "slt")
