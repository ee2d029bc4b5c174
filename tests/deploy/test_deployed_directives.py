"""Directives from a finished campaign to nginx's files and back, on a real lab."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.finished import STUDY, finish_campaign
from builders.results import VERDICT
from intop.domain.cluster import native_arch
from intop.domain.configuration import Configuration
from intop.lab.cluster import cluster
from intop.lab.state import STATE_FOLDER
from kit.studies import RUN, Study

NAME = f"dir{RUN}"
RMEM = "net.ipv4.tcp_rmem"
PROCESSES, BACKLOG = "nginx:main.worker_processes", "nginx:listen.backlog"
VALUES = {RMEM: "51491 51491 252930", PROCESSES: "2", BACKLOG: "2000"}
BOTH = f'tunes = ["kernel", "nginx"]\nparameters = {json.dumps([*VALUES])}\n'
CLUSTER = f'[[cluster.native]]\nlab = "{NAME}"\nlink = {{ rate_mbit = 75 }}\n'


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    text = STUDY.format(clusters=CLUSTER).replace('name = "small"\n', f'name = "small"\n{BOTH}')
    (tmp_path / "intop.toml").write_text(text)
    made = Study(tmp_path, (NAME,))
    try:
        made.run("lab", "up")
        finish_campaign(made, replace(VERDICT, configuration=Configuration(VALUES)))
        yield made
    finally:
        made.run("lab", "down")


def test_plan_apply_status_export_and_rollback(study: Study) -> None:
    conf = STATE_FOLDER / NAME / "host-lb/nginx.conf"
    before = conf.read_bytes(), conf.stat().st_mode
    address = cluster(NAME).load_balancer
    ours = Path(address.config_root) / "etc/sysctl.d/99-zz-intop.conf"

    _, err = study.run("plan", expected=(2,))
    assert "directives stay in nginx's files after a reboot" in err
    assert "say --persist" in err
    (host,) = study.json("plan", "--persist", "--output", "plan.json")[native_arch()]["hosts"]
    planned = {key["change"]["key"]: key for key in host["result"]["keys"]}
    assert {key: one["change"]["value"] for key, one in planned.items()} == VALUES
    assert (planned[PROCESSES]["now"], planned[BACKLOG]["now"]) == ("1", "65535")
    (edit,) = host["result"]["edits"]
    assert str(conf) == edit["path"]
    assert {"-worker_processes 1;", "+worker_processes 2;"} < set(edit["diff"].split("\n"))
    assert all(line[0] in "+-" for line in edit["diff"].split("\n"))
    assert before == (conf.read_bytes(), conf.stat().st_mode)

    (rollout,) = study.json("apply", "--persist", "--rounds", "2", "--accept-no-loss", "--yes")
    (host,) = rollout["hosts"]
    assert (address.name, "applied", str(ours)) == (host["host"], host["outcome"], host["file"])
    assert [str(conf)] == host["nginx_files"]
    assert "worker_processes 2;" in conf.read_text()
    assert "backlog=2000" in conf.read_text()
    assert "2000" in study.balancer("ss -Hltn sport = :80").split()
    assert "nginx:" not in bare(ours)

    out, _ = study.run("status")
    assert out.splitlines()[0].endswith(f"for good by {ours}, {conf}: as applied")
    assert PROCESSES in out
    (rollout,) = study.json("apply", "--persist", "--yes")
    assert [host["outcome"] for host in rollout["hosts"]] == ["already"]
    conf.write_text(conf.read_text() + "# theirs\n")
    out, _ = study.run("status", expected=(4,))
    assert f"DRIFT: {conf} edited" in out
    _, err = study.run("apply", "--persist", "--yes", expected=(1,))
    assert f"{conf} was changed by somebody else since it was applied" in err

    out, _ = study.run("rollback", "--dry-run")
    assert f"left as somebody else has set them: {conf}" in out
    out, _ = study.run("rollback", expected=(1,))
    assert f"{conf} is not restored: somebody else has changed it" in out
    study.run("rollback", "--force", "--yes")
    assert before == (conf.read_bytes(), conf.stat().st_mode)
    assert not ours.exists()
    assert "2000" not in study.balancer("ss -Hltn sport = :80").split()
    _exports(study)


def bare(file: Path) -> str:
    """Without comments."""
    return "".join(line for line in file.read_text().splitlines() if line[:1] != "#")


def _exports(study: Study) -> None:
    out, _ = study.run("export", "--format", "nginx")
    assert {"worker_processes 2;", "        listen 80 backlog=2000;"} < set(out.splitlines())
    message = " ".join(out.replace("\n#", "").split())
    assert "Then nginx -t, and reload nginx" in message
    assert "listen 80 stands for your addresses" in message
    out, _ = study.run("export", "--format", "sysctl")
    assert f"\n{RMEM} = {VALUES[RMEM]}" in out
    assert f"{BACKLOG} = 2000, {PROCESSES} = 2" in " ".join(out.replace("\n#", "").split())
    _, err = study.run("export", "--format", "ansible", expected=(2,))
    assert "a playbook can't set listen 80 backlog=2000" in err
    out, _ = study.run("export", "--format", "json")
    assert json.loads(out)["values"] == VALUES
