"""What deploying a key would do, and who else sets it."""

from dataclasses import replace

import pytest

from intop.domain.persistent import FILES, PROCPS_LAST, Persistent, Setting, our_file
from intop.domain.plan import HostPlan, PlannedKey, planned_key
from samples import DEPLOYMENT

RMEM, SOMAXCONN = DEPLOYMENT.changes
KEY, VALUE, DEFAULT = SOMAXCONN.key, SOMAXCONN.value, SOMAXCONN.default
FILE = our_file("/")


def conf(name: str, value: str) -> Setting:
    return Setting(KEY, value, f"/etc/sysctl.d/{name}:1", (FILES, name))


LAST = Setting(KEY, "9", "/etc/sysctl.conf:1", (PROCPS_LAST, "sysctl.conf"))


def planned(now: str | None = DEFAULT, obstacle: str = "", **persistent: object) -> PlannedKey:
    return planned_key(SOMAXCONN, now, obstacle, Persistent(**persistent), FILE)  # type: ignore[arg-type]


def rivals(key: PlannedKey) -> list[tuple[str, str]]:
    return [(rival.setting.value, rival.wins) for rival in key.rivals]


def test_our_file_is_below_the_root() -> None:
    assert "/etc/sysctl.d/99-zz-intop.conf" == FILE
    assert "/srv/lb/etc/sysctl.d/99-zz-intop.conf" == our_file("/srv/lb")


@pytest.mark.parametrize(
    ("now", "obstacle", "outcome", "as_measured"),
    [
        (DEFAULT, "", "changes", True),
        (VALUE, "", "is so", True),
        (VALUE, "can't be written", "is so", True),
        ("1024", "", "changes", False),
        (DEFAULT, "can't be written", "impossible", True),
        (None, "this kernel doesn't have it", "impossible", False),
    ],
)
def test_what_setting_a_key_would_do(
    now: str | None, obstacle: str, outcome: str, as_measured: bool
) -> None:
    key = planned(now, obstacle)
    assert (outcome, as_measured, ()) == (key.outcome, key.is_as_measured, key.rivals)


def test_of_those_before_ours_the_last_is_named() -> None:
    key = planned(settings=(conf("1.conf", "1"), conf("2.conf", "2")))
    assert [("2", "never")] == rivals(key)


def test_of_those_after_ours_the_last_wins() -> None:
    key = planned(settings=(conf("1.conf", "1"), conf("99-zzz.conf", "2"), LAST))
    assert [("9", "at boot")] == rivals(key)
    key = planned(settings=(conf("99-zzz.conf", "2"), replace(LAST, value=VALUE)))
    assert ([], [VALUE]) == (rivals(key), [setting.value for setting in key.agreeing])


def test_what_only_a_reload_sets_is_told_apart() -> None:
    key = planned(settings=(conf("1.conf", VALUE),), on_reload=(LAST,))
    assert [("9", "on reload")] == rivals(key)
    assert 1 == len(key.agreeing)
    key = planned(settings=(LAST,), on_reload=(LAST,))
    assert [("9", "at boot")] == rivals(key)


def test_our_own_file_is_no_rival_and_hides_none() -> None:
    ours = Setting(KEY, "7", f"{FILE}:3", (FILES, FILE.rpartition("/")[2]))
    key = planned(settings=(conf("1.conf", "1"), ours))
    assert ([("1", "never")], ours) == (rivals(key), key.filed)


def test_a_host_counts_what_would_not_last() -> None:
    keys = (
        planned(settings=(conf("1.conf", "1"),)),
        planned(on_reload=(LAST,)),
        planned_key(RMEM, RMEM.value, "", Persistent(), FILE),
    )
    host = HostPlan(file=FILE, keys=keys)
    assert 1 == host.conflicts
    assert (2, 1, 0) == (
        len(host.of("changes")),
        len(host.of("is so")),
        len(host.of("impossible")),
    )


def test_a_partner_that_is_set_after_ours_is_a_rival() -> None:
    change = replace(SOMAXCONN, key="vm.dirty_bytes", value="65536", default="0")
    theirs = Setting("vm.dirty_ratio", "20", "/etc/sysctl.d/99-zzz.conf:1", (FILES, "99-zzz.conf"))
    early = replace(theirs, turn=(FILES, "10-theirs.conf"))
    found = [
        rivals(planned_key(change, "0", "", Persistent(settings=(setting,)), FILE))
        for setting in (theirs, early)
    ]
    assert [[("20", "at boot")], []] == found
