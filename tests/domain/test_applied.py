"""What has become of an applied host, key by key."""

from dataclasses import replace

import pytest

from intop.domain.applied import (
    Applied,
    Drift,
    NginxFileState,
    StayingFile,
    StayingKey,
    drift_of,
    overruled,
)
from intop.domain.persistent import FILES, PROCPS_LAST, TUNED, Persistent, Setting

FILE = "/etc/sysctl.d/99-zz-intop.conf"
KEY = StayingKey(key="net.core.somaxconn", before="4096", left="64", now="64")
APPLIED = Applied(about={"study": "lab"}, keys=(KEY,), file=FILE, file_is="ours")


def kinds(result: tuple[Drift, ...]) -> list[str]:
    return [drift.kind for drift in result]


@pytest.mark.parametrize(
    ("now", "expected"), [("64", []), ("128", ["changed"]), ("4096", ["lost"]), ("", ["changed"])]
)
def test_a_key_is_as_left_changed_or_lost(now: str, expected: list[str]) -> None:
    applied = replace(APPLIED, keys=(replace(KEY, now=now),))
    assert kinds(drift_of(applied, None)) == expected
    assert kinds(drift_of(applied, None, is_held=True)) == []


def test_a_lost_key_says_whether_it_was_a_reboot() -> None:
    lost = replace(APPLIED, keys=(replace(KEY, now="4096"),))
    assert "somebody has set it back" in drift_of(lost, None)[0].detail
    assert "was started anew" in drift_of(replace(lost, was_rebooted=True), None)[0].detail


@pytest.mark.parametrize("file_is", ["edited", "missing"])
def test_the_file_is_looked_at_also_while_the_host_is_held(file_is: str) -> None:
    applied = replace(APPLIED, file_is=file_is)  # type: ignore[arg-type]
    assert [file_is] == kinds(drift_of(applied, None, is_held=True))


@pytest.mark.parametrize(
    ("state", "expected"),
    [("ours", []), ("own", ["lost"]), ("edited", ["edited"]), ("missing", ["missing"])],
)
def test_a_file_of_nginx_is_as_left_lost_edited_or_missing(
    state: NginxFileState, expected: list[str]
) -> None:
    applied = replace(APPLIED, nginx_files=(StayingFile(path="/etc/nginx.conf", state=state),))
    result = drift_of(applied, None)
    assert kinds(result) == expected
    assert all(drift.where == "/etc/nginx.conf" for drift in result)
    # What a session writes there meanwhile is no drift.
    assert drift_of(applied, None, is_held=True) == ()


@pytest.mark.parametrize(
    ("settings", "reloaded", "expected"),
    [
        ([("99-aa.conf", "128")], [], []),
        ([("zz-last.conf", "128")], [], ["overridden"]),
        ([("zz-last.conf", "64")], [], []),
        ([("zz-a.conf", "128"), ("zz-b.conf", "64")], [], []),
        ([], [("sysctl.conf", "128")], ["overridden"]),
    ],
)
def test_what_takes_effect_after_our_file_overrides_it_with_another_value(
    settings: list[tuple[str, str]], reloaded: list[tuple[str, str]], expected: list[str]
) -> None:
    def made(names: list[tuple[str, str]], turn: int) -> tuple[Setting, ...]:
        return tuple(
            Setting(KEY.key, value, f"/etc/{name}:7", (turn, name)) for name, value in names
        )

    persistent = Persistent(settings=made(settings, FILES), on_reload=made(reloaded, PROCPS_LAST))
    result = drift_of(APPLIED, persistent)
    assert kinds(result) == expected
    assert all("/etc/" in drift.detail and ":7 sets it to 128" in drift.detail for drift in result)
    # Without a file of ours there is nothing to override.
    assert drift_of(replace(APPLIED, file="", file_is=None), persistent) == ()


@pytest.mark.parametrize(("value", "expected"), [("20", ["overridden"]), ("0", [])])
def test_a_partner_that_is_set_later_takes_the_key_back(value: str, expected: list[str]) -> None:
    later = Setting("vm.dirty_ratio", value, "/etc/sysctl.d/99-zzz.conf:1", (FILES, "99-zzz.conf"))
    key = StayingKey(key="vm.dirty_bytes", before="0", left="65536", now="65536")
    applied = replace(APPLIED, keys=(key,))
    result = overruled(applied, Persistent(settings=(later,)))
    assert [drift.kind for drift in result] == expected


LATER = Setting(KEY.key, "128", "/etc/sysctl.d/99-zzz.conf:1", (FILES, "99-zzz.conf"))
TUNED_LATER = replace(
    LATER, place="TuneD profile web, /etc/tuned/web/tuned.conf:4", turn=(TUNED, "")
)


@pytest.mark.parametrize(
    ("setting", "expected", "detail"),
    [
        (replace(LATER, value="64   # same"), [], ""),
        (replace(LATER, value="0x40"), [], ""),
        (replace(LATER, value="0100"), [], ""),
        (replace(LATER, value="100"), ["overridden"], ":1 sets it to 100 after our file, at each"),
        (replace(LATER, value="010"), ["overridden"], "sets it to 8 after our file, at each boot"),
        (
            replace(LATER, value="'64'"),
            ["overridden"],
            "says \"'64'\" after our file, at each boot",
        ),
        (replace(LATER, value="", drops=True), ["overridden"], "makes systemd drop the key"),
        (replace(TUNED_LATER, value=">32"), [], ""),
        (replace(TUNED_LATER, value="<128"), [], ""),
        (replace(TUNED_LATER, value=">128"), ["overridden"], "sets it to 128 after our file"),
        (replace(TUNED_LATER, value="'64'"), [], ""),
        (replace(TUNED_LATER, doubt="only TuneD evaluates that"), ["not known"], "only TuneD eval"),
        (replace(TUNED_LATER, value="64", doubt="on some machines only"), [], ""),
    ],
)
def test_what_comes_after_our_file_is_read_as_the_kernel_reads_it(
    setting: Setting, expected: list[str], detail: str
) -> None:
    drifts = drift_of(APPLIED, Persistent(settings=(setting,), by_systemd=True))
    assert kinds(drifts) == expected
    assert all(detail in drift.detail for drift in drifts)


def test_systemd_writes_only_the_last_line_and_procps_each() -> None:
    refused = replace(LATER, value="'64'")
    lines = (replace(LATER, value="64"), refused)
    assert kinds(drift_of(APPLIED, Persistent(settings=lines, by_systemd=True))) == ["overridden"]
    assert kinds(drift_of(APPLIED, Persistent(settings=lines))) == []


def test_a_profile_that_only_tuned_evaluates_is_no_certainty() -> None:
    unknown = "TuneD's profile web includes ${f:exec:x}, which only TuneD evaluates"
    (drift,) = drift_of(APPLIED, Persistent(unknown=unknown))
    assert (drift.kind, drift.where) == ("not known", "TuneD")
