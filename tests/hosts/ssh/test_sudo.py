"""sudo on the real thing, with and without a password, and where the password could leak to."""

import logging
import pickle
import secrets
import shlex
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from intop.errors import CommandError
from intop.hosts.host import output
from intop.hosts.ssh import Secret, SshHost, connect, connection, with_passwords
from intop.hosts.ssh.sudo import Dialogue, refusal

Open = Callable[..., Any]


@contextmanager
def opened(machine: Any, user: str, sudo: object, password: str | None = None) -> Iterator[SshHost]:
    secret = Secret(machine.password if password is None else password)
    host = connect(machine.address(user, sudo=sudo), secret)
    try:
        yield host
    finally:
        host.close()


# With a real sudo ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "sudo"),
    [
        ("free", True),
        ("free", "ask"),
        ("asks", "ask"),
        ("remembers", "ask"),
        ("traced", "ask"),
        ("permitted", "doas"),
    ],
)
def test_commands_run_as_root_and_get_their_own_input(
    machine: Any, user: str, sudo: object
) -> None:
    text = "first line\nsecond 'line' $(id)\n" * 5_000
    with opened(machine, user, sudo) as host:
        for _ in range(3):  # sudo that remembers asks the first time only
            assert output(host, "id -u") == "0\n"
            assert text == output(host, "cat", stdin=text)
        done = host.run("echo out; echo err >&2; exit 7")
        conversation = host.converse("read -r word; id -u; echo $word; echo end; read -r word")
        assert conversation.ask("hello\n", "end", 30) == "0\nhello\nend\n"
        conversation.close()
    assert (done.exit_code, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_a_shell_that_traces_does_not_get_the_password(machine: Any) -> None:
    """It shows the words of sudo's prompt before sudo runs, and asks for nothing."""
    before = machine.sudo_log().count("incorrect password")
    with opened(machine, "traced", "ask") as host:
        assert output(host, "id -u") == "0\n"
    assert before == machine.sudo_log().count("incorrect password")


def test_a_conversation_is_refused_as_a_command_is(machine: Any) -> None:
    with opened(machine, "asks", "ask") as host:
        host._password = Secret("wrong")
        with pytest.raises(CommandError, match="sudo did not take the password of asks"):
            host.converse("cat")


def test_a_conversation_names_the_shell_that_sudo_refuses(machine: Any) -> None:
    """The refusal quotes what was to run, and a long command must not hide what it says."""
    with opened(machine, "asks", "ask") as host:
        other = machine.address("few", sudo="ask")
        host._transport = connection._connected(other, host._stack, jumps=0)
        for command in ("cat", f": {'x' * 2_000}\ncat"):
            with pytest.raises(CommandError, match=r"sudo refuses few the shell .*few ALL="):
                host.converse(command)
            with pytest.raises(CommandError, match=r"sudo refuses few the shell .*few ALL="):
                host.run(command, stdin="not for sudo")


def test_without_a_password_the_user_stays_who_it_is(machine: Any) -> None:
    with opened(machine, "plain", False) as host:
        assert output(host, "id -un") == "plain\n"


def test_many_commands_at_once_each_with_its_password(machine: Any) -> None:
    result: dict[int, str] = {}
    with opened(machine, "asks", "ask") as host:

        def ask(number: int) -> None:
            result[number] = output(host, "cat", stdin=f"{number}")

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {n: f"{n}" for n in range(6)} == result


def test_a_wrong_password_is_tried_once(machine: Any) -> None:
    before, wrong = machine.sudo_log().count("incorrect password"), secrets.token_hex(8)
    with pytest.raises(CommandError) as caught, opened(machine, "asks", "ask", wrong):
        pass
    assert "the-asks: sudo did not take the password of asks" in str(caught.value)
    assert wrong not in "".join(traceback.format_exception(caught.value))
    log = " ".join(machine.sudo_log().split())
    assert before + 1 == log.count("incorrect password")
    assert "1 incorrect password attempt ;" in log
    assert "2 incorrect" not in log
    assert "3 incorrect" not in log


@pytest.mark.parametrize(
    ("user", "sudo", "printed"),
    [
        ("asks", True, r'wants the password of asks. Set sudo = "ask".*asks ALL=\(root\) NOPASSWD'),
        ("plain", True, r"wants the password of plain"),
        ("plain", "ask", r"sudo refuses plain.*visudo.*plain ALL=\(root\) NOPASSWD: ALL"),
        ("terminal", "ask", r"Defaults:terminal !requiretty"),
        (
            "some",
            "ask",
            r"sudo refuses some the shell .*single commands .*some ALL=\(root\) NOPASS",
        ),
        ("some", True, r"sudo wants the password of some.*NOPASSWD for single commands is not en"),
        ("few", "ask", r"sudo refuses few the shell .*few ALL=\(root\) NOPASSWD: ALL"),
        ("bare", True, r"the-bare: has no sudo. Install it .*sudo = false"),
        ("bare", "ask", r"the-bare: has no sudo. Install it .*sudo = false"),
        ("bare", "doas", r"the-bare: has no doas. Install it .*sudo = false"),
        ("german", True, r"the-german: has no sudo. Install it .*sudo = false"),
        ("german", "ask", r"the-german: has no sudo. Install it .*sudo = false"),
        ("codes", "doas", r"doas refuses codes.*permit nopass codes as root"),
    ],
)
def test_what_sudo_refuses_is_said_with_the_line_to_add(
    machine: Any, user: str, sudo: object, printed: str
) -> None:
    with pytest.raises(CommandError, match=printed), opened(machine, user, sudo):
        pass


def test_a_sudo_that_asks_for_more_than_a_password(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CHECK_LIMIT_S", 1.0)
    with (
        pytest.raises(CommandError, match=r"within 1 s. It says: Verification code:.*NOPASSWD"),
        opened(machine, "codes", "ask"),
    ):
        pass


def test_nobody_was_asked(machine: Any) -> None:
    with pytest.raises(CommandError, match=r"nobody was asked.*sudo = true"):
        connect(machine.address("asks", sudo="ask"))


def test_each_host_gets_its_own_password(machine: Any) -> None:
    passwords = {"asks": Secret(machine.password), "remembers": Secret("another")}
    to = with_passwords(lambda address: passwords[str(address.user)])
    host = to(machine.address("asks", sudo="ask"))
    host.close()
    to(machine.address("free", sudo=True)).close()


def test_the_password_is_nowhere_to_be_seen(
    machine: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, everything: Any
) -> None:
    """Not while a command runs as root on that host, which is this machine."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="paramiko")
    word, go = machine.password.encode(), tmp_path / "go"
    with opened(machine, "asks", "ask") as host:
        wait = (
            f"echo here > {tmp_path}/here; while [ ! -e {go} ]; do sleep 0.05; done; env; echo $0"
        )
        printed: list[str] = []
        running = threading.Thread(target=lambda: printed.append(output(host, wait, stdin="x")))
        running.start()
        try:
            deadline = time.monotonic() + 30
            while not (tmp_path / "here").exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            seen = list(everything())
        finally:
            go.touch()
            running.join()
        with pytest.raises(CommandError) as caught:
            output(host, "cat; exit 3", stdin="the input")
        shown = repr(host) + repr(vars(host)) + repr(host.address)
    assert any(b"sudo" in text and b"sleep" in text for _, text in seen)
    assert [who for who, text in seen if word in text] == []
    assert printed
    message = (
        "".join(traceback.format_exception(caught.value)) + "".join(printed) + caplog.text + shown
    )
    assert machine.password not in message
    assert machine.password not in machine.sudo_log()
    assert "the input" in message


# The parts ----------------------------------------------------------------------------------------


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = Secret("hunter2")
    assert secret.reveal() == "hunter2"
    assert "hunter2" not in f"{secret!r} {secret} {[secret]} { {'a': secret} }"
    with pytest.raises(TypeError, match="neither copied nor stored"):
        pickle.dumps(secret)


def _prompt(dialogue: Dialogue) -> bytes:
    """As sudo prints it: it takes %% for %."""
    words = dialogue.wrapped("true")
    return words.split("-p ")[1].split(" -- ")[0].strip("'").replace("%%", "%").encode()


@pytest.mark.parametrize("command", ["true", "echo 'it''s'"])
def test_what_quotes_our_words_is_neither_prompt_nor_command(command: str) -> None:
    """As sudo's refusal, a shell's trace, or fish's error; also with another kind of quotes."""
    dialogue = Dialogue(Secret("hunter2"))
    words = dialogue.wrapped(command)
    plain = " ".join(shlex.split(words))
    for printed in (words, plain, plain.replace("\n", "\\n"), plain.replace("\n", "#012")):
        assert dialogue.answer(printed.encode()) == b""
    assert not dialogue.running
    assert not dialogue.asked


def test_the_password_is_sent_when_it_is_asked_for_and_once() -> None:
    dialogue = Dialogue(Secret("hunter2"))
    assert "hunter2" not in dialogue.wrapped("true")
    printed = b"We trust you have received the usual lecture\n"
    assert dialogue.answer(printed) == b""
    printed += _prompt(dialogue)
    assert dialogue.answer(printed) == b"hunter2\n"
    assert dialogue.answer(printed) == b""
    printed += b"Sorry, try again.\n" + _prompt(dialogue)
    assert dialogue.answer(printed) is None
    assert not dialogue.running
    assert (
        dialogue.heard(printed)
        == b"We trust you have received the usual lecture\nSorry, try again.\n"
    )


def test_a_prompt_in_two_halves_is_one_prompt() -> None:
    dialogue = Dialogue(Secret("hunter2"))
    prompt = _prompt(dialogue)
    assert dialogue.answer(prompt[:5]) == b""
    assert dialogue.answer(prompt) == b"hunter2\n"


REFUSED = "Sorry, user me is not allowed to execute '/bin/sh -c {}' as root on lb."


@pytest.mark.parametrize(
    ("printed", "asked", "meaning"),
    [
        ("sh: 1: sudo: not found", False, "has no sudo"),
        ("bash: line 1: sudo: command not found", False, "has no sudo"),
        ("fish: Unknown command: sudo", False, "has no sudo"),
        ("sudo: Command not found.", False, "has no sudo"),
        ("env: 'sudo': No such file or directory", False, "has no sudo"),
        ("env: \u2018sudo\u2019: No such file or directory", False, "has no sudo"),
        ("env: can't execute 'sudo': No such file or directory", False, "has no sudo"),
        ("Sorry, user me may not run sudo on lb.", True, "sudo refuses me. In"),
        ("sudo: I'm sorry me. I'm afraid I can't do that", True, "sudo refuses me. In"),
        (REFUSED.format("id"), True, "sudo refuses me the shell"),
        (REFUSED.format("echo 'sudo: not found, a password is required'"), True, "the shell"),
        ("sudo: 1 incorrect password attempt", True, "tried once"),
        ("sudo: Maximum 3 incorrect authentication attempts", True, "tried once"),
        ("sudo: interactive authentication is required", False, 'Set sudo = "ask"'),
        ("sudo: a password is required", False, "single commands is not enough"),
        ('sudo: The "no new privileges" flag is set', False, "can't become root there: sudo: The"),
        ("sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set", False, "become"),
        ("/etc/sudoers:3:9: syntax error\nsudo: no valid sudoers sources", False, "with visudo"),
        ("sudo: account validation failure, is your account locked?", True, "chage -l me"),
        ("sudo: unable to open /etc/sudoers: no\n luck", True, "does not work there: sudo: unable"),
        ("sudo: no tty present and no askpass program specified", False, 'Set sudo = "ask"'),
        ("sudo: a terminal is required to read the password; either", False, 'Set sudo = "ask"'),
        ("sudo: PERM_SUDOERS: setresuid(-1, 1, -1): no", False, "can't become root there: sudo: P"),
        ("sudo: unable to change to root gid: no", False, "can't become root there: sudo: unable"),
        ("sudo: it ends.", False, "does not work there: sudo: it ends. Try it there as me"),
        ("sudo: something new", True, "Try it there as me: sudo -k true"),
        ("", True, "it says nothing"),
    ],
)
def test_what_sudo_says_has_a_meaning(printed: str, asked: bool, meaning: str) -> None:
    assert meaning in refusal("me", printed, asked=asked)


@pytest.mark.parametrize(
    ("printed", "meaning"),
    [
        ("doas: Operation not permitted", "doas refuses me. In /etc/doas.conf"),
        ("doas: doas is not enabled, /etc/doas.conf: No such file", "permit nopass me as root"),
        ("doas: Authentication required", "doas wants the password of me"),
        ("sh: doas: not found", "has no doas"),
        ("doas: setresuid: not now", "does not work there: doas: setresuid: not now. Try it there"),
    ],
)
def test_what_doas_says_has_a_meaning(printed: str, meaning: str) -> None:
    assert meaning in refusal("me", printed, asked=False, by="doas")
