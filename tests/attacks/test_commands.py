"""A crowd of a user's processes on a load balancer, while intop's commands are at work there."""

import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from attacks.local_user import DISGUISES, LocalUser, local_user
from builders.finished import STUDY, finish_campaign
from builders.results import VERDICT
from faults.sites import COLLECT, PROMISED_S, Site, ended, site
from intop.domain.cluster import native_arch
from intop.domain.configuration import Configuration
from intop.lab.state import STATE_FOLDER
from kit.postgres import Server
from kit.studies import RUN, Study

NAME = f"atk{RUN}"
PROCESSES, BACKLOG = "nginx:main.worker_processes", "nginx:listen.backlog"
RMEM = "net.ipv4.tcp_rmem"
VALUES = {RMEM: "51491 51491 252930", PROCESSES: "2", BACKLOG: "2000"}
BOTH = f'name = "small"\ntunes = ["kernel", "nginx"]\nparameters = {json.dumps([*VALUES])}\n'
CLUSTER = f'[[cluster.native]]\nlab = "{NAME}"\nlink = {{ rate_mbit = 75 }}\n'


@contextmanager
def crowd_on(lab: str, *more: str) -> Iterator[LocalUser]:
    """Processes in all disguises, and these commands, on the load balancer of a lab."""
    with local_user(["ip", "netns", "exec", f"intop-{lab}-lb"]) as user:
        words = (STATE_FOLDER / lab / "host-lb/nginx.conf").parent
        title = f"nginx: master process nginx -e {words}/nginx.log -c {words}/nginx.conf"
        for disguise in DISGUISES:
            user.put_on(disguise, title)
        for command in more:
            user.start(command)
        yield user


def state_of(files: Sequence[Path]) -> list[tuple[bytes, int, int, int]]:
    stats = [file.stat() for file in files]
    texts = [file.read_bytes() for file in files]
    return [(t, s.st_mode, s.st_uid, s.st_gid) for t, s in zip(texts, stats, strict=True)]


def test_doctor_plan_apply_status_and_rollback(tmp_path: Path) -> None:
    text = STUDY.format(clusters=CLUSTER).replace('name = "small"\n', BOTH)
    (tmp_path / "intop.toml").write_text(text)
    study = Study(tmp_path, (NAME,))
    conf = STATE_FOLDER / NAME / "host-lb/nginx.conf"
    files = [conf, Path("/etc/passwd"), Path("/etc/shadow")]
    try:
        study.run("lab", "up")
        finish_campaign(study, replace(VERDICT, configuration=Configuration(VALUES)))
        before = state_of(files)
        with crowd_on(NAME) as user:
            (result,) = study.json("doctor")
            assert result["problems"] == []
            (host,) = study.json("plan", "--persist")[native_arch()]["hosts"]
            assert (
                next(k["now"] for k in host["result"]["keys"] if k["change"]["key"] == PROCESSES)
                == "1"
            )
            rounds = ("--rounds", "2", "--accept-no-loss", "--yes")
            (rollout,) = study.json("apply", "--persist", *rounds)
            assert [host["outcome"] for host in rollout["hosts"]] == ["applied"]
            assert "2000" in study.balancer("ss -Hltn sport = :80").split()
            out, _ = study.run("status")
            assert out.splitlines()[0].endswith("as applied")
            study.run("rollback")
            assert "2000" not in study.balancer("ss -Hltn sport = :80").split()
            assert before == state_of(files)
            assert user.ran_as() == set()
    finally:
        study.run("lab", "down")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site("k", tmp_path) as made:
        yield made


@pytest.mark.long
def test_a_killed_controllers_host_is_given_back(place: Site) -> None:
    with crowd_on(place.name) as user:
        process = place.signalled(signal.SIGKILL, "load", 2, "within")
        ended(process, -9)
        since = time.monotonic()
        assert place.is_changed()
        assert place.given_back(since) <= PROMISED_S
        place.wait_until_released()
        assert list(place.state.glob("unrestored.*")) == []
        place.run(*COLLECT)
        assert all(trial.usable for trial in place.trials())
        place.assert_untouched()
        assert user.ran_as() == set()


@pytest.mark.long
def test_a_worker_measures(tmp_path: Path, postgres_server: Server) -> None:
    with site("w", tmp_path) as place:
        file = place.folder / "intop.toml"
        store = json.dumps(postgres_server.database())
        lines = file.read_text().splitlines()
        lines = [line for line in lines if not line.startswith("store = ")]
        lines.insert(lines.index("[study]") + 1, f"store = {store}\nworkers = true")
        file.write_text("\n".join(lines) + "\n")
        with crowd_on(place.name) as user:
            asking = place.start(*COLLECT)
            worker = place.start("worker", "--name", "first", "--until-idle", "5")
            ended(asking, 0)
            ended(worker, 0)
            place.assert_untouched()
            assert user.ran_as() == set()
