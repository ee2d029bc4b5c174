"""Commands that say too much, take too long or don't listen, on a real sshd."""

import os
import shlex
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest
from paramiko.common import MSG_CHANNEL_DATA, MSG_CHANNEL_EOF

from intop.errors import CommandError
from intop.hosts.host import output
from intop.hosts.ssh import Secret, SshHost, command, connect

MB = 1 << 20


@pytest.fixture(scope="module", params=["plain", "asks"])
def host(request: pytest.FixtureRequest, machine: Any) -> Iterator[SshHost]:
    """As it is, and through sudo with a password."""
    user: str = request.param
    sudo = "ask" if user == "asks" else False
    opened = connect(machine.address(user, sudo=sudo), Secret(machine.password))
    yield opened
    opened.close()


def test_input_and_both_outputs_of_megabytes_at_once(host: SshHost) -> None:
    text = "".join(f"{n} a line with 'quotes' and ä\n" for n in range(100_000))
    done = host.run("tee /dev/stderr", stdin=text, timeout_s=60)
    assert len(text) > 3 * MB
    assert (done.exit_code, done.stdout == text, done.stderr == text) == (0, True, True)


def test_much_on_stderr_before_the_input_is_read(host: SshHost) -> None:
    """Each side's window is 2 MB: whoever only writes would wait for ever."""
    text = "x" * (5 * MB)
    words = f"head -c {5 * MB} /dev/zero >&2; head -c {5 * MB} /dev/zero; cat | wc -c"
    done = host.run(words, stdin=text, timeout_s=60)
    assert (len(done.stderr), done.stdout.endswith(f"\0{5 * MB}\n")) == (5 * MB, True)


def test_a_line_of_ten_megabytes_and_what_is_no_text(host: SshHost) -> None:
    done = host.run(f"head -c {10 * MB} /dev/zero | tr '\\0' x; printf '\\000\\377\\n'")
    assert len(done.stdout) == 10 * MB + 3
    assert done.stdout.endswith("x\0\ufffd\n")


@pytest.mark.parametrize("where", ["", " >&2"])
@pytest.mark.parametrize("printed", ["yes", "cat /dev/urandom"])
def test_output_without_end_is_cut_off(
    host: SshHost, monkeypatch: pytest.MonkeyPatch, printed: str, where: str
) -> None:
    monkeypatch.setattr(command, "OUTPUT_LIMIT_BYTES", 6 * MB)
    with pytest.raises(CommandError, match=rf"stopped after more than 6 MB of output: `{printed}"):
        host.run(printed + where, timeout_s=60)
    assert output(host, "echo still there") == "still there\n"


def test_the_limit_is_generous_and_holds(host: SshHost) -> None:
    with pytest.raises(CommandError, match=r"more than 64 MB of output: `yes`"):
        host.run("yes", timeout_s=100)


@pytest.mark.parametrize(
    "slow",
    [
        "sleep 20",
        "while echo x; do sleep 0.2; done",
        "while echo x >&2; do sleep 0.2; done",
        "exec >&- 2>&-; sleep 20",  # says that there will be nothing more, and goes on
        "cat >/dev/null; sleep 20",
    ],
)
def test_a_command_ends_in_time_whatever_it_says_meanwhile(host: SshHost, slow: str) -> None:
    begun = time.monotonic()
    with pytest.raises(CommandError, match=r"no answer within 0.5 s from `"):
        host.run(slow, stdin="x", timeout_s=0.5)
    assert time.monotonic() - begun < 20
    assert output(host, "echo still there") == "still there\n"


def test_a_command_may_answer_after_we_were_suspended(
    host: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        looks = 0

        def monotonic(self) -> float:
            self.looks += 1
            return time.monotonic() + (1000 if self.looks > 5 else 0)

    clock = Clock()
    monkeypatch.setattr(command, "time", clock)
    assert output(host, "sleep 1; echo done", timeout_s=10) == "done\n"
    assert clock.looks > 5


def test_a_command_that_never_reads_its_input_runs_out_of_time(host: SshHost) -> None:
    with pytest.raises(CommandError, match=r"no answer within 0.5 s"):
        host.run("sleep 20", stdin="x" * (9 * MB), timeout_s=0.5)


def test_a_command_that_ends_without_reading_its_input(host: SshHost) -> None:
    done = host.run("echo enough; exit 3", stdin="x" * (9 * MB))
    assert (done.exit_code, done.stdout, done.stderr) == (3, "enough\n", "")


@pytest.mark.parametrize(("stdin", "late"), [("", MSG_CHANNEL_EOF), ("x", MSG_CHANNEL_DATA)])
def test_what_is_sent_while_a_command_ends_does_not_cost_the_connection(
    machine: Any, monkeypatch: pytest.MonkeyPatch, stdin: str, late: int
) -> None:
    """sshd ends a connection that names a channel which both sides have closed."""
    delayed: list[paramiko.Message] = []
    send = paramiko.Transport._send_user_message  # type: ignore[attr-defined]

    def slow(transport: paramiko.Transport, message: paramiko.Message) -> None:
        if message.asbytes()[0] == late and not delayed:
            delayed.append(message)
            time.sleep(0.3)  # `true` ends, and paramiko would answer to that
        send(transport, message)

    host = connect(machine.address("plain"))
    monkeypatch.setattr(paramiko.Transport, "_send_user_message", slow)
    try:
        for _ in range(50):  # a command that ends at once gets nothing
            assert host.run("true", stdin=stdin).exit_code == 0
            if delayed:
                break
        assert len(delayed) == 1
        assert output(host, "echo still there") == "still there\n"
    finally:
        host.close()


def test_a_command_that_is_given_up_as_it_speaks_does_not_cost_the_connection(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """paramiko's thread would write to a pipe that we have closed."""
    begun = threading.Event()

    def slow(pipe: int, printed: bytes) -> int:
        begun.set()
        with suppress(OSError):
            for _ in range(100):
                os.fstat(pipe)
                time.sleep(0.01)
        return os.write(pipe, printed)

    def check(_: command.Patience) -> None:
        begun.wait(0.5)
        raise TimeoutError

    host = connect(machine.address("plain"))
    slowly = SimpleNamespace(pipe=os.pipe, read=os.read, close=os.close, write=slow)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(paramiko.pipe, "os", slowly)
            patched.setattr(command.Patience, "check", check)
            with pytest.raises(CommandError, match="no answer"):
                host.run("sleep 0.2; echo x; sleep 20")
        assert output(host, "echo still there") == "still there\n"
    finally:
        host.close()


def test_a_long_command_is_shortened_in_the_message(host: SshHost) -> None:
    with pytest.raises(CommandError, match=r"`: x{98} \.\.\.`"):
        host.run(f": {'x' * 5000}; sleep 20", timeout_s=0.5)


@pytest.mark.parametrize(
    "word", ["it's", "$(id)", "`id`", "a\nb", 'a"b', "\\", "\\\\ \\'", "*", "ä", "!x", "-n", ""]
)
def test_words_arrive_as_they_are(host: SshHost, word: str) -> None:

    assert output(host, f"printf '<%s>' {shlex.quote(word)}") == f"<{word}>"


def test_commands_do_not_wait_for_each_other(host: SshHost, machine: Any) -> None:
    """The lease is renewed while a load runs."""
    go: Path = machine.folder / "go"  # where that user can look
    done: list[str] = []
    wait = f"while [ ! -e {go} ]; do sleep 0.05; done; echo done"
    slow = threading.Thread(target=lambda: done.append(output(host, wait, timeout_s=60)))
    slow.start()
    for number in range(5):
        assert output(host, f"echo {number}") == f"{number}\n"
    assert done == []
    go.touch()
    slow.join()
    go.unlink()
    assert done == ["done\n"]
