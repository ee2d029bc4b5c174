"""Why a connection ended: in a real sshd's words, in paramiko's and in ours."""

import socket
from collections.abc import Iterator
from typing import Any

import paramiko
import pytest
from paramiko.common import cMSG_CHANNEL_EOF

from intop.errors import UnreachableError
from intop.hosts.ssh import connect
from intop.hosts.ssh.transport import Transport


@pytest.fixture
def transport() -> Iterator[Transport]:
    """One that was never started."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Transport(ours)


def test_the_hosts_own_words_are_told_to_every_command(machine: Any) -> None:
    host = connect(machine.address("plain"))
    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_EOF)
    message.add_int(99)
    host._transport._send_user_message(message)  # type: ignore[attr-defined]
    host._transport.join(10)
    for _ in range(2):
        with pytest.raises(UnreachableError) as raised:
            host.run("true")
        assert raised.value.message == (
            "the SSH connection was lost: the host ended it: "
            "ieof packet referred to nonexistent channel 99"
        )
    host.close()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (paramiko.SSHException("Mismatched\nMAC"), "Mismatched MAC"),
        (EOFError(), "it was closed"),
        (paramiko.ChannelException(1, "refused a channel, earlier"), "it was closed"),
        (paramiko.BadAuthenticationType("refused a key, earlier", []), "it was closed"),
    ],
)
def test_what_went_wrong_is_remembered(transport: Transport, error: Exception, why: str) -> None:
    transport.saved_exception = error
    assert transport.get_exception() is error
    assert why == transport.why


def test_the_reason_of_whoever_gives_it_up(transport: Transport) -> None:
    transport.give_up("no answer for 20 s")
    transport.saved_exception = ConnectionResetError(104, "Connection reset by peer")
    assert transport.get_exception() is not None
    assert transport.why == "no answer for 20 s"
