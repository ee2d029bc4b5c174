"""`intop --help` shows every command under a heading, with a summary that is not cut."""

from collections.abc import Callable, Iterator

import click
import pytest

from intop.cli import HEADINGS, LONGEST_SUMMARY, cli

Call = Callable[..., tuple[int, str, str]]


def summaries(group: click.Group = cli, path: str = "intop") -> Iterator[tuple[str, str]]:
    """Yield the summary of each command, and of those below it."""
    for name, command in group.commands.items():
        yield f"{path} {name}", command.get_short_help_str(LONGEST_SUMMARY)
        if isinstance(command, click.Group):
            yield from summaries(command, f"{path} {name}")


def test_every_command_stands_under_one_heading() -> None:
    listed = [name for names in HEADINGS.values() for name in names]
    assert sorted(listed) == sorted(cli.commands)
    assert [command.name for command in cli.commands.values()] == list(cli.commands)


@pytest.mark.parametrize(("command", "summary"), [*summaries()])
def test_no_summary_is_cut(command: str, summary: str) -> None:
    assert summary, command
    assert not summary.endswith("...")


def test_help_has_all_headings_and_no_line_is_cut(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call("--help")
    assert code == 0
    assert [h for h in HEADINGS if f"\n{h}:\n" in out] == list(HEADINGS)
    assert "..." not in out.replace("COMMAND [ARGS]...", "")


@pytest.mark.parametrize(
    "name", ["doctor", "tune", "collect", "plan", "progress", "report", "train"]
)
def test_without_a_study_nobody_gets_the_lab(
    name: str, call: Call, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from intop.errors import UsageError

    monkeypatch.chdir(str(tmp_path))
    monkeypatch.delenv("INTOP_CONFIG", raising=False)
    with pytest.raises(UsageError, match=r"no intop\.toml in this folder.*intop init"):
        call(name)
