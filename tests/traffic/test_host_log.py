"""Access logs on a host, with real commands."""

import gzip
from pathlib import Path

import pytest

from intop.domain.nginx.access_logs import AccessLog
from intop.errors import CommandError, UsageError
from intop.traffic.access_log import LONGEST
from intop.traffic.host_log import HostLines, log_of
from kit.local_host import LocalHost

TEXTS = [f"line {n} é \\xC3" if n % 7 else "" for n in range(500)]


def lines_of(path: Path, part: int = 64) -> HostLines:
    return HostLines(LocalHost(), [str(path)], part=part)


@pytest.mark.parametrize("part", [1, 17, 64, 1_000_000])
def test_all_lines_come_in_parts_of_any_size(tmp_path: Path, part: int) -> None:
    log = tmp_path / "a 'log'.log"
    texts = TEXTS if part > 1 else TEXTS[:5]
    log.write_text("".join(f"{text}\n" for text in texts))
    result = list(lines_of(log, part))
    assert [text for _, text in result] == texts
    assert result[2][0] == f"lb:{log}:3"


def test_packed_logs_are_unpacked(tmp_path: Path) -> None:
    log = tmp_path / "a.log.2.gz"
    log.write_bytes(gzip.compress(b"one\r\ntwo\n"))
    assert [text for _, text in lines_of(log)] == ["one", "two"]


def test_a_line_without_an_end_and_one_without_bounds_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"one\n{'x' * 2 * LONGEST}\ntwo\nthr")
    lines = lines_of(log, 50_000)
    assert [text for _, text in lines] == ["one", "two"]
    assert lines.too_long == 1
    assert lines.notes == [f"{log} ends in the middle of a line, which was left out"]


def test_a_damaged_one_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    log = tmp_path / "a.log.2.gz"
    packed = bytearray(gzip.compress(b"one line\n" * 9000))
    packed[60:70] = b"\0" * 10
    log.write_bytes(packed)
    lines = lines_of(log)
    assert len(list(lines)) < 9000
    assert "is damaged" in lines.notes[0]


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none\.log"):
        list(lines_of(tmp_path / "none.log"))


def test_files_belong_to_the_log_that_they_were_rotated_from() -> None:
    main, other = (AccessLog(f"/var/log/{name}", name, "$status") for name in ("a.log", "b.log"))
    assert log_of([main], []) == main
    assert log_of([main], ["/var/log/a.log-20261127.gz"]) == main
    assert log_of([main, other], ["/var/log/b.log.2.gz", "/var/log/b.log"]) == other
    assert log_of([main, other], ["/elsewhere/c.log"]) is None
    with pytest.raises(UsageError, match=r"Name one of them: /var/log/a.log, /var/log/b.log"):
        log_of([main, other], [])
