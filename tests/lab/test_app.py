"""The dynamic application, called directly."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from intop.lab import app, content


def get(query: str, path: str = "/dynamic", method: str = "GET") -> tuple[str, bytes]:
    answers: list[str] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        answers.append(status)
        answers.append(dict(headers)["Content-Length"])

    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
    body = b"".join(app.application(environ, start_response))
    status, length = answers
    assert method == "HEAD" or length == str(len(body))
    return status, body


def test_the_same_number_gives_the_same_page() -> None:
    assert get("r=17") == get("r=17")
    assert get("r=17") != get("r=18")


def test_size_and_work_depend_on_the_number() -> None:
    sizes_kb = [len(app.page(number)) / 1024 for number in range(600)]
    assert 1.5 < min(sizes_kb) < 4
    assert 70 < max(sizes_kb) < 85
    assert 25 < mean(sizes_kb) < 30
    reads = [app.amounts(number)[0] for number in range(600)]
    assert max(reads) > 8 * min(reads)


def test_a_page_lists_as_many_rows_as_its_number_says() -> None:
    class Rows(HTMLParser):
        rows = 0

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            self.rows += tag == "tr"

    for number in (0, 1, 10**18 - 1):
        parser = Rows()
        parser.feed(app.page(number).decode())
        assert parser.rows == app.amounts(number)[2]


def test_fields_are_escaped() -> None:
    text = b"".join(app.page(number) for number in range(50))
    assert b"Bloggs &lt;Ltd&gt;" in text
    assert b"<Ltd>" not in text


@pytest.mark.parametrize(
    "query", ["", "r=", "r=x", "r=-1", "r=1.5", "r=1&r=2", "q=1", "r=²", "r=" + "9" * 19]
)
def test_a_bad_number_is_a_bad_request(query: str) -> None:
    assert get(query)[0] == "400 Bad Request"


@pytest.mark.parametrize("wait", ["", "x", "-1", "1.5", "1001", "1&wait_ms=2", "²"])
def test_a_bad_wait_is_a_bad_request(wait: str) -> None:
    status, body = get(f"r=1&wait_ms={wait}")
    assert status == "400 Bad Request"
    assert b"wait_ms=0 to 1000" in body


def test_an_answer_waits_as_long_as_it_is_told_and_is_the_same() -> None:
    began = time.monotonic()
    assert get("r=17&wait_ms=40") == get("r=17&wait_ms=0") == get("r=17")
    assert time.monotonic() - began >= 0.04


def test_only_one_request_in_so_many_waits() -> None:
    waits = [n for n in range(300) if app.mixed(n) % 100 == 0]
    assert waits
    others = [n for n in range(20) if n not in waits]
    began = time.monotonic()
    assert all(get(f"r={n}&wait_ms=1000&one_in=100")[0] == "200 OK" for n in others)
    assert time.monotonic() - began < 10
    assert get(f"r={waits[0]}&wait_ms=100&one_in=100")[0] == "200 OK"
    assert time.monotonic() - began >= 0.1
    assert get("r=1&wait_ms=1&one_in=0")[0] == "400 Bad Request"


def test_whoever_waits_keeps_no_other_from_being_answered() -> None:
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(get, "r=1&wait_ms=1000") for _ in range(20)]
        status, _ = get("r=17")
        assert status == "200 OK"
        assert not any(one.done() for one in waiting)
        assert {one.result()[0] for one in waiting} == {"200 OK"}


def test_another_path_is_not_found() -> None:
    assert get("r=1", path="/other")[0] == "404 Not Found"


def test_head_has_no_body() -> None:
    assert get("r=1", method="HEAD") == ("200 OK", b"")


def test_a_file_with_waits_is_answered_after_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (("/", 0.2), ("/caf%C3%A9/b", 0.3), ("/fast", 0.1))
    waits = (("/", ((30, 1),)), ("/caf%C3%A9/b", ((0, 3), (1000, 1))))
    content.write_static_files(tmp_path, files, waits)
    pages = app.pages_in(tmp_path)
    monkeypatch.setattr(app, "PAGES", pages)
    began = time.monotonic()
    status, body = get("", path="/")
    assert time.monotonic() - began >= 0.03
    assert (status, body) == ("200 OK", (tmp_path / ".lab").read_bytes())
    # A server hands on a decoded path, byte by byte.
    assert set(pages) == {"/", "/café/b"}
    monkeypatch.setattr(app, "TURNS", iter([n for n in range(99) if app.mixed(n) % 4 < 3]))
    assert len(get("", path="/café/b".encode().decode("latin-1"))[1]) == 300
    assert get("", path="/fast")[0] == "404 Not Found"
    assert get("r=17")[0] == "200 OK"


def test_waits_come_as_often_as_their_weights_say() -> None:
    page = app.Page("a.lab", (1, 50, 900), (70, 95, 100))
    counts = Counter(page.wait_ms(turn) for turn in range(10_000))
    shares = {wait_ms: number / 10_000 for wait_ms, number in counts.items()}
    assert shares == pytest.approx({1: 0.70, 50: 0.25, 900: 0.05}, abs=0.015)
