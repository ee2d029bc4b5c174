"""sudo and doas: the wrapping of a command, the password, and the meaning of refusals.

A password goes over standard input, and only when sudo asks for it: where it doesn't (NOPASSWD, or
it remembers), the line would else become input of the command. The command's own input is sent
when the command says that it runs. So no line of one ever reaches the other, and a wrong
password is tried once.
"""

import re
import secrets
import shlex
from typing import NoReturn

from intop.domain.cluster import Sudo

DOAS = "doas"
SHOWN = 300
"""Characters of sudo's words in a message."""


class Secret:
    """A password that only `reveal` gives away: no repr, no message, no traceback, no pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself, for the place that sends it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(...)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is neither copied nor stored")


class Dialogue:
    """The talk with one `sudo -S`. Feed it the text of standard error."""

    def __init__(self, password: Secret) -> None:
        self._password = password
        # Nobody else's text on standard error can be taken for these. They don't stand in our words
        # as they are printed either: a refusal, a shell's error or its trace quotes our words.
        self._token = secrets.token_hex(8)
        self._prompt = f"[password% {self._token}]"
        self._mark = f"[running {self._token}]\n".encode()
        self._asked = 0
        self.running = False

    @property
    def asked(self) -> bool:
        """Whether sudo wanted the password."""
        return self._asked > 0

    def wrapped(self, command: str) -> str:
        """Return the words that run a sh command as root."""
        marked = f"printf '[running %s]\\n' {self._token} >&2\n{command}"
        prompt = self._prompt.replace("%", "%%")
        return f"sudo -S -p {shlex.quote(prompt)} -- sh -c {shlex.quote(marked)}"

    def answer(self, err: bytes) -> bytes | None:
        """Return what to send after this text of standard error; None: nothing, ever again."""
        self.running = self.running or self._mark in err
        if self.running or err.count(self._prompt.encode()) <= self._asked:
            return b""
        self._asked += 1
        # The second time it was wrong. Asked for a third, sudo may lock the account.
        if self._asked > 1:
            return None
        # One from the environment may be no UTF-8, and is then sent as it was.
        return f"{self._password.reveal()}\n".encode(errors="surrogateescape")

    def heard(self, err: bytes | bytearray) -> bytes | bytearray:
        """Return the command's part of standard error; else sudo's, without our prompt."""
        before, mark, after = err.partition(self._mark)
        return after if mark else before.replace(self._prompt.encode(), b"")


def wrapped(command: str, dialogue: Dialogue | None, by: Sudo) -> str:
    """Return the words that run a sh command as root, or as the user there where that is wanted."""
    if dialogue is not None:
        return dialogue.wrapped(command)
    program = "" if not by else "doas -n -- " if by == DOAS else "sudo -n -- "
    return f"{program}sh -c {shlex.quote(command)}"


def unfinished(words: str, timeout_s: float) -> str:
    """Return the message for a sudo that neither refused nor began."""
    return (
        f"sudo does not get on within {timeout_s:g} s. It says: "
        f"{' '.join(words.split()) or 'nothing'}. It can be given a password and no more: use "
        "sudo = true, with NOPASSWD in sudoers"
    )


MISSING = 127
"""The exit code of shells, and of env, for a program that is not there; sudo's own is 1."""


def refusal(user: str, err: str, *, asked: bool, exit_code: int = 1, by: Sudo = True) -> str:
    """Return the meaning of an error of sudo or doas (in locale C), with the next step.

    `asked` is true where it asked for the password and got it.
    """
    program = "doas" if by == DOAS else "sudo"
    # Neither what it ran nor what a shell shows of our words is a reason.
    reasons = re.sub(r"(execute|run) ('.*'|/.*) (as|on) ", r"\1 it \3 ", err, flags=re.DOTALL)
    if exit_code == MISSING or re.search(_ABSENT.format(program), reasons, re.IGNORECASE):
        return (
            f'has no {program}. Install it there, or reach it as root: user = "root", sudo = false'
        )
    words = " ".join(reasons.split())[-SHOWN:].rstrip(".") or "it says nothing"
    meanings = _of_doas(user) if by == DOAS else _of_sudo(user, words, asked=asked)
    for pattern, meaning in meanings.items():
        if re.search(pattern, reasons, re.IGNORECASE):
            return meaning
    trial = f"{program} -n true" if by == DOAS or not asked else "sudo -k true"
    return f"{program} does not work there: {words}. Try it there as {user}: {trial}"


_ABSENT = r"{0}: (command )?not found|unknown command:? .?{0}|env: .*{0}.*: no such file"


def _of_sudo(user: str, words: str, *, asked: bool) -> dict[str, str]:
    line = "In `visudo -f /etc/sudoers.d/intop` there, as root, it takes the line: {}"
    nopasswd = line.format(f"{user} ALL=(root) NOPASSWD: ALL")
    every = f"NOPASSWD for single commands is not enough. {nopasswd}"
    return {
        r"not in the sudoers|may not run|not allowed|can't do that": (
            f"sudo refuses {user} the shell by which intop runs commands: {every}"
            if "not allowed to execute" in words
            else f"sudo refuses {user}. {nopasswd}"
        ),
        r"must have a tty|tty to run|terminal to run": (
            "sudo wants a terminal. " + line.format(f"Defaults:{user} !requiretty")
        ),
        r"no new privileges|setuid|effective uid|must be owned by uid|setresuid|to root gid": (
            f"sudo can't become root there: {words}. Correct how it is installed, or reach the "
            'host as root: user = "root", sudo = false'
        ),
        r"parse error|syntax error|no valid sudoers": (
            f"sudo can't read its sudoers there: {words}. Correct it with visudo, as root"
        ),
        r"account validation|account is locked|expired|account management": (
            f"sudo refuses the account of {user}: {words}. See chage -l {user} there, as root"
        ),
        r"(password|authentication) is required|no tty present|to read the password"
        r"|incorrect (password|authentication)|no password was|authentication failed": (
            f"sudo did not take the password of {user}. It was tried once; run again with the "
            "right one"
            if asked
            else f'sudo wants the password of {user}. Set sudo = "ask" for this host. {every}'
        ),
    }


def _of_doas(user: str) -> dict[str, str]:
    line = f"In /etc/doas.conf there, as root, it takes the line: permit nopass {user} as root"
    return {
        r"authentication (required|failed)|a tty is required": (
            f"doas wants the password of {user}, and takes it from a terminal only. {line}"
        ),
        r"not permitted|not enabled|doas\.conf": f"doas refuses {user}. {line}",
    }
