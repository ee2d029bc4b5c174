"""Bad lines and files: each has an outcome that `workload learn` states."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.campaigns import LAB
from intop.config.study import load_study
from intop.errors import UsageError
from intop.traffic.access_log import LONGEST

Learn = Callable[..., tuple[str, str]]
TIMED = '$msec "$request" $status $body_bytes_sent $connection_requests $request_time $tcpinfo_rtt'


@pytest.fixture
def learn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Learn:
    """Learn a log of these lines or bytes. Return the workload's text and the notes.

    The text is always one that a study takes.
    """
    from intop.cli import cli

    monkeypatch.chdir(tmp_path)

    def learned(content: list[str] | bytes, *words: str) -> tuple[str, str]:
        if isinstance(content, list):
            content = "".join(f"{line}\n" for line in content).encode()
        Path("a.log").write_bytes(content)
        command = ["workload", "learn", "a.log", *words]
        cli(command, prog_name="intop", standalone_mode=False)
        text, notes = capsys.readouterr()
        Path("intop.toml").write_text(f"{LAB.format(folder=tmp_path)}\n{text}")
        load_study(Path("intop.toml"))
        return text, notes

    return learned


def line(
    request: str = "GET /a HTTP/1.1",
    status: object = 200,
    at: str = "27/Nov/2026:10:00:00 +0000",
    address: str = "192.0.2.1",
    size: object = 9,
) -> str:
    return f'{address} - - [{at}] "{request}" {status} {size} "-" "agent"'


def timed(
    msec: str = "1795773600.250",
    size: str = "9",
    nth: str = "1",
    took: str = "0.010",
    trip: str = "40000",
) -> str:
    return f'{msec} "GET /a HTTP/1.1" 200 {size} {nth} {took} {trip}'


GOOD = [line()] * 60


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["plain", "gzip"])
def test_an_empty_log_is_one_error(learn: Learn, content: bytes) -> None:
    with pytest.raises(UsageError, match="the log is empty"):
        learn(content)


def test_a_few_lines_of_another_format_are_counted_with_three_examples(learn: Learn) -> None:
    other = json.dumps({"request": "GET /b HTTP/1.1", "status": 200, "msec": 1})
    text, _ = learn([*GOOD, *[other] * 5])
    assert "# 5 lines could not be read, such as a.log:61, a.log:62, a.log:63." in text
    assert "/b" not in text


def test_more_lines_of_another_format_than_of_its_own_are_one_error(learn: Learn) -> None:
    with pytest.raises(UsageError, match=r"70 of 130 lines are not of the format 'combined'"):
        learn([*GOOD, *["{}"] * 70])


def test_tabs_and_pipes_are_read_by_the_format(learn: Learn) -> None:
    own = "1795773600.250\tGET /a HTTP/1.1|200|12"
    text, _ = learn([own] * 9, "--format", "$msec\t$request|$status|$body_bytes_sent")
    assert '"/a" = 200        # 0.0 kB' in text
    assert "could not be read" not in text


def test_json_with_bytes_that_are_no_text_is_read(learn: Learn) -> None:
    own = {"msec": "1795773600.250", "request": "GET /a HTTP/1.1", "status": 200}
    begun = json.dumps(own)[:-1]
    text, _ = learn([f'{begun}, "agent": "\\xE4\\xFF"}}'] * 9)
    assert '"/a" = 200' in text
    assert "could not be read" not in text


@pytest.mark.parametrize(
    "bad",
    [
        line(status="<html>"),
        line(status="2²"),
        line(status="20000"),
        line(at="27/Nov/2026:10:00:00 +9999"),
        line(at="31/Feb/2026:10:00:00 +0000"),
        line(at="now"),
        "\x00\x01",
        "",
    ],
)
def test_what_is_no_line_is_counted(learn: Learn, bad: str) -> None:
    text, _ = learn([*GOOD, bad])
    assert "# 1 lines could not be read, such as a.log:61." in text


@pytest.mark.parametrize("msec", ["nan", "inf", "-1", "1e300", "1795773600250"])
def test_a_time_that_is_none_is_counted(learn: Learn, msec: str) -> None:
    text, _ = learn([*[timed()] * 60, timed(msec)], "--format", TIMED)
    assert "# 1 lines could not be read, such as a.log:61." in text


@pytest.mark.parametrize("number", ["²", "9" * 5000, "nan", "-", "-1", "1e999"])
def test_a_number_that_is_none_is_as_if_it_were_not_logged(learn: Learn, number: str) -> None:
    bad = timed(size=number, nth=number, took=number, trip=number)
    text, _ = learn([*[timed()] * 60, bad], "--format", TIMED)
    assert "could not be read" not in text
    assert "10 ms that a request holds one" in text


def test_ipv6_is_an_address(learn: Learn) -> None:
    text, _ = learn([line(address="2001:db8::1")] * 9, "--clients", "far=2001:db8::/32")
    assert "# Clients: 100% of the requests, 2001:db8::/32." in text


def test_time_that_goes_backwards_is_said(learn: Learn) -> None:
    after = line(at="27/Nov/2026:10:00:05 +0000")
    text, _ = learn([after, *[line()] * 5, after])
    assert "# Time went backwards 5 times." in text


def test_the_end_of_summer_time_is_no_step_backwards(learn: Learn) -> None:
    before, after = (line(at=f"25/Oct/2026:02:{m}") for m in ("59:59 +0200", "00:00 +0100"))
    text, _ = learn([before, after])
    assert "backwards" not in text


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (line("", 400), "empty request (status 400)"),
        (line("-", 408), "empty request (status 408)"),
        (line("\\x16\\x03\\x01\\x02", 400), "malformed request (status 400)"),
        (line("GET /a b HTTP/1.1", 400), "malformed request (status 400)"),
        (line(status=499), "closed by the client (status 499)"),
        (line("GET /ws HTTP/1.1", 101), "upgraded connection (status 101)"),
        (line(status="000"), "status 000"),
        (line("POST /a HTTP/1.1"), "method POST"),
        (line(f"{'X' * 3000} /a HTTP/1.1"), "unknown method"),
    ],
)
def test_what_no_load_sends_is_left_out_by_its_reason(learn: Learn, bad: str, reason: str) -> None:
    text, _ = learn([*GOOD, bad])
    assert f"# Left out: 1 requests, {reason}." in text
    assert "could not be read" not in text


def test_a_line_of_a_megabyte_is_said_and_left_out(learn: Learn) -> None:
    content = "\n".join([*GOOD, "x" * 1_000_000, line(), ""])
    text, notes = learn(content.encode())
    assert "1 lines are longer than any request, and were left out" in notes
    assert "from 61 lines" in text
    assert LONGEST < 1_000_000


def test_half_of_a_gzip_is_learned_as_far_as_it_goes(learn: Learn) -> None:
    lines = [line(at=f"27/Nov/2026:10:00:{n % 60:02d} +0000", size=n) for n in range(5000)]
    packed = gzip.compress("".join(f"{each}\n" for each in lines).encode())
    text, notes = learn(packed[: len(packed) // 2])
    assert "a.log is cut off or damaged after line" in notes
    assert '"/a" = 200' in text


def test_what_anybody_may_send_makes_no_list_longer(learn: Learn) -> None:
    content = [
        json.dumps(
            {
                "msec": "1795773600.250",
                "request_method": "GET" if n % 2 else f"X{n}",
                "request_uri": "/a",
                "server_protocol": f"HTTP/{n}",
                "scheme": 'http"\nrate_rps = 9' if n else "https",
                "status": 200,
            }
        )
        for n in range(200)
    ]
    text, _ = learn(content)
    assert "# Left out: 100 requests, unknown method." in text
    assert "rate_rps = 9" not in text
