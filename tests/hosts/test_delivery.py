"""Sums over clients' connections, by the real script: with listed sockets, and with real ones."""

import re
import socket
import threading
import time
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from intop.errors import CommandError, UnreachableError
from intop.hosts.delivery import DeliveryReader, difference
from intop.hosts.host import Completed
from kit.local_host import LocalHost
from kit.namespace_host import wait_until


def listed(peer: int, busy: int, acked: int, *, state: str = "ESTAB") -> str:
    return (
        f"{state}  0  0  [::ffff:192.0.2.20]:80  192.0.2.10:{peer} \n"
        f"\t cubic rto:204 rtt:4.5/1.2 bytes_sent:{acked + 1} bytes_acked:{acked} segs_out:9 "
        f"retrans:1/7 busy:{busy}ms rwnd_limited:{busy // 2}ms(50.0%) sndbuf_limited:1ms\n"
    )


class Sockets:
    """A host whose `ss` lists a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "sockets"
        self.asked = folder / "asked"
        program = folder / "ss"
        program.write_text(f'#!/bin/sh\necho "$*" >> {self.asked}\nexec cat {self._file}\n')
        program.chmod(0o755)
        self.set()

    def set(self, *sockets: str) -> None:
        draft = self._file.with_suffix(".new")
        draft.write_text("".join(sockets))
        draft.rename(self._file)

    @property
    def samples(self) -> int:
        """The samples that have begun."""
        return len(self.asked.read_text().splitlines())

    def vanish(self) -> None:
        self._file.unlink()


@pytest.fixture
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sockets:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Sockets(tmp_path)


def reader(step_s: float = 3600) -> AbstractContextManager[DeliveryReader]:
    return closing(DeliveryReader(LocalHost(), (80, 8080), step_s=step_s))


def sums(reader: DeliveryReader, *, only_new: bool = False) -> tuple[int, ...]:
    totals = reader.read(only_new=only_new)
    return tuple(totals[f"clients.{name}"] for name in ("busy_ms", "bytes_acked"))


def test_only_growth_since_the_begin_counts_and_new_connections_from_0(sockets: Sockets) -> None:
    sockets.set(listed(1, 1000, 50_000))
    with reader() as made:
        assert sums(made) == (0, 0)
        sockets.set(listed(1, 1010, 60_000), listed(2, 5, 3000))
        assert sums(made) == (15, 13_000)
        assert sums(made, only_new=True) == (5, 3000)
        # The first is gone, and what it did after its last sample is not seen.
        sockets.set(listed(2, 6, 4000, state="FIN-WAIT-1"))
        assert sums(made) == (16, 14_000)
        made.begin()
        assert sums(made) == (0, 0)
        sockets.set(listed(2, 9, 5000))
        assert (sums(made), sums(made, only_new=True)) == ((3, 1000), (0, 0))
    asked = sockets.asked.read_text().splitlines()[0]
    assert asked.endswith("( sport = :80 or sport = :8080 )")


def test_ends_that_are_used_again_are_a_new_connection(sockets: Sockets) -> None:
    sockets.set(listed(1, 1000, 50_000))
    with reader() as made:
        sockets.set(listed(1, 20, 2000))
        assert (sums(made), sums(made, only_new=True)) == ((20, 2000), (20, 2000))


def test_large_numbers_stay_exact(sockets: Sockets) -> None:
    with reader() as made:
        sockets.set(listed(1, 5_000_000_000, 9_007_199_254_740_000))
        assert sums(made) == (5_000_000_000, 9_007_199_254_740_000)


def test_it_samples_by_itself(sockets: Sockets) -> None:
    """A connection that is gone when somebody asks is seen all the same."""
    with reader(step_s=0.05) as made:
        sockets.set(listed(1, 30, 3000))
        before = sockets.samples
        # The second one begins after the first has ended. On a busy machine both come late.
        wait_until(lambda: sockets.samples > before + 1, "two samples")
        sockets.set()
        assert sums(made) == (30, 3000)


def test_sockets_that_cannot_be_listed_are_an_error_and_nothing_counts_twice(
    sockets: Sockets,
) -> None:
    sockets.set(listed(1, 1000, 50_000))
    with reader() as made:
        sockets.vanish()
        with pytest.raises(CommandError, match=r"^lb: its connections' TCP_INFO .*iproute2"):
            made.read(only_new=False)
        sockets.set(listed(1, 1010, 60_000))
        assert sums(made) == (0, 0)
        assert sums(made) == (0, 0)


def test_a_lost_process_begins_anew(sockets: Sockets) -> None:
    sockets.set(listed(1, 1000, 50_000))
    with reader() as made:
        conversation = made._command._conversation
        assert conversation is not None
        conversation.process.kill()  # type: ignore[attr-defined]
        with pytest.raises(CommandError, match="has ended there, and starts again"):
            made.read(only_new=False)
        assert sums(made) == (0, 0)


def test_a_lost_host_is_no_lost_process(sockets: Sockets, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object, **__: object) -> Completed:
        raise UnreachableError("lb", "no route")

    with reader() as made:
        conversation = made._command._conversation
        assert conversation is not None
        conversation.process.kill()  # type: ignore[attr-defined]
        monkeypatch.setattr(LocalHost, "run", lost)
        with pytest.raises(UnreachableError, match="no route"):
            made.read(only_new=False)


@pytest.mark.parametrize("code", ["exit 127", 'unset EPOCHREALTIME; eval "$2"'])
def test_a_host_without_bash_5_is_told(sockets: Sockets, tmp_path: Path, code: str) -> None:
    bash = tmp_path / "bash"
    bash.write_text(f"#!/bin/sh\n{code}\n")
    bash.chmod(0o755)
    with pytest.raises(CommandError, match=r"^lb: .*TCP_INFO .*install bash 5 there$"):
        DeliveryReader(LocalHost(), (80,), step_s=1)


@pytest.mark.parametrize("answer", ["", "sum 0 1 2\n", "sum 0 " + "x " * 4 + "\n", "ps\n"])
def test_an_answer_without_sums_is_an_error(answer: str) -> None:
    with pytest.raises(CommandError, match="TCP_INFO can't be read"):
        DeliveryReader(LocalHost(answer), (80,), step_s=1)


def test_a_difference_never_falls() -> None:
    assert difference({"a": 5, "b": 1}, {"a": 3, "b": 4, "c": 2}) == {"a": 0, "b": 3, "c": 2}


def test_real_connections_of_a_server() -> None:
    """Two clients of a server: one from before, and one that came later."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def client() -> tuple[socket.socket, socket.socket]:
            mine = socket.create_connection(("127.0.0.1", port))
            return mine, server.accept()[0]

        def send(pair: tuple[socket.socket, socket.socket], size: int) -> None:
            mine, its = pair
            thread = threading.Thread(target=its.sendall, args=(b"x" * size,))
            thread.start()
            left = size
            while left:
                left -= len(mine.recv(min(left, 65536)))
            thread.join()
            time.sleep(0.2)  # the last acknowledgement

        old = client()
        send(old, 1_000_000)
        with closing(DeliveryReader(LocalHost(), (port,), step_s=3600)) as made:
            send(old, 2_000_000)
            new = client()
            send(new, 3_000_000)
            everything, fresh = sums(made), sums(made, only_new=True)
            # The first byte that is acknowledged is the handshake's.
            assert everything[1] == pytest.approx(5_000_000, abs=2)
            assert fresh[1] == pytest.approx(3_000_000, abs=2)
            assert everything[0] >= fresh[0]
            assert made.read(only_new=False)["Tcp.OutSegs"] > 0
        for each in (*old, *new):
            each.close()


def test_the_script_ends_with_its_input(sockets: Sockets) -> None:
    with reader() as made:
        conversation = made._command._conversation
        assert conversation is not None
    assert conversation.process.returncode == 0  # type: ignore[attr-defined]
    assert re.search("-tinH", sockets.asked.read_text())
