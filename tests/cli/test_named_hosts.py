"""Hosts that --host names: by the study's settings where they are the study's."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from intop.command.hosts import named_hosts
from intop.domain.cluster import HostAddress
from intop.errors import ConfigurationError, UsageError
from intop.resources import shipped

EXAMPLE = (shipped("configs") / "cluster.example.toml").read_text()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with click.Context(click.Command("status")):
        yield


@pytest.fixture
def study() -> Path:
    path = Path("intop.toml")
    text = EXAMPLE.replace('state_dir = "/var/lib/intop"', 'state_dir = "/srv/intop"')
    path.write_text(text)
    return path


def named(word: str, **options: Any) -> HostAddress:
    (host,) = named_hosts([word], None, **options)
    return host


@pytest.mark.parametrize(
    "word", ["192.0.2.20", "x86-balancer", "192.0.2.20:22", "intop@192.0.2.20"]
)
@pytest.mark.usefixtures("study")
def test_a_host_of_the_study_has_its_settings(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host = named(word)
    assert (host.name, host.hostname, host.user) == ("x86-balancer", "192.0.2.20", "intop")
    assert (host.state_dir, host.sudo) == ("/srv/intop", True)
    assert f"{word} is x86-balancer of intop.toml" in capsys.readouterr().err


@pytest.mark.usefixtures("study")
def test_options_come_before_the_study() -> None:
    host = named("192.0.2.20", state_dir="/x", sudo="ask")
    assert (host.state_dir, host.sudo, host.name) == ("/x", "ask", "x86-balancer")


@pytest.mark.usefixtures("study")
def test_another_user_has_other_keys_and_no_sudo() -> None:
    host = named("root@192.0.2.20", state_dir=None)
    assert (host.user, host.sudo, host.key_file) == ("root", False, None)
    assert (host.name, host.state_dir) == ("x86-balancer", "/srv/intop")


@pytest.mark.usefixtures("study")
def test_a_port_and_a_jump_host_are_the_studys() -> None:
    host = named("arm-balancer.example")
    assert host.port == 2222
    assert host.jump is not None
    assert named("arm-balancer.example:22").name == "arm-balancer.example:22"


@pytest.mark.parametrize("words", [["web9"], ["192.0.2.10"], ["192.0.2.20:2222"]])
@pytest.mark.usefixtures("study")
def test_another_host_is_itself(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A load generator is no host that is tuned."""
    (host,) = named_hosts(words, None)
    assert (host.name, host.state_dir) == (words[0], "/var/lib/intop")
    assert capsys.readouterr().err == ""


def test_two_balancers_behind_one_address_need_a_name(study: Path) -> None:
    text = study.read_text().replace("arm-balancer.example", "192.0.2.20")
    study.write_text(text)
    with pytest.raises(UsageError, match=r"may be x86-balancer, arm-balancer of intop\.toml"):
        named("192.0.2.20")
    assert named("192.0.2.20:2222").name == "arm-balancer"
    assert named("x86-balancer").state_dir == "/srv/intop"


def test_a_lab_that_is_not_up_is_left_out() -> None:
    Path("intop.toml").write_bytes((shipped("configs") / "lab.toml").read_bytes())
    assert named("web1").hostname == "web1"


def test_a_study_that_cannot_be_read_keeps_nobody_from_a_host(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study.write_text("nonsense")
    assert named("192.0.2.20").state_dir == "/var/lib/intop"
    assert (
        "intop.toml can't be read, so --host does without its settings" in capsys.readouterr().err
    )


def test_a_study_that_config_names_must_be_one(study: Path) -> None:
    study.write_text("nonsense")

    @click.command()
    @click.option("--config", type=click.Path(path_type=Path))
    def command(config: Path | None) -> None:
        named_hosts(["lb"], config)

    with pytest.raises(ConfigurationError):
        command(["--config", str(study)], standalone_mode=False)
    with pytest.raises(UsageError, match="no such file"):
        command(["--config", "x.toml"], standalone_mode=False)


def test_without_a_study_it_is_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    assert named("root@web1:23", state_dir="/x").state_dir == "/x"
    assert capsys.readouterr().err == ""
