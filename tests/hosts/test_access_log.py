"""Access logs, reduced on a host by the real script."""

import re
import shutil
from itertools import count
from pathlib import Path

import pytest

from intop.domain.nginx.access_logs import COMBINED, AccessLog, access_logs
from intop.domain.nginx.conf import Conf
from intop.errors import CommandError, UsageError
from intop.hosts.access_log import LoggedRequests, LogReader, usable_log
from kit.local_host import LocalConversation, LocalHost

TEXT = '$msec $connection "$request" $status $request_time'


def line(time: object, *, status: object = 200, connection: int = 1, request: str = "GET /") -> str:
    return f'1764280000.123 {connection} "{request} HTTP/1.1" {status} {time}\n'


def log_of(path: Path, text: str = TEXT) -> AccessLog:
    return AccessLog(path=str(path), name="intop", text=text)


def write(path: Path, *texts: str) -> None:
    with path.open("a") as file:
        file.writelines(texts)


def reader_of(path: Path, text: str = TEXT) -> LogReader:
    path.touch()
    return LogReader(LocalHost(), log_of(path, text))


def times_ms(requests: LoggedRequests) -> dict[float, int]:
    """Counts by the time, which a histogram rounds up a little."""
    return {round(us / 1000, 1): number for us, number in requests.histogram.pairs()}


def test_only_what_came_since_the_last_look_is_counted(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    write(log, line("9.999"))
    reader = reader_of(log)
    write(log, line("0.001"), line("0.001"), line("0.000", status=404), line("1.5", status=503))
    requests = reader.read()
    assert times_ms(requests) == {0.5: 1, 1: 2}
    assert (requests.failed, requests.total, requests.failed_share) == (1, 4, 0.25)
    assert reader.read().total == 0
    write(log, line("0.250", status=499))
    assert (reader.read().failed, reader.read().failed) == (1, 0)


def test_requests_of_connections_from_before_can_be_left_out(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    write(log, line("0.1", connection=41))
    reader = reader_of(log)
    assert reader.connection == 41
    write(log, line("0.2", connection=41), line("0.3", connection=43))
    requests = reader.read(after=41)
    assert (times_ms(requests), requests.old, reader.connection) == ({300: 1}, 1, 43)
    write(log, line("0.2", connection=40), line("0.1", status=101, connection=43))
    assert (reader.read(after=43).old, reader.connection) == (1, 43)
    write(log, line("0.2", connection=2))  # nginx was restarted
    assert reader.read(after=43).old == 1
    reader.begin_anew()
    assert reader.connection == 2


@pytest.mark.parametrize("linked", ["nothing", "the folder", "the log"])
def test_a_log_that_was_moved_is_read_to_its_end(tmp_path: Path, linked: str) -> None:
    log = tmp_path / "a.log"
    shown = {
        "nothing": log,
        "the folder": tmp_path / "link" / "a.log",
        "the log": tmp_path / "elsewhere" / "b.log",
    }[linked]
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/b.log").symlink_to(log)
    log.touch()
    reader = reader_of(shown)
    write(log, line("0.001"))
    log.rename(tmp_path / "a.log.1")
    write(tmp_path / "a.log.1", line("0.002"))
    write(log, line("0.003"))
    requests = reader.read()
    assert times_ms(requests) == {1: 1, 2: 1, 3: 1}
    assert requests.notes == ("the log was moved meanwhile",)
    write(log, line("0.004"))
    assert (times_ms(reader.read()), reader.read().notes) == ({4: 1}, ())


def test_a_log_that_is_gone_or_truncated_is_named(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    write(log, line("0.001"), line("0.001"))
    reader = reader_of(log)
    log.write_text(line("0.005"))
    requests = reader.read()
    assert (times_ms(requests), requests.notes) == ({5: 1}, ("the log was truncated meanwhile",))
    (tmp_path / "new").write_text(line("0.006"))  # another inode, and the old one is gone
    (tmp_path / "new").replace(log)
    requests = reader.read()
    assert times_ms(requests) == {6: 1}
    assert "its last lines with it" in requests.notes[0]
    log.unlink()
    with pytest.raises(CommandError, match=r"exit code 1 of"):
        reader.read()


def test_a_request_of_hours_counts_as_one_hour(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    reader = reader_of(log)
    write(log, line("86400.000"))
    assert reader.read().histogram.percentile_ms(50) >= 3_600_000


@pytest.mark.parametrize("answer", ["hello\n", "place\t1\n", "note\tx\n", "failed\t-1\n"])
def test_another_answer_is_refused(tmp_path: Path, answer: str) -> None:
    with pytest.raises(CommandError, match="can't be read"):
        LogReader(LocalHost(answer), log_of(tmp_path / "a.log"))


def test_lines_of_another_format_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    reader = reader_of(log)
    write(log, line("-"), "\n", "GET / 200 0.1\n", line("0.1", status="GET"), line("0.007"))
    requests = reader.read()
    assert (requests.unreadable, times_ms(requests)) == (4, {7: 1})


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"{COMBINED} $request_time", '::1 - - [t] "GET / HTTP/2.0" 200 5 "-" "a b" 0.007'),
        (
            '{"t":$request_time,"agent":"$http_user_agent","s":"$status"}',
            '{"t":0.007,"agent":"x \\u0022 y","s":"200"}',
        ),
        ("$status|${request_time}|$request", "200|0.007|GET /a|b HTTP/1.1"),
    ],
    ids=["combined and more", "JSON", "pipes"],
)
def test_any_log_format_is_read(tmp_path: Path, text: str, written: str) -> None:
    log = tmp_path / "a 'log'.log"
    reader = reader_of(log, text)
    write(log, f"{written}\n")
    assert times_ms(reader.read()) == {7: 1}


def sampling(log: AccessLog) -> LogReader:
    """A reader after a busy second, which will hardly take a line of the next one."""
    seconds = count()
    reader = LogReader(LocalHost(), log, most_per_s=1e-6, clock=lambda: next(seconds))
    write(Path(log.path), *[line("0.007")] * 10)
    reader.read()
    return reader


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"{COMBINED} $request_time", '::1 - - [t] "GET / HTTP/2.0" {} 5 "-" "a b" 0.007'),
        ('{"t":$request_time,"s":"$status"}', '{"t":0.007,"s":"{}"}'),
        ("/a.*[b]\\^$status|${request_time}", "/a.*[b]\\^{}|0.007"),
        ("$status $request_time", "{} 0.007"),
        ("$request_time $status", "0.007 {}"),
    ],
    ids=["combined and more", "JSON", "marks", "first", "last"],
)
def test_all_failures_of_a_busy_log_are_counted(tmp_path: Path, text: str, written: str) -> None:
    log = tmp_path / "a.log"
    log.touch()
    reader = sampling(log_of(log, text))
    for status, times in (("200", 900), ("503", 40), ("499", 2), ("404", 50), ("101", 8)):
        write(log, f"{written.replace('{}', status)}\n" * times)
    requests = reader.read()
    assert (requests.failed, requests.total) == (42, 42)


def test_a_sample_of_a_busy_log_stands_for_all(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.touch()
    seconds = count()
    reader = LogReader(LocalHost(), log_of(log), most_per_s=5000, clock=lambda: next(seconds))
    busy = [line(f"0.00{n % 5 + 1}", connection=n % 2 + 1) for n in range(20_000)]
    write(log, *busy)
    assert reader.read(after=1).total == 10_000  # read whole, since nothing was known
    write(log, *busy, *[line("0.1", status=500, connection=2)] * 7)
    requests = reader.read(after=1)
    assert requests.failed == 7
    # One in four, so 2,500 of 10,000: their number is within five standard deviations of 43.
    for number, all_of_them in ((requests.histogram.total, 10_000), (requests.old, 10_000)):
        assert number % 4 == 0
        assert abs(number - all_of_them) < 4 * 5 * 43
    assert {round(ms) for ms in times_ms(requests)} == {2, 4, 1, 3, 5}
    write(log, line("0.009", connection=2))
    assert reader.read().total in (0, 4, 5)
    write(log, line("0.009", connection=2))
    assert times_ms(reader.read()) == {9: 1}  # the log is not busy any more


@pytest.mark.parametrize("program", ["awk", "mawk"])
def test_any_awk_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "nice", "stat", "dd", program):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    test_all_failures_of_a_busy_log_are_counted(tmp_path, "$status $request_time", "{} 0.007")
    log = tmp_path / "b.log"
    reader = reader_of(log)
    write(log, line("0.007"), line("x"))
    requests = reader.read()
    assert (times_ms(requests), requests.unreadable) == ({7: 1}, 1)


def test_a_shell_stays_and_a_lost_one_is_replaced(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    reader = reader_of(log)
    shell = reader._shell._conversation
    assert isinstance(shell, LocalConversation)
    write(log, line("0.001"))
    assert (times_ms(reader.read()), reader._shell._conversation) == ({1: 1}, shell)
    shell.process.kill()
    write(log, line("0.002"))
    assert (times_ms(reader.read()), reader._shell._conversation) == ({2: 1}, None)
    write(log, line("0.003"))
    assert times_ms(reader.read()) == {3: 1}
    assert isinstance(again := reader._shell._conversation, LocalConversation)
    reader.close()
    assert again.process.returncode == 0


def test_a_log_that_dd_cannot_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dd").symlink_to(str(shutil.which("false")))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(CommandError, match=r"a\.log can't be read .*dd can not read it"):
        reader_of(tmp_path / "a.log")


CONF = r"""
events {}
http {
    log_format main escape=json '$remote_addr "$request" '
                    '$status $request_time';
    log_format short '$status';
    access_log /var/log/nginx/main.log main if=$loggable;
    server { access_log /var/log/nginx/short.log short; }
    server { access_log off; access_log syslog:server=[::1] main; access_log /l/$host.log main; }
    server { access_log /var/log/nginx/plain.log; }
    server { access_log /var/log/nginx/late.log main buffer=64k flush=1s; }
    server { access_log /var/log/nginx/main.log main if=$loggable; }
}
"""


def test_logs_and_their_formats_are_in_the_configuration() -> None:
    logs = list(access_logs(Conf.of("/n.conf", {"/n.conf": CONF})))
    assert [log.path.rpartition("/")[2] for log in logs] == [
        "main.log",
        "short.log",
        "plain.log",
        "late.log",
    ]
    assert logs[0].text == '$remote_addr "$request" $status $request_time'
    assert (logs[0].condition, logs[0].is_delayed, logs[3].is_delayed) == ("$loggable", False, True)
    assert logs[0].has("status", "request_time")
    assert usable_log(logs) == logs[0]
    for path, reason in (
        ("/var/log/nginx/short.log", "log_format short lacks $request_time"),
        ("/var/log/nginx/plain.log", "log_format combined lacks $request_time"),
        ("/var/log/nginx/late.log", "its lines wait in a buffer"),
        ("/nowhere", "nginx writes no access log /nowhere; it writes /var/log/nginx/main.log"),
    ):
        with pytest.raises(UsageError, match=re.escape(reason)):
            usable_log(logs, path)
    with pytest.raises(UsageError, match="Choose one of them by --log"):
        usable_log([log_of(Path("/a")), log_of(Path("/b"))])
    with pytest.raises(UsageError, match="without a text between them"):
        usable_log([log_of(Path("/a"), "$status$request_time")])
    with pytest.raises(UsageError, match="it writes none"):
        usable_log([])
    with pytest.raises(UsageError, match="its path is not absolute"):
        usable_log([log_of(Path("logs/a"))])
    with pytest.raises(UsageError, match="its lines have several formats"):
        usable_log([log_of(Path("/a")), log_of(Path("/a"), "$status $request_time")])
