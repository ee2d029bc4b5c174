"""Whatever a host prints of its guard and of itself: an answer that makes sense, or an error."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.damage import NUMBERS, PIECES, anything, damaged
from intop.errors import CommandError, HostError
from intop.hosts.guard import GuardedHost, guarded
from intop.hosts.guard.state import parse_rollback, parse_status
from intop.hosts.host import Completed, output
from intop.hosts.readiness import parse_readiness
from intop.hosts.sysctl import parse_refusals
from kit.local_host import LocalHost

STATUS = (
    "holder\tme@here (process 7)\nsince\t2026-11-21T15:00:00Z\nlease_s\t30\nsilent_s\t3\n"
    "watchdog\talive\nkey\tnet/core/x\t1\t2\nforeign\tnet/core/y\t2\t3\tcommand\nreport\tone\n"
)
ROLLBACK = (
    "restored\tnet/core/x\t1\nforeign\tnet/core/y\t2\t3\tcommand\n"
    "unrestored\tnet/core/z\t1\tcommand\n"
)
READY = "can_store\nfree 1024\nlacks ss\ntuner tuned\nlockdown none\n"
VALUES = st.text(st.characters(exclude_characters="\n\t"), max_size=30)


@given(anything | damaged(STATUS))
def test_a_status_is_read_whatever_is_in_it(text: str) -> None:
    result = parse_status(text)
    for seconds in (result.lease_s, result.silent_s):
        assert seconds is None or (math.isfinite(seconds) and seconds >= 0)


@given(VALUES, VALUES)
def test_a_changed_value_is_told_as_it_is(before: str, now: str) -> None:
    """Also one with what other programs take for the end of a line."""
    text = f"key\tnet/core/x\t{before}\t{now}\nforeign\tnet/core/y\t{before}\t{now}\ttype\n"
    result = parse_status(text)
    assert [(before, now)] == [(c.before, c.now) for c in result.changed]
    assert [(before, now)] == [(c.left, c.now) for c in result.foreign]


@given(anything | damaged(ROLLBACK), VALUES)
def test_a_rollback_loses_no_key_that_is_not_back(text: str, value: str) -> None:
    parse_rollback(text, "done")  # type: ignore[arg-type]
    message = f"unrestored\tnet/core/z\t{value}\ttype\nforeign\tnet/core/y\t{value}\t1\ttype\n"
    result = parse_rollback(message, "done")  # type: ignore[arg-type]
    assert [value] == [u.value for u in result.unrestored]
    assert [value] == [f.left for f in result.foreign]


@given(anything | damaged(READY))
def test_what_a_host_has_is_read_or_refused(text: str) -> None:
    try:
        result = parse_readiness(text)
    except ValueError:
        return
    assert result.free_mib is None or 0 <= result.free_mib < 2**64


@pytest.mark.parametrize("number", [n for n in NUMBERS if n not in ("0", "-0", "9" * 20, "")])
def test_free_space_that_is_no_number_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match=r"number|below"):
        parse_readiness(READY.replace("1024", number))


@given(anything | st.lists(st.sampled_from([*PIECES, "net/core/x"])).map("".join))
def test_a_refusal_is_read_whatever_is_in_it(text: str) -> None:
    assert all("\n" not in words for words in parse_refusals(text).values())


class Answers(LocalHost):
    """A host on which every command ends so."""

    def __init__(self, done: Completed) -> None:
        super().__init__("")
        self.done = done

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        return self.done

    def put(self, directory: str, files: Any) -> None:
        pass


MUCH = "x" * 10_000_000


@pytest.mark.parametrize("code", [1, 2, 76, 77, 126])
@pytest.mark.parametrize(("out", "err"), [(MUCH, ""), ("", MUCH), ("\0\n" * 1000, "\0")])
def test_a_guard_that_fails_is_told_in_short(code: int, out: str, err: str) -> None:
    host = Answers(Completed(code, out, err))
    with pytest.raises(HostError) as caught, guarded(host, ["net.core.x"]):
        pytest.fail("must not begin")
    assert len(str(caught.value)) < 1500
    with pytest.raises(HostError) as caught:
        GuardedHost(host, "token", {"net.core.x": "1"}).renew()
    assert len(str(caught.value)) < 1500


def test_a_command_that_fails_is_told_in_short() -> None:
    with pytest.raises(CommandError) as caught:
        output(Answers(Completed(1, "", MUCH)), "x" * 10_000)
    assert len(str(caught.value)) < 1000


def test_the_untouched_outputs_are_read() -> None:
    """Else all that was refused above may have been refused for something else."""
    result = parse_status(STATUS)
    assert (result.holder, result.lease_s, result.is_watched) == ("me@here (process 7)", 30.0, True)
    assert 1 == len(result.changed) == len(result.foreign) == len(result.reports)
    assert parse_readiness(READY).free_mib == 1
