"""The live page: what it shows, and to whom."""

import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from builders.campaigns import STUDY, begun
from intop.config.study import load_study
from intop.errors import IntopError
from intop.report.live import HOST, REFRESH_S, LivePage, serve
from kit.browser import chromium


@pytest.fixture
def page(tmp_path: Path) -> LivePage:
    path = tmp_path / "intop.toml"
    path.write_text(STUDY.format(folder=tmp_path))
    return LivePage(study=load_study(path), arch=None, port=free_port())


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        return int(listening.getsockname()[1])


def asked(page: LivePage, host: str = "", path: str = "/") -> tuple[str, str]:
    """The status and the text of an answer."""
    statuses: list[str] = []

    def start(status: str, _: Any) -> None:
        statuses.append(status)

    name = host or f"{HOST}:{page.port}"
    text = b"".join(page({"HTTP_HOST": name, "PATH_INFO": path}, start)).decode()
    return statuses[0], text


def test_trials_show_as_they_come_in(page: LivePage, tmp_path: Path) -> None:
    assert "no campaign yet" in asked(page)[1]
    begun(tmp_path, ["ok", "ok", "failed"])
    status, text = asked(page)
    assert status == "200 OK"
    assert f'http-equiv="refresh" content="{REFRESH_S}"' in text
    assert "3/8" in text.replace(" ", "")
    assert "<svg" in text
    assert "lowest so far" in text


def test_only_this_machine_by_its_own_name_gets_it(page: LivePage) -> None:
    assert asked(page, "evil.example:80")[0] == "403 Forbidden"
    assert asked(page, path="/etc/passwd")[0] == "404 Not Found"
    assert asked(page, f"localhost:{page.port}")[0] == "200 OK"


def test_a_store_that_cannot_be_read_is_said(page: LivePage, tmp_path: Path) -> None:
    (tmp_path / "mine.db").write_text("something else " * 100)
    status, text = asked(page)
    assert status.startswith("503")
    assert "can't be opened" in text


def test_a_port_that_is_taken_is_one_error(page: LivePage) -> None:
    with serving(page), pytest.raises(IntopError, match="Name another port: --port N"):
        serve(page)


def test_a_browser_shows_it_and_asks_for_nothing_else(page: LivePage, tmp_path: Path) -> None:
    begun(tmp_path, ["ok"] * 5)
    with serving(page), chromium(tmp_path / "profile") as browser:
        opened = browser.open(page.url)
        assert opened.evaluate("document.title") == "mine: campaign 1"
        seen = opened.seen()
        assert [url for url in seen.requests if url not in (page.url, "data:,")] == []
        assert seen.errors == []


@contextmanager
def serving(page: LivePage) -> Iterator[None]:
    """The page on its port, until the test ends."""
    import waitress

    server = waitress.create_server(page, host=HOST, port=page.port, threads=1)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        with urllib.request.urlopen(page.url, timeout=20) as answer:
            assert answer.status == 200
        yield
    finally:
        server.close()
        thread.join(timeout=20)
