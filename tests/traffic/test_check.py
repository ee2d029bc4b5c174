"""A load beside the log that it was learned from, and logs that lie on a host."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from intop.domain.nginx.access_logs import AccessLog
from intop.errors import CommandError, UsageError
from intop.traffic import command, host_log
from intop.traffic.access_log import Lines
from intop.traffic.agreement import agreement
from intop.traffic.log_format import format_of
from intop.traffic.profile import Profile, profile_of
from intop.traffic.workload_text import HEAD, places
from kit.local_host import LocalHost

FORMAT = '$msec $connection $connection_requests "$request" $status $body_bytes_sent $request_time'
MIX = {"/a": 0.7, "/b": 0.2, "/c": 0.1}


def log_of(path: Path, *, mix: dict[str, float] = MIX, rate: float = 50, seed: int = 1) -> Path:
    """A minute of independent requests, each connection with ten of them."""
    rng = random.Random(seed)
    at, lines = 1_700_000_000.0, []
    while at < 1_700_000_060:
        at += rng.expovariate(rate)
        (asked,) = rng.choices(list(mix), list(mix.values()))
        n = len(lines)
        request = f'"GET {asked} HTTP/1.1" 200 1000 0.010'
        lines.append(f"{at:.3f} {n // 10} {n % 10 + 1} {request}\n")
    path.write_text("".join(lines))
    return path


def profile(path: Path) -> Profile:
    chosen = format_of(FORMAT)
    return profile_of((place, chosen.parse(text)) for place, text in Lines([str(path)]))


def test_two_samples_of_one_traffic_agree_but_for_chance(tmp_path: Path) -> None:
    first = profile(log_of(tmp_path / "a.log"))
    result = agreement(first, profile(log_of(tmp_path / "b.log", seed=2)))
    rows = {row.quantity: row for row in result.compared}
    for quantity in ("rate", "requests of a connection", "mean time of a request", "mean answer"):
        assert rows[quantity].ratio == pytest.approx(1, abs=0.05), quantity
    assert rows["index of dispersion over 1 s"].ratio == pytest.approx(1, abs=0.6)
    assert result.mix_difference < 4 * result.mix_by_chance
    assert 0.005 < result.mix_by_chance < 0.02
    assert agreement(first, first).mix_difference == 0


def test_another_mix_and_rate_are_seen(tmp_path: Path) -> None:
    first = profile(log_of(tmp_path / "a.log"))
    other = log_of(tmp_path / "b.log", mix={"/a": 0.4, "/b": 0.2, "/d": 0.4}, rate=100)
    result = agreement(first, profile(other))
    assert result.compared[0].ratio == pytest.approx(2, abs=0.1)
    assert result.mix_difference == pytest.approx(0.4, abs=0.03)
    assert result.shares["/d"][0] == 0


def test_rare_paths_count_for_the_one_that_stands_for_them(tmp_path: Path) -> None:
    often = {f"/often-{n}.html": 5.0 for n in range(HEAD)}
    rare = {f"/rare-{n}.css": 0.5 for n in range(200)}
    first = profile(log_of(tmp_path / "a.log", mix=often | rare))
    assert len(first.paths) > HEAD + 50
    by_place = {place: path for path, place in reversed(places(first).items())}
    stands_for_all = by_place[HEAD]
    assert stands_for_all.endswith(".css")
    load = log_of(tmp_path / "b.log", mix=often | {stands_for_all: 100.0}, seed=2)
    result = agreement(first, profile(load))
    assert result.shares[stands_for_all] == pytest.approx((1 / 3, 1 / 3), abs=0.03)
    assert result.mix_difference < 2 * result.mix_by_chance


@pytest.mark.usefixtures("a_narrow_file")
def test_the_command_shows_and_draws_both(tmp_path: Path) -> None:
    logs = [str(log_of(tmp_path / name, seed=n)) for n, name in enumerate(("a.log", "b.log"))]
    words = ["check", *logs, "--format", FORMAT, "--load-format", FORMAT]
    shown = CliRunner().invoke(command.group, words)
    assert shown.exit_code == 0, shown.output
    assert "index of dispersion over 0.1 s" in shown.stdout
    assert "The mixes of paths differ in " in " ".join(shown.stdout.split())
    drawn = CliRunner().invoke(command.group, [*words, "--figures", str(tmp_path / "f"), "--json"])
    assert json.loads(drawn.stdout)["mix_difference"] < 0.1
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["a-log-and-b-log-mixes.svg"]


# Logs on a host -----------------------------------------------------------------------------------


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def having(*logs: AccessLog) -> None:
        monkeypatch.setattr(command, "connecting", lambda _: lambda _address: LocalHost())
        monkeypatch.setattr(host_log, "logs_on", lambda _: logs)

    return having


def test_the_hosts_own_log_is_read_by_its_own_format(
    tmp_path: Path, on_host: Callable[..., None]
) -> None:
    log = log_of(tmp_path / "a.log")
    on_host(AccessLog(str(log), "timed", FORMAT))
    result = CliRunner().invoke(command.group, ["learn", "--host", "root@web1"])
    assert result.exit_code == 0, result.output
    assert "[workload.learned]" in result.stdout
    assert "requests_per_connection = 10" in result.stdout
    assert f"format: as root@web1 has it: {FORMAT}" in result.stderr
    named = CliRunner().invoke(command.group, ["learn", "--host", "root@web1", str(log)])
    assert named.stdout == result.stdout
    of_lab = CliRunner().invoke(command.group, ["learn", "--host", "root@web1", "--lab", "x86"])
    assert "[cluster.x86.files]" in of_lab.stdout


def test_a_named_log_is_read_where_nginx_shows_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shows_none(_: object) -> object:
        raise CommandError("web1", "no nginx runs there that shows its configuration")

    monkeypatch.setattr(command, "connecting", lambda _: lambda _address: LocalHost())
    monkeypatch.setattr(host_log, "logs_on", shows_none)
    log = str(log_of(tmp_path / "a.log"))
    words = ["learn", "--host", "root@web1", "--format", FORMAT]
    named = CliRunner().invoke(command.group, [*words, log])
    assert "[workload.learned]" in named.stdout
    alone = CliRunner().invoke(command.group, ["learn", "--host", "root@web1"])
    assert "no nginx runs there" in str(alone.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name a log, or the host that has it by --host"),
        (("--sudo", "yes", "a.log"), "--sudo belongs to --host"),
        (("--host", "web1"), "nginx writes several access logs. Name one of them: /a.log, /b.log"),
    ],
)
def test_what_names_no_log_is_refused(
    on_host: Callable[..., None], words: tuple[str, ...], message: str
) -> None:
    on_host(AccessLog("/a.log", "a", FORMAT), AccessLog("/b.log", "a", FORMAT))
    with pytest.raises(UsageError) as refusal:
        command.group.main(["learn", *words], standalone_mode=False)
    assert message in str(refusal.value)
