"""What may happen to a host in the middle of a canary. Each time it ends with its own values."""

import getpass
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from intop.lab.cluster import cluster
from intop.lab.processes import arguments
from kit.canaries import KEY, NO_LIMIT, OWN, TRIED, Make, canary, log_of, made, traffic, value
from kit.studies import Study, wait_for

pytestmark = pytest.mark.long

LEASE_S = 30
"""A study's own, unless its file says another one."""


@contextmanager
def in_a_block(study: Study, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A canary in its first block with the configuration."""
    with traffic(study):
        process = study.start(*canary(*words, *NO_LIMIT))
        try:
            wait_for(lambda: value(study) == TRIED, "the configuration")
            yield process
        finally:
            process.kill()
            process.communicate()


def ended(process: "subprocess.Popen[str]", *codes: int) -> tuple[str, str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode in codes, err
    return out, err


def owner(process: "subprocess.Popen[str]") -> str:
    """A session's owner, as a host says it."""
    return f"{getpass.getuser()}@{socket.gethostname()} (process {process.pid})"


def other_study(study: Study) -> str:
    """A file of the same hosts with a store of its own, as somebody else may have."""
    text = (study.folder / "intop.toml").read_text()
    text = text.replace('"small"', '"other"').replace('"small.db"', '"other.db"')
    (study.folder / "other.toml").write_text(text)
    return "other.toml"


def test_the_log_is_rotated(make_study: Make) -> None:
    study = made(make_study)
    with in_a_block(study, "--pairs", "3") as process:
        time.sleep(1.5)  # rotated before its first line, a block would miss nothing
        log = log_of(study)
        log.rename(log.with_suffix(".log.1"))
        pid = log.parents[1] / "nginx.pid"
        study.balancer(f"kill -USR1 $(cat {pid})")
        out, _ = ended(process, 3)
    result = json.loads(out)
    assert [line.rpartition(": ")[2] for line in result["left_out"]] == [
        "the log was moved meanwhile"
    ]
    assert (result["outcome"], result["pairs"]) == ("undecided", 2)
    assert value(study) == OWN


def test_somebody_restarts_nginx(make_study: Make) -> None:
    """It then counts its connections from 1 on, so that all look old for a block."""
    study = made(make_study)
    (lab,) = study.labs
    with in_a_block(study, "--pairs", "4") as process:
        study.balancer(cluster(lab).server_restart)
        out, err = ended(process, 3)
    result = json.loads(out)
    assert (result["outcome"], result["stopped"]) == ("undecided", ""), err
    assert 1 <= len(result["left_out"]) <= 2, result["left_out"]
    assert result["pairs"] >= 2
    assert value(study) == OWN


@pytest.mark.parametrize(
    "words",
    [
        canary("--pairs", "1"),
        ("collect", "--workload", "slt", "--samples", "8", "--force"),
        ("rollback", "--yes"),
    ],
    ids=["canary", "collect", "rollback"],
)
def test_somebody_else_works_on_the_host_in_between(
    make_study: Make, words: tuple[str, ...]
) -> None:
    """Of another store, so that only the host knows of both."""
    study = made(make_study)
    with in_a_block(study, "--pairs", "20") as process:
        out, err = study.run(*words, "-c", other_study(study), expected=(1,))
        assert f"held by {owner(process)}" in out + err
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        ended(process, 130)
    assert value(study) == OWN


def test_a_second_canary_of_one_store_is_refused_at_once(make_study: Make) -> None:
    study = made(make_study)
    with in_a_block(study, "--pairs", "3") as process:
        _, err = study.run(*canary("--pairs", "3"), expected=(1,))
        assert "is at canary, heard of" in err
        out, _ = ended(process, 3)
    assert (json.loads(out)["pairs"], value(study)) == (3, OWN)


def test_somebody_else_sets_a_key_of_it(make_study: Make) -> None:
    """Their value stays: intop undoes no change of others."""
    study = made(make_study)
    with in_a_block(study, "--pairs", "2") as process:
        study.balancer(f"sysctl -qw {KEY}=45")
        _, err = ended(process, 1)
    assert f"{KEY}" in err
    assert value(study) == "45"


def test_the_link_is_cut_for_longer_than_the_lease(make_study: Make) -> None:
    study = made(make_study)
    link = ["ip", "link", "set", "dev", f"intop-{study.labs[0]}"]
    with in_a_block(study, "--pairs", "2") as process:
        subprocess.run([*link, "down"], check=True)
        try:
            since = time.monotonic()
            wait_for(lambda: value(study) == OWN, "the watchdog")
            assert time.monotonic() - since <= LEASE_S + 5
        finally:
            subprocess.run([*link, "up"], check=True)
        _, err = ended(process, 1)
        assert "the same command" in err
        out, _ = study.run(*canary("--pairs", "2", *NO_LIMIT), expected=(3,))
    assert (json.loads(out)["pairs"], value(study)) == (2, OWN)


def test_the_disk_of_the_guards_folder_is_full(make_study: Make) -> None:
    study = made(make_study)
    (lab,) = study.labs
    state = cluster(lab).load_balancer.state_dir
    listed = subprocess.check_output(["ip", "netns", "pids", f"intop-{lab}-lb"], text=True)
    (sshd,) = (pid for pid in listed.split() if "sshd.conf" in " ".join(arguments(int(pid))))

    def on_the_host(command: str) -> None:
        words = ["nsenter", "--target", sshd, "--mount", "sh", "-c", command]
        subprocess.run(words, check=True, capture_output=True)

    on_the_host(f"mkdir -p {state} && mount -t tmpfs -o size=20m,mode=755 none {state}")
    with in_a_block(study, "--pairs", "2") as process:
        on_the_host(f"! dd if=/dev/zero bs=4096 of={state}/full")
        ended(process, 1, 3)
        wait_for(lambda: value(study) == OWN, "the host's own values")
        on_the_host(f"rm {state}/full")
        out, _ = study.run(*canary("--pairs", "2", *NO_LIMIT), expected=(3,))
    assert (json.loads(out)["pairs"], value(study)) == (2, OWN)
