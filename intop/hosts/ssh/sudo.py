"""sudo: how a command is wrapped, what it is told, and what its refusals mean.

A password goes over standard input, and only when sudo asks for it: where it doesn't (NOPASSWD, or
it remembers), the line would else become input of the command. The command's own input is sent
when the command says that it runs. So no line of one ever reaches the other, and a wrong
password is tried once.
"""

import re
import secrets
import shlex

from intop.hosts.ssh.secret import Secret


class Dialogue:
    """The talk with one `sudo -S`. Feed it what comes on standard error."""

    def __init__(self, password: Secret) -> None:
        self._password = password
        # Nobody else's text on standard error can be taken for these.
        token = secrets.token_hex(8)
        self._prompt = f"[password {token}]"
        self._mark = f"[running {token}]\n".encode()
        self._asked = 0
        self.running = False

    @property
    def asked(self) -> bool:
        """Whether sudo wanted the password."""
        return self._asked > 0

    def wrapped(self, command: str) -> str:
        """The words that run a sh command as root."""
        marked = f"printf %s {shlex.quote(self._mark.decode())} >&2\n{command}"
        return f"sudo -S -p {shlex.quote(self._prompt)} -- sh -c {shlex.quote(marked)}"

    def answer(self, said: bytes) -> bytes | None:
        """What to send, now that standard error has said all this; None: nothing, ever again."""
        self.running = self.running or self._mark in said
        if self.running or said.count(self._prompt.encode()) <= self._asked:
            return b""
        self._asked += 1
        # The second time it was wrong. Asked for a third, sudo may lock the account.
        if self._asked > 1:
            return None
        # One from the environment may be no UTF-8, and is then sent as it was.
        return f"{self._password.reveal()}\n".encode(errors="surrogateescape")

    def heard(self, said: bytes | bytearray) -> bytes | bytearray:
        """Of standard error, what is the command's; else what is sudo's, without our prompt."""
        before, mark, after = said.partition(self._mark)
        return after if mark else before.replace(self._prompt.encode(), b"")


def wrapped(command: str, dialogue: Dialogue | None, *, as_is: bool) -> str:
    """The words that run a sh command as root, or as the user there where that is wanted."""
    if dialogue is not None:
        return dialogue.wrapped(command)
    return f"{'' if as_is else 'sudo -n -- '}sh -c {shlex.quote(command)}"


def unfinished(said: str, timeout_s: float) -> str:
    """What there is to say of a sudo that neither refused nor began."""
    return (
        f"sudo does not get on within {timeout_s:g} s. It says: "
        f"{' '.join(said.split()) or 'nothing'}. It can be given a password and no more: use "
        "sudo = true, with NOPASSWD in sudoers"
    )


def refusal(user: str, said: str, *, asked: bool) -> str:
    """What sudo's words (those of locale C) mean, with the next step.

    `asked` says whether it asked for the password, and was told.
    """
    line = "In `visudo -f /etc/sudoers.d/intop` there, as root, it takes the line: {}"
    nopasswd = line.format(f"{user} ALL=(root) NOPASSWD: ALL")
    known = {
        r"must have a tty|tty to run|terminal to run": (
            "sudo wants a terminal. " + line.format(f"Defaults:{user} !requiretty")
        ),
        r"not in the sudoers|may not run|not allowed": f"sudo refuses {user}. {nopasswd}",
        r"sudo: (command )?not found|unknown command": (
            'has no sudo. Install it there, or reach it as root: user = "root", sudo = false'
        ),
        r"password is required|incorrect password|no password was": (
            f"sudo did not take the password of {user}. It was tried once; run again with the "
            "right one"
            if asked
            else f'sudo wants the password of {user}. Set sudo = "ask" for this host. {nopasswd}'
        ),
    }
    for pattern, meaning in known.items():
        if re.search(pattern, said, re.IGNORECASE):
            return meaning
    return f"sudo does not work there: {' '.join(said.split()) or 'it says nothing'}. {nopasswd}"
