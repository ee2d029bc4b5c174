"""`intop store`, as it is typed."""

import json
from pathlib import Path

from click.testing import CliRunner

from builders.campaigns import STUDY, just_begun, sql
from intop.cli import cli
from kit.postgres import Server


def typed(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli, [str(word) for word in words])
    return done.exit_code, done.stdout if done.exception is None else f"{done.exception}"


def study(folder: Path) -> Path:
    path = folder / "intop.toml"
    path.write_text(STUDY.format(folder=folder))
    just_begun(path)
    return path


def test_a_campaign_is_copied_into_postgresql_and_checked_there(
    tmp_path: Path, postgres_server: Server
) -> None:
    study(tmp_path)
    url = postgres_server.database()
    code, output = typed("store", "copy", tmp_path / "mine.db", url, "--campaign", 1)
    assert (code, "copied as 1" in output) == (0, True)
    code, output = typed("store", "copy", tmp_path / "mine.db", url, "--json")
    assert (code, [one["was_there"] for one in json.loads(output)]) == (0, [True])
    code, output = typed("store", "check", url)
    assert (
        code,
        output.strip().endswith("1 campaign, 1 place in plans, 0 trials, 0 results: sound"),
    ) == (0, True)


def test_check_and_vacuum_are_of_the_studys_store(tmp_path: Path) -> None:
    path = study(tmp_path)
    assert typed("store", "check", "-c", path)[0] == 0
    code, output = typed("store", "vacuum", "-c", path)
    assert (code, output.startswith(f"{tmp_path}/mine.db: ")) == (0, True)
    sql(tmp_path / "mine.db", "update planned set role = 'boss'")
    assert typed("store", "check", "-c", path)[1] == "1"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    study(tmp_path)
    store = tmp_path / "mine.db"
    assert typed("store", "copy", store, "x.db", "--campaign", 7)[1] == f"{store} has no campaign 7"
    assert not Path("x.db").exists()
    assert typed("store", "copy", store, store)[1] == "FROM and TO are the same store"
    assert "there is no store" in typed("store", "check", tmp_path / "nosuch.db")[1]
    for command in ("check", "vacuum"):
        assert "the store has no name" in typed("store", command, "")[1]
    assert "there is no store" in typed("store", "vacuum", tmp_path / "nosuch.db")[1]
    assert not (tmp_path / "nosuch.db").exists()
