"""What deploying a key would do, and who else sets it."""

from dataclasses import replace
from typing import Any

import pytest

from builders.results import DEPLOYMENT
from intop.deploy.result import HostPlan, Plan, PlannedKey, has_applied, planned_key, problems_of
from intop.domain.applied import Applied, Drift, StayingKey
from intop.domain.host_state import Answer, HostState
from intop.domain.persistent import FILES, PROCPS_LAST, Persistent, Setting, our_file

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
    assert FILE == "/etc/sysctl.d/99-zz-intop.conf"
    assert our_file("/srv/lb") == "/srv/lb/etc/sysctl.d/99-zz-intop.conf"


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
    assert rivals(key) == [("2", "never")]


def test_of_those_after_ours_the_last_wins() -> None:
    key = planned(settings=(conf("1.conf", "1"), conf("99-zzz.conf", "2"), LAST))
    assert rivals(key) == [("9", "at boot")]
    key = planned(settings=(conf("99-zzz.conf", "2"), replace(LAST, value=VALUE)))
    assert (rivals(key), [setting.value for setting in key.agreeing]) == ([], [VALUE])


def test_what_only_a_reload_sets_is_told_apart() -> None:
    key = planned(settings=(conf("1.conf", VALUE),), on_reload=(LAST,))
    assert rivals(key) == [("9", "on reload")]
    assert len(key.agreeing) == 1
    key = planned(settings=(LAST,), on_reload=(LAST,))
    assert rivals(key) == [("9", "at boot")]


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
    assert host.conflicts == 1
    assert (
        len(host.of("changes")),
        len(host.of("is so")),
        len(host.of("impossible")),
    ) == (2, 1, 0)


def test_a_partner_that_is_set_after_ours_is_a_rival() -> None:
    change = replace(SOMAXCONN, key="vm.dirty_bytes", value="65536", default="0")
    theirs = Setting("vm.dirty_ratio", "20", "/etc/sysctl.d/99-zzz.conf:1", (FILES, "99-zzz.conf"))
    early = replace(theirs, turn=(FILES, "10-theirs.conf"))
    result = [
        rivals(planned_key(change, "0", "", Persistent(settings=(setting,)), FILE))
        for setting in (theirs, early)
    ]
    assert result == [[("20", "at boot")], []]


def test_everything_in_the_way_on_any_host_is_named() -> None:
    lacking = HostPlan(file=FILE, keys=(planned(obstacle="can't be written"), planned()))
    plan = Plan(
        deployment=DEPLOYMENT,
        rounds=4,
        hosts=(
            Answer(name="one", result=HostPlan(file=FILE, keys=(planned(),))),
            Answer(name="two", result=replace(lacking, problems=("is held",))),
            Answer(name="three", error="three: is gone"),
            # Also where the value is the same: it has to be set, and put back.
            Answer(name="four", result=HostPlan(file=FILE, keys=(planned(VALUE, "left out"),))),
            Answer(name="five", result=replace(lacking, has_it=True)),
        ),
    )
    assert plan.problems == (
        "two: is held",
        f"two: {KEY} can't be set to {VALUE}: can't be written",
        "three: is gone",
        f"four: {KEY} can't be set to {VALUE}: left out",
    )


# What a host has ----------------------------------------------------------------------------------

VALUES = {"a.b": "1"}
ON = Applied(
    about={"study": "lab"},
    keys=(StayingKey(key="a.b", before="0", left="1", now="1"),),
    file=FILE,
    file_is="ours",
)


def drifted(kind: Any) -> HostState:
    return HostState(applied=ON, drift=(Drift(kind=kind, where="a.b", detail="is 7"),))


@pytest.mark.parametrize(
    ("state", "file", "words"),
    [
        (HostState(), FILE, ""),
        (HostState(holder="me", since="noon"), "", "is held by me since noon"),
        (drifted("changed"), FILE, "a.b was changed by somebody else"),
        (drifted("lost"), FILE, ""),
        (HostState(applied=ON), "", "Say --persist to replace it"),
        (HostState(applied=replace(ON, file_is="missing")), "", ""),
    ],
)
def test_what_is_in_the_way_is_said_with_the_next_step(
    state: HostState, file: str, words: str
) -> None:
    problems = problems_of(state, Persistent(), file)
    assert int(bool(words)) == len(problems)
    assert words in "".join(problems)


def test_a_file_of_that_name_that_no_apply_wrote_is_in_the_way() -> None:
    there = Persistent(files=(FILE,))
    (problem,) = problems_of(HostState(), there, FILE)
    assert "move it away" in problem
    assert problems_of(HostState(applied=ON), there, FILE) == ()
    assert problems_of(HostState(), there, "") == ()


@pytest.mark.parametrize(
    ("state", "values", "file", "expected"),
    [
        (HostState(), VALUES, "", False),
        (HostState(applied=ON), VALUES, FILE, True),
        (HostState(applied=ON), VALUES, "", False),
        (HostState(applied=ON), {"a.b": "2"}, FILE, False),
        (HostState(applied=ON), {"c.d": "2"}, FILE, False),
        (drifted("lost"), VALUES, FILE, False),
        (drifted("overridden"), VALUES, FILE, True),
    ],
)
def test_a_host_has_it_when_nothing_differs(
    state: HostState, values: dict[str, str], file: str, expected: bool
) -> None:
    assert has_applied(state, values, file) == expected
