"""Passwords from the command line to the host: asked for at once, or taken from the environment."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.commands import ran

STUDY = """\
[study]
name = "asking"
store = "{folder}/asking.db"

[workload.slt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 2

[cluster.native]
url = "http://127.0.0.1"
nginx_restart = "true"
static_paths = ["/index.html"]
dynamic_path = "/dynamic"

[cluster.native.load_generator]
name = "generator"
user = "plain"
{common}

[cluster.native.load_balancer]
name = "balancer"
user = "asks"
sudo = "ask"
{common}

[[cluster.native.backends]]
name = "backend"
user = "remembers"
sudo = "ask"
{common}
"""


@pytest.fixture
def study(machine: Any, tmp_path: Path) -> Path:
    """Each host is reached through a program that writes down its environment."""
    config = tmp_path / "ssh_config"
    config.write_text(
        f"ProxyCommand sh -c 'env > {tmp_path}/environment; exec ssh -F none -i {machine.key} "
        f"-o UserKnownHostsFile={machine.known_hosts} -p %p -l gateway -W %h:%p %h'\n"
        f"Port {machine.port}\nIdentityFile {machine.key}\nIdentityAgent none\n"
        f"UserKnownHostsFile {machine.known_hosts}\n"
    )
    common = f'hostname = "127.0.0.1"\nssh_config = "{config}"\nstate_dir = "{tmp_path}/state"'
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(folder=tmp_path, common=common))
    return file


def words(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "intop", *map(str, arguments)]


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return ran(*words(*arguments), stdin=subprocess.DEVNULL, env={**os.environ, **environment})


def test_a_password_from_the_environment_goes_no_further(
    machine: Any, study: Path, tmp_path: Path
) -> None:
    done = run("doctor", "-c", study, "--json", INTOP_SUDO_PASSWORD=machine.password)
    hosts = {h["name"]: h["facts"]["is_root"] for h in json.loads(done.stdout)[0]["hosts"]}
    assert hosts == {"generator": False, "balancer": True, "backend": True}, done.stderr
    # A campaign that can't be measured, since there is no such cluster; yet it has a store.
    screened = run("screen", "-c", study, INTOP_SUDO_PASSWORD=machine.password)
    assert screened.returncode == 1, screened.stdout
    environment = (tmp_path / "environment").read_text()
    assert "PATH=" in environment
    assert "INTOP_SUDO_PASSWORD" not in environment
    message = done.stdout + done.stderr + screened.stdout + screened.stderr + environment
    assert machine.password not in message
    store = tmp_path / "asking.db"
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert store in kept
    assert [f for f in kept if machine.password.encode() in f.read_bytes()] == []


def test_a_wrong_password_is_one_message(machine: Any, study: Path) -> None:
    done = run("screen", "-c", study, INTOP_SUDO_PASSWORD="no-such-word")
    assert done.returncode == 1
    assert "balancer: sudo did not take the password of asks. It was tried once" in done.stderr
    assert "no-such-word" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_user_without_root_is_told_what_to_set(study: Path) -> None:
    study.write_text(study.read_text().replace('sudo = "ask"', "sudo = false"))
    done = run("screen", "--force", "-c", study)
    assert done.returncode == 1
    assert "balancer: is reached by a user who isn't root" in done.stderr
    assert "set sudo = true" in done.stderr


@pytest.mark.parametrize("password", ["two\nlines", "x" * 300])
def test_what_sudo_would_not_read_as_a_password(study: Path, password: str) -> None:
    done = run("doctor", "-c", study, INTOP_SUDO_PASSWORD=password)
    assert done.returncode == 2
    assert "a password for sudo is one line of at most 255 characters" in done.stderr
    assert password not in done.stderr


def test_nobody_is_there_to_ask(study: Path) -> None:
    done = run("doctor", "-c", study, INTOP_SUDO_PASSWORD="")
    assert done.returncode == 2
    assert 'balancer: sudo = "ask" wants a password' in done.stderr
    assert "set INTOP_SUDO_PASSWORD" in done.stderr


def test_a_person_is_asked_for_each_host_before_anything_else(machine: Any, study: Path) -> None:
    answers = {
        b"Password for sudo on balancer: ": machine.password,
        b"Password for sudo on backend (Enter: the same): ": "",
    }
    output, code = at_a_terminal(words("doctor", "-c", study), answers)
    assert code == 1, output  # other things are wrong with this cluster
    assert b"sudo did not" not in output
    assert b"no SSH connection" not in output
    assert b"x86: hosts" in output.split(b"the same): ")[1]  # cells of tables are folded
    assert machine.password.encode() not in output


def at_a_terminal(command: list[str], answers: dict[bytes, str]) -> tuple[bytes, int]:
    """What it says, and its exit code; each question is answered once."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(command[0], command)
    output = b""
    try:
        while True:
            output += os.read(terminal, 4096)
            for question in [q for q in answers if q in output]:
                os.write(terminal, answers.pop(question).encode() + b"\n")
    except OSError:  # it has ended
        pass
    finally:
        os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert answers == {}
    return output, os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("command", [("doctor",), ("screen",)])
def test_what_ssh_finds_wrong_is_one_message(
    study: Path, tmp_path: Path, command: tuple[str, ...], machine: Any
) -> None:
    (tmp_path / "ssh_config").write_text("Prot 22\n")
    done = run(*command, "-c", study, INTOP_SUDO_PASSWORD=machine.password)
    assert done.returncode == 1
    # Where a long line is folded goes by the length of the folder's name.
    assert "Bad configuration option: prot" in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr
