"""Secrets of a study in what commands print: whatever is typed, nobody reads them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.campaigns import STUDY
from intop.cli import cli, main

SECRET = "Ge%68eim+wort"
"""As it stands in a URL; a database gets DECODED."""
DECODED = "Geheim wort"

PLACE = "127.0.0.1:1/intop"
"""Nobody listens there."""
URLS = (
    f"postgresql://me:{SECRET}@{PLACE}",
    f"postgresql://me@{PLACE}?password={SECRET}",
    f"postgresql://me@{PLACE}?p%61ssword={SECRET}&connect_timeout=2",
    f"postgresql://me@{PLACE}?sslmode=require&sslpassword={SECRET}",
    f"postgresql://me@{PLACE}?passwd={SECRET}",
    f"postgresql://me@{PLACE}?options=-c%20app.key%3D{SECRET}",
    f"postgresql+psycopg://me:x@{SECRET}@{PLACE}",
    f"postgresql://me:{SECRET}/with?marks@{PLACE}",
    f"postgresql://me:{SECRET}@127.0.0.1:port/intop",
    f"mysql://me:{SECRET}@{PLACE}",
    f"postgresql+nosuch://me@{PLACE}?password={SECRET}",
    f"sqlite:////no/such/folder/x.db?password={SECRET}",
    f"host=127.0.0.1 port=1 user=me password={SECRET}",
    f"postgresql:me:{SECRET}@{PLACE}",
)

READING = (
    *(("report",), ("report", "--advice"), ("report", "--json"), ("progress",)),
    *(("progress", "--all"), ("progress", "--json"), ("compare", "x86", "arm")),
    *(("export", "trials"), ("models",), ("plan",), ("train",), ("search",)),
    *(("store", "check"), ("store", "vacuum"), ("store", "check", "--json")),
    *(("collect", "--dry-run"), ("tune", "--dry-run", "--json"), ("apply", "--dry-run")),
    *(("tune", "--new"), ("screen",), ("worker", "--until-idle", "0")),
)


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a server that comes back."""
    monkeypatch.setattr("intop.store.session.PATIENCE_S", 0.0)


@pytest.fixture
def printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., str]:
    """All that a command prints, as it is typed."""
    monkeypatch.chdir(tmp_path)

    def typed(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["intop", *words])
        with pytest.raises(SystemExit):
            main()
        out, err = capsys.readouterr()
        return out + err

    return typed


def write_study(folder: Path, store: str, more: str = "") -> None:
    text = STUDY.format(folder=folder)
    text = text.replace(f'store = "{folder}/mine.db"', f"store = {json.dumps(store)}\n{more}")
    (folder / "intop.toml").write_text(text)


@pytest.mark.parametrize("url", URLS)
def test_no_command_shows_a_secret_of_the_stores_url(
    printed: Callable[..., str], tmp_path: Path, url: str
) -> None:
    write_study(tmp_path, url)
    for words in READING:
        text = printed(*words)
        assert text
        assert "Traceback" not in text, words
        for secret in (SECRET, DECODED, "Geheim", "eim+wort", "eim wort"):
            assert secret not in text, (words, text)
    assert [path.name for path in tmp_path.iterdir()] == ["intop.toml"]


def test_no_command_shows_a_secret_of_a_url_that_was_typed(printed: Callable[..., str]) -> None:
    url = URLS[0]
    for words in (
        *(("store", "check", url), ("store", "copy", url, "x.db"), ("store", "copy", "x.db", url)),
        *(("store", "vacuum", url), ("report", "--advice", "--store", url)),
        *(("report", url), ("store", "check", "x.db", url), ("compare", "x86", url)),
        *(("store", "check", url.replace("://", ":/")), ("status", "--host", url)),
        ("status", "--host", f"root:{SECRET}@web.example"),
    ):
        text = printed(*words)
        assert text
        assert SECRET not in text, (words, text)


@pytest.mark.parametrize(
    "line",
    [
        f'url = "http://me:{SECRET}@10.0.0.2"',
        f'url = "http://me:{SECRET}/x@10.0.0.2"',
        f'url = "me:{SECRET}@10.0.0.2"',
        f'url = ["http://me:{SECRET}@10.0.0.2"]',
        f'password = "{SECRET}"',
        f'db = {{ sudo_password = "{SECRET}" }}',
        f'stub_status = "http://me:{SECRET}@127.0.0.1/"',
        f'link = {{ url = "http://me:{SECRET}@10.0.0.2" }}',
        f'load_balancer = {{ hostname = "root:{SECRET}@web" }}',
        f'load_balancer = {{ hostname = "web", sudo = "{SECRET}" }}',
        f'url = "//me:{SECRET}@10.0.0.2"',
        f'url = "https://{SECRET}@10.0.0.2"',
        f'static_paths = ["/x?sig={SECRET} "]',
        f'dynamic_path = "/x?token={SECRET}\'"',
    ],
)
def test_no_mistake_in_a_file_shows_a_secret(
    printed: Callable[..., str], tmp_path: Path, line: str
) -> None:
    write_study(tmp_path, "intop.db")
    with (tmp_path / "intop.toml").open("a") as file:
        file.write(f"\n[cluster.arm]\n{line}\n")
    text = printed("doctor")
    assert "cluster.arm" in text
    assert SECRET not in text, text


@pytest.mark.parametrize(
    "line",
    [
        f'headers = ["Private-Token: {SECRET}", "Private-Token: {SECRET}"]',
        f'headers = ["Api-Key:{SECRET}"]',
        f'headers = "Token: {SECRET}"',
        f'headers = ["Authorization {SECRET}"]',
        f'headers = {{ Authorization = "{SECRET}" }}',
        f'paths = {{ "/x?key={SECRET}" = 0 }}',
    ],
)
def test_no_mistake_in_a_load_shows_a_secret(
    printed: Callable[..., str], tmp_path: Path, line: str
) -> None:
    write_study(tmp_path, "intop.db")
    text = (tmp_path / "intop.toml").read_text()
    (tmp_path / "intop.toml").write_text(text.replace("[workload.slt]", f"[workload.slt]\n{line}"))
    text = printed("doctor")
    assert "workload.slt" in text
    assert SECRET not in text, text


def test_all_commands_are_swept() -> None:
    """Those that print the study's store, or may fail at it; the others touch no store."""
    swept = {words[0] for words in READING} | {"store"}
    apart = {
        *(
            "lab",
            "doctor",
            "completion",
            "status",
            "rollback",
            "init",
            "workload",
        ),  # without a store
        *("pilot", "refine", "verify", "explain", "causes", "contest", "across", "sweep", "soak"),
        *("transfer", "canary"),
        # ... and these open it as `screen` does.
    }
    assert set(cli.commands) == swept | apart
