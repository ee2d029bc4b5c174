"""Hosts that run commands on this machine, and conversations with them."""

import select
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from intop.domain.cluster import HostAddress
from intop.errors import UnreachableError
from intop.hosts.host import Completed, Conversation, Host
from intop.hosts.metrics import Counters
from intop.hosts.reader import Reader, Wanted


class LocalConversation:
    """A conversation with a command that runs here."""

    def __init__(self, name: str, words: Sequence[str]) -> None:
        self._name = name
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request: str, end: str, timeout_s: float) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        output: list[str] = []
        with suppress(BrokenPipeError):
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
        for line in self.process.stdout:
            output.append(line.decode(errors="replace"))
            if output[-1] == f"{end}\n":
                return "".join(output)
        raise UnreachableError(self._name, "exec ended: it says nothing")

    def heard(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 0)
        return self.process.stdout.read1().decode(errors="replace") if ready else ""

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait(timeout=10)


@dataclass
class Told:
    """A conversation in which a reader's answers are these texts, each its only section."""

    name: str
    answer: Callable[[], str]
    asked: list[str] = field(default_factory=list)

    def ask(self, request: str, end: str, timeout_s: float) -> str:
        self.asked.append(request.splitlines()[-1].removesuffix(";"))
        return f"{end} host\n{self.answer()}{end}\n"

    def heard(self) -> str:
        return ""

    def close(self) -> None:
        pass


def read_counters(host: Host, *, processes: bool = False) -> Counters:
    """One reading of a host's counters."""
    reader = Reader(host)
    try:
        return reader.read(Wanted(processes=processes)).counters
    finally:
        reader.close()


class LocalHost:
    """A host that runs commands here, or gives a text for an answer.

    With a `setup` they run in network and mount namespaces of their own, after it.
    """

    def __init__(self, answer: str | None = None, setup: str | None = None) -> None:
        self.address = HostAddress(name="lb", role="load-balancer", hostname="192.0.2.1")
        self._answer = answer
        self._inside = [] if setup is None else ["unshare", "--mount", "--net", "sh", "-c"]
        self._inside += [] if setup is None else [f'{setup}\nexec sh -c "$0"']

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        if self._answer is not None:
            return Completed(0, self._answer, "")
        done = subprocess.run(
            [*(self._inside or ["sh", "-c"]), command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        return Completed(done.returncode, done.stdout, done.stderr)

    def converse(self, command: str) -> Conversation:
        if (answer := self._answer) is not None:
            return Told(self.address.name, lambda: answer)
        return LocalConversation(self.address.name, [*(self._inside or ["sh", "-c"]), command])

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class RawHost(LocalHost):
    """A host whose bytes arrive as SSH brings them: line ends as they are."""

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=timeout_s)
        text = [output.decode(errors="replace") for output in (done.stdout, done.stderr)]
        return Completed(done.returncode, *text)
