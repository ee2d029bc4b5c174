"""workload learn: from logs of known traffic to a workload that a study takes."""

import contextlib
import gzip
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from builders.campaigns import LAB
from intop.config.recording import words_of
from intop.config.study import load_study
from intop.domain.cluster import LabSpec
from intop.domain.recording import Words, paths_of, times_us
from intop.domain.workload import Workload
from intop.errors import UsageError
from intop.traffic.access_log import LONGEST, Lines
from intop.traffic.log_format import format_of
from intop.traffic.profile import MOST_PATHS, Profile, profile_of

Call = Callable[..., tuple[int, str, str]]

FORMAT = '$msec $connection $connection_requests $request_time "$request" $status $body_bytes_sent'
START = 1_795_773_600.0


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    from intop.cli import cli

    def called(*words: object) -> tuple[int, str, str]:
        code = cli([str(word) for word in words], prog_name="intop", standalone_mode=False)
        return code or 0, *capsys.readouterr()

    return called


def log(
    path: Path, *, seconds: int = 300, rate: float = 20, each: int = 5, idle_s: float = 0.5
) -> Path:
    """A log of connections that begin at random, each with so many requests and equal pauses."""
    draws = random.Random(1)
    lines: list[tuple[float, str]] = []
    at, connection = START, 0
    while at < START + seconds:
        at += draws.expovariate(rate / each)
        connection += 1
        for number in range(1, each + 1):
            end = at + (number - 1) * (idle_s + 0.01) + 0.01
            name = draws.choices(["/index.html", "/app.js", "/img/7.png"], [6, 3, 1])[0]
            request = f'"GET {name}?token=abc HTTP/1.1" 200 {len(name) * 1000}'
            lines.append((end, f"{end:.3f} {connection} {number} 0.010 {request}"))
    path.write_text("".join(f"{line}\n" for _, line in sorted(lines)))
    return path


def learned(text: str, folder: Path, name: str = "learned") -> Workload:
    """The workload, as a study takes it."""
    path = folder / "intop.toml"
    path.write_text(f"{LAB.format(folder=folder)}\n{text}")
    return load_study(path).workloads[name]


def test_known_traffic_is_found_again(call: Call, tmp_path: Path) -> None:
    code, text, _ = call("workload", "learn", log(tmp_path / "a.log"), "--format", FORMAT)
    assert code == 0
    workload = learned(text, tmp_path)
    assert workload.rate_rps == pytest.approx(20, rel=0.15)
    (clients,) = workload.clients
    assert clients.requests_per_connection == pytest.approx(5, rel=0.1)
    assert clients.think_ms == pytest.approx(500, rel=0.02)
    shares = {path: workload.paths.count(path) / len(workload.paths) for path in workload.paths}
    assert shares["/index.html"] == pytest.approx(0.6, abs=0.03)
    assert shares["/app.js"] == pytest.approx(0.3, abs=0.03)
    # Little's law: 20 requests/s hold a connection for 510 ms each.
    assert workload.connections == pytest.approx(1.5 * 20 * 0.51, rel=0.2)
    assert "token" not in text
    assert "had a query string, which is never written" in text


def test_all_ways_to_a_log_come_to_the_same(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = log(tmp_path / "a.log", seconds=60)
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    expected = call("workload", "learn", plain, "--format", FORMAT)[1]
    assert call("workload", "learn", packed, "--format", FORMAT)[1] == expected
    with plain.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert call("workload", "learn", "-", "--format", FORMAT)[1] == expected


def combined(
    request: str = "GET / HTTP/1.1", status: int = 200, size: int = 9, second: int = 0
) -> str:
    at = f"27/Nov/2026:10:00:{second % 60:02d} +0000"
    return f'192.0.2.1 - - [{at}] "{request}" {status} {size} "-" "agent"'


def profiled(*lines: str) -> Profile:
    parse = format_of("combined").parse
    return profile_of((f"a.log:{n}", parse(line)) for n, line in enumerate(lines, start=1))


def test_what_a_load_does_not_send_is_counted_by_reason() -> None:
    profile = profiled(
        combined(),
        combined("POST / HTTP/1.1"),
        combined("GET /ws HTTP/1.1", 101),
        combined("GET /slow HTTP/1.1", 499),
        combined("GET /gone HTTP/1.1", 404),
        combined("", 400),
        combined("-", 408),
        "no line of a log",
        combined("GET / HTTP/1.1").replace(" 200 ", " <html> "),
    )
    assert (profile.counted, profile.lines, profile.unreadable) == (1, 9, 2)
    assert profile.examples == ["a.log:8", "a.log:9"]
    assert dict(profile.left_out) == {
        "method POST": 1,
        "upgraded connection (status 101)": 1,
        "closed by the client (status 499)": 1,
        "status 404": 1,
        "empty request (status 400)": 1,
        "empty request (status 408)": 1,
    }


@pytest.mark.parametrize(
    "path",
    ["/reset/eyJhbGciOiJIUzI1NiJ9", "/u/ann@example.org", "/token/1", "/x/" + "Ab3_" * 8],
)
def test_a_path_that_may_hold_a_secret_is_counted_and_never_kept(path: str) -> None:
    profile = profiled(combined(f"GET {path} HTTP/1.1"), combined())
    assert profile.secret_requests == 1
    assert [each.path for each in profile.paths] == ["/"]


def test_ids_in_paths_count_as_one_path() -> None:
    profile = profiled(*(combined(f"GET /order/{n}/x HTTP/1.1") for n in range(5)))
    (path,) = profile.paths
    assert (path.path, path.requests) == ("/order/0/x", 5)


def test_memory_is_bounded_in_paths() -> None:
    lines = (combined(f"GET /p{n}-{n % 7}.css HTTP/1.1", size=n) for n in range(MOST_PATHS + 500))
    profile = profiled(*lines)
    assert len(profile.paths) <= MOST_PATHS + 6
    assert sum(path.requests for path in profile.paths) == MOST_PATHS + 500


def test_time_that_goes_backwards_is_counted() -> None:
    lines = [combined(second=n) for n in (0, 10, 5, 6, 20)]
    assert profiled(*lines).backwards == 2


def test_independent_arrivals_have_a_dispersion_of_one_and_equal_ones_of_nought() -> None:
    draws = random.Random(2)
    at, times = START, []
    for _ in range(40_000):
        at += draws.expovariate(50)
        times.append(at)
    values = {"request": "GET / HTTP/1.1", "status": "200"}
    poisson = profile_of(("x", {**values, "msec": f"{t:.3f}"}) for t in times)
    assert poisson.dispersion(10) == pytest.approx(1, abs=0.15)
    equal = profile_of(("x", {**values, "msec": f"{START + n / 50:.3f}"}) for n in range(20_000))
    assert equal.dispersion(10) == pytest.approx(0, abs=0.05)
    assert equal.rate_rps == pytest.approx(50, rel=0.02)


def test_the_busiest_hour_gives_the_rate() -> None:
    values = {"request": "GET / HTTP/1.1", "status": "200"}
    hours = ((0, 100), (1, 3600), (2, 300), (3, 200), (4, 100))
    lines = [
        ("x", {**values, "msec": str(START + 3600 * hour + 3599 * n / count)})
        for hour, count in hours
        for n in range(count)
    ]
    assert profile_of(lines).rate_rps == pytest.approx(1)


def test_a_log_over_the_turn_of_an_hour_has_its_own_rate() -> None:
    values = {"request": "GET / HTTP/1.1", "status": "200"}
    lines = [("x", {**values, "msec": str(START + 3600 - 900 + n / 10)}) for n in range(18_000)]
    assert profile_of(lines).rate_rps == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("name", ["a b", "all", "-x", 'a"]'])
def test_a_name_that_no_workload_may_have_is_refused(name: str, call: Call, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a workload's name has"):
        call("workload", "learn", log(tmp_path / "a.log", seconds=20), f"--name={name}")


def test_a_log_without_times_of_requests_says_what_to_add(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("\n".join(combined(second=n // 2) for n in range(100)))
    _, text, err = call("workload", "learn", path)
    assert "format: combined" in err
    assert "add $request_time" in text
    assert "Add $connection, $connection_requests" in text
    assert "Times are whole seconds" in text
    assert learned(text, tmp_path).kind == "slt"


def test_json_has_everything(call: Call, tmp_path: Path) -> None:
    words = ("workload", "learn", log(tmp_path / "a.log", seconds=60), "--format", FORMAT, "--json")
    result = json.loads(call(*words)[1])
    assert result["requests"] == result["lines"]
    assert result["paths"][0]["path"] == "/index.html"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the log is empty"),
        ("one\ntwo\n", "none of the known formats"),
        (combined("POST / HTTP/1.1") + "\n", "no GET request"),
    ],
)
def test_a_log_that_cannot_be_learned_is_one_error(
    content: str, message: str, call: Call, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        call("workload", "learn", path)


def test_mixed_formats_are_named_with_the_lines(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("\n".join([combined()] * 60 + ["other"] * 100))
    with pytest.raises(UsageError, match="100 of 160 lines are not of the format 'combined'"):
        call("workload", "learn", path)


def test_a_file_that_is_not_there_is_one_error(call: Call, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read: No such file"):
        call("workload", "learn", tmp_path / "none.log")


def test_half_of_a_gzip_is_read_and_said(tmp_path: Path) -> None:
    packed = gzip.compress("\n".join(f"line {n}" for n in range(10_000)).encode())
    path = tmp_path / "a.gz"
    path.write_bytes(packed[: len(packed) // 2])
    lines = Lines([str(path)])
    assert 0 < len(list(lines)) < 10_000
    (note,) = lines.notes
    assert "is cut off or damaged after line" in note


def test_a_line_of_a_megabyte_is_left_out_and_bytes_that_are_no_text_are_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"a" * (LONGEST + 1) + b"\n\xff\xfe\n")
    lines = Lines([str(path)])
    assert [text for _, text in lines] == ["\\xff\\xfe"]
    assert lines.too_long == 1


UPSTREAM = '$msec "$request" $status $body_bytes_sent $request_time $upstream_response_time'


def test_a_lab_answers_after_the_logs_waits(call: Call, tmp_path: Path) -> None:
    waits = {"/": "-", "/a": "0.000", "/b": "0.030, 0.034 : 0.064", "/c": "7.5"}
    path = tmp_path / "a.log"
    path.write_text(
        "".join(
            f'{START + n + 0.5:.3f} "GET {asked} HTTP/1.1" 200 2000 0.1 {waited}\n'
            for n in range(30)
            for asked, waited in waits.items()
        )
    )
    code, text, _ = call("workload", "learn", path, "--format", UPSTREAM, "--lab", "x86")
    assert code == 0
    learned(text, tmp_path)
    (spec,) = load_study(tmp_path / "intop.toml").clusters["x86"]
    assert isinstance(spec, LabSpec)
    assert dict(spec.files) == dict.fromkeys(waits, 2.0)
    # Steps of a scale with two for each doubling; a lab waits for a second at most.
    assert spec.waits == (("/a", ((0, 1000),)), ("/b", ((128, 1000),)), ("/c", ((1000, 1000),)))
    shown = json.loads(call("workload", "learn", path, "--format", UPSTREAM, "--json")[1])
    assert shown["paths"][2]["waits"] == {"128": 30}


def test_what_a_cache_answers_does_not_wait_in_a_lab(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        "".join(
            f'{START + n + 0.5:.3f} "GET / HTTP/1.1" 200 2000 0.1 {"-" if n % 10 else "0.128"}\n'
            for n in range(100)
        )
    )
    _, text, _ = call("workload", "learn", path, "--format", UPSTREAM, "--lab", "x86")
    learned(text, tmp_path)
    (spec,) = load_study(tmp_path / "intop.toml").clusters["x86"]
    assert isinstance(spec, LabSpec)
    assert spec.waits == (("/", ((0, 1000), (128, 111))),)


def test_connections_are_enough_for_a_burst(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    line = '"GET /a HTTP/1.1" 200 1000'
    path.write_text(
        "".join(
            f"{START + burst + n / 10_000:.4f} {burst}-{n} 1 0.002 {line}\n"
            for burst in range(60)
            for n in range(50)
        )
    )
    workload, _, text = recorded(call, tmp_path, path)
    assert workload.connections == 75
    assert "the requests of the busiest 100 ms, which may all be under way" in text
    # Without a recording there are no bursts.
    _, text, _ = call("workload", "learn", path, "--format", FORMAT)
    assert learned(text, tmp_path).connections == 8


def test_kept_connections_are_used_before_a_trial_counts(call: Call, tmp_path: Path) -> None:
    _, text, _ = call("workload", "learn", log(tmp_path / "a.log"), "--format", FORMAT)
    workload = learned(text, tmp_path)
    assert workload.warmup_s == math.ceil(workload.connections / 20)


# Recordings ---------------------------------------------------------------------------------------


def recorded(
    call: Call, folder: Path, *logs: Path, line_format: str = FORMAT
) -> tuple[Workload, Words, str]:
    """The workload of a study beside the recording of some logs, its requests, and the text."""
    with contextlib.chdir(folder):
        words = ["workload", "learn", *logs, "--format", line_format, "--record", "own.recording"]
        code, text, _ = call(*words)
    assert code == 0
    workload = learned(text, folder)
    assert workload.arrivals == "recorded"
    assert workload.recording is not None
    return workload, words_of(workload.recording), text


def test_a_recording_has_every_request_at_its_begin_with_its_path(
    call: Call, tmp_path: Path
) -> None:
    path = log(tmp_path / "a.log")
    workload, words, text = recorded(call, tmp_path, path)
    lines = [line.split() for line in path.read_text().splitlines()]
    first, last = float(lines[0][0]), float(lines[-1][0])
    assert workload.recording is not None
    assert len(words) == len(lines)
    assert workload.recording.seconds == pytest.approx(last - first + 0.001)
    assert workload.rate_rps == pytest.approx(workload.recording.rate_rps, abs=0.005)
    # Its connections are for the busiest second: 510 ms each.
    busiest = max(Counter(int(float(line[0])) for line in lines).values())
    assert workload.connections == math.ceil(1.5 * busiest * 0.51)
    # Times are ends, which are 10 ms later than begins. The first requests began before the log.
    ends = (times_us(words) / 1e6 + 0.01) % workload.recording.seconds
    expected = np.array([float(line[0]) - first for line in lines])
    late = np.sort(ends) - np.sort(expected)
    assert late.min() > -1e-5
    assert late.max() < 0.0011
    names = list(dict.fromkeys(workload.paths))
    counts = {name: sum(line[5].startswith(f"{name}?") for line in lines) for name in names}
    assert np.bincount(paths_of(words)).tolist() == list(counts.values())
    assert "token" not in text
    assert b"token" not in Path(workload.recording.path).read_bytes()


def test_the_same_log_is_the_same_recording(call: Call, tmp_path: Path) -> None:
    path = log(tmp_path / "a.log", seconds=60)
    first = recorded(call, tmp_path, path)[0]
    assert first == recorded(call, tmp_path, path)[0]


def test_whole_seconds_are_said_and_times_drawn_within_them(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{combined(second=n // 20)}\n" for n in range(1200)))
    _, words, text = recorded(call, tmp_path, path, line_format="combined")
    assert "Times are whole seconds: the recording draws them within each second." in text
    assert np.bincount(times_us(words) // 1_000_000).tolist() == [20] * 60
    parts = times_us(words) % 1_000_000
    assert parts.mean() == pytest.approx(500_000, rel=0.05)
    assert parts.std() == pytest.approx(1e6 / 12**0.5, rel=0.05)


def test_of_several_hours_the_busiest_is_recorded(call: Call, tmp_path: Path) -> None:
    counts = (100, 1000, 300, 200, 100)
    path = tmp_path / "a.log"
    lines = [
        f'{START + 3600 * hour + 3599 * n / count:.3f} "GET /{hour}.css HTTP/1.1" 200\n'
        for hour, count in enumerate(counts)
        for n in range(count)
    ]
    path.write_text("".join(lines))
    workload, words, _ = recorded(call, tmp_path, path, line_format='$msec "$request" $status')
    assert len(words) == 1000
    names = list(dict.fromkeys(workload.paths))
    assert {names[place] for place in paths_of(words).tolist()} == {"/1.css"}


def test_rare_paths_are_recorded_as_the_path_of_their_group(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    names = [f"/p{n}.css" for n in range(60)] + ["/often.html"] * 100
    path.write_text("".join(f"{combined(f'GET {name} HTTP/1.1')}\n" for name in names))
    workload, words, _ = recorded(call, tmp_path, path, line_format="combined")
    own = list(dict.fromkeys(workload.paths))
    counts = np.bincount(paths_of(words), minlength=len(own))
    assert counts[own.index("/often.html")] == 100
    assert sorted(counts)[-2:] == [21, 100]
    assert counts.sum() == 160


def test_a_request_that_may_hold_a_secret_keeps_its_time_only(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    requests = ["/a", "/b", "/token/abc", "/a"]
    path.write_text("".join(f"{combined(f'GET {name} HTTP/1.1')}\n" for name in requests))
    workload, words, text = recorded(call, tmp_path, path, line_format="combined")
    assert list(dict.fromkeys(workload.paths)) == ["/a", "/b"]
    assert np.bincount(paths_of(words)).tolist() == [2, 2]
    assert "a request whose path may hold a secret asks for the path before it" in text


def test_a_file_that_is_no_recording_is_never_replaced(call: Call, tmp_path: Path) -> None:
    path = log(tmp_path / "a.log", seconds=20)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is there, and is no recording: name another file"):
        call("workload", "learn", path, "--format", FORMAT, "--record", path)
    assert path.read_bytes() == before


def test_a_recording_that_can_not_be_written_is_one_error(call: Call, tmp_path: Path) -> None:
    path = log(tmp_path / "a.log", seconds=20)
    with pytest.raises(UsageError, match="can't be written: No such file or directory"):
        call("workload", "learn", path, "--format", FORMAT, "--record", tmp_path / "no/own")


def test_a_log_without_a_path_that_may_be_written_has_no_recording(
    call: Call, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"{combined('GET /token/1 HTTP/1.1')}\n" * 3)
    with pytest.raises(UsageError, match="no GET request that was answered"):
        call("workload", "learn", path, "--record", tmp_path / "own")
    assert not (tmp_path / "own").exists()
