"""Which of several settings of a key takes effect."""

import pytest

from intop.domain.persistent import FILES, REREAD, TUNED, Persistent, Setting
from intop.domain.sysctl_lines import canonical_key, is_glob

PATH = "/etc/sysctl.d/99-zz-intop.conf"


def conf(name: str, value: str, turn: int = FILES, key: str = "net.a.x") -> Setting:
    return Setting(key, value, f"/etc/sysctl.d/{name}:1", (turn, name))


PROFILE = Setting("net.a.x", "t", "TuneD profile web, /etc/tuned/web/tuned.conf:4", (TUNED, ""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("net.ipv4.tcp_rmem", "net.ipv4.tcp_rmem"),
        ("net/ipv4/tcp_rmem", "net.ipv4.tcp_rmem"),
        ("net.ipv4.conf.eth0/5.x", "net.ipv4.conf.eth0/5.x"),
        ("net/ipv4/conf/eth0.5/x", "net.ipv4.conf.eth0/5.x"),
        ("word", "word"),
        ("", ""),
    ],
)
def test_a_key_is_shown_with_dots(text: str, expected: str) -> None:
    assert canonical_key(text) == expected
    assert canonical_key(expected) == expected


def test_a_setting_knows_its_file() -> None:
    assert conf("a, b.conf", "1").file == "/etc/sysctl.d/a, b.conf"
    assert PROFILE.file == "/etc/tuned/web/tuned.conf"
    assert [conf("b.conf", "1").is_tuned, PROFILE.is_tuned] == [False, True]


def test_the_last_one_wins() -> None:
    result = Persistent(settings=(conf("1.conf", "1"), conf("2.conf", "2")))
    assert result.settings[1] == result.winner("net.a.x")
    assert result.winner("net.a.y") is None


def test_a_file_that_is_not_there_yet_has_its_place() -> None:
    early, late = conf("99-a.conf", "1"), conf("99-zzz.conf", "2")
    result = Persistent(settings=(early, late, PROFILE))
    assert (late, PROFILE) == result.after("net.a.x", PATH)
    assert result.after("net.a.y", PATH) == ()
    again = conf("99-a.conf", "1", REREAD), conf("99-zzz.conf", "2", REREAD)
    result = Persistent(settings=(early, late, PROFILE, *again), rereads=True)
    assert again[1:] == result.after("net.a.x", PATH)


def test_a_glob_is_never_after_a_file_that_names_the_key() -> None:
    result = Persistent(settings=(conf("99-zzz.conf", "2", key="net.a.*"),))
    assert is_glob(result.settings[0].key)
    assert result.settings[0] == result.winner("net.a.x")
    assert result.after("net.a.x", PATH) == ()
    assert result.winner("net.a.x.y") is None
