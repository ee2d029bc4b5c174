"""What status and rollback say, line by line."""

from dataclasses import replace

import pytest

from intop.domain.applied import Applied, Drift, StayingKey
from intop.domain.host_state import (
    Answer,
    ForeignChange,
    HostState,
    KeyChange,
    KeyValue,
    Rollback,
    RolledBack,
    Unrestored,
)
from intop.inspect.host_states_view import at_stake, rollbacks, states
from kit.printed import cells, shown

HELD = HostState(
    holder="root@controller (process 812)",
    since="2026-11-21T15:00:00Z",
    lease_s=30.0,
    silent_s=3.0,
    is_watched=True,
    changed=(
        KeyChange(key="net.ipv4.tcp_rmem", before="4096 131072 6291456", now="4096 8192 8192"),
    ),
)
COMMAND = "printf '%s' '60' > /proc/sys/net/ipv4/tcp_fin_timeout   # " + "long " * 40
FOREIGN = ForeignChange(key="net.ipv4.tcp_fin_timeout", left="11", now="12", command=COMMAND)


def said(**facts: object) -> Answer[HostState]:
    return Answer(name="lb", folder="/var/lib/intop", result=HostState(**facts))  # type: ignore[arg-type]


def test_a_line_for_each_host_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    answers = [
        Answer(name="one", folder="/var/lib/intop", result=HostState()),
        Answer(name="two", folder="/var/lib/intop", result=HELD),
        Answer[HostState](name="three", error="three: no SSH connection to root@192.0.2.1:22"),
    ]
    lines = shown(capsys, *states(answers)).splitlines()
    assert lines[:3] == [
        "one: not held (/var/lib/intop)",
        (
            "two: held by root@controller (process 812) since 2026-11-21T15:00:00Z, lease 30 s, "
            "last sign of life 3 s ago, watchdog alive"
        ),
        "three: no SSH connection to root@192.0.2.1:22",
    ]


def test_what_the_host_does_not_say_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, *states([said(holder="x@y")])) == "lb: held by x@y\n"
    assert "watchdog" not in shown(capsys, *states([said(holder="x@y", silent_s=1.0)]))


def test_a_dead_watchdog_stands_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert "WATCHDOG DEAD" in shown(capsys, *states([said(holder="x@y", is_watched=False)]))


def test_keys_that_differ_stand_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, *states([Answer(name="two", result=HELD)]))
    assert cells(out, "host") == ["host", "key", "before", "now"]
    (row,) = [line for line in out.splitlines() if "tcp_rmem" in line]
    assert row.split() == [
        "two",
        "net.ipv4.tcp_rmem",
        *["4096", "131072", "6291456", "4096", "8192", "8192"],
    ]


def test_a_host_that_nobody_holds_and_that_is_not_as_before_names_the_next_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(capsys, *states([said(changed=HELD.changed)]))
    assert "lb: not held (/var/lib/intop); not all of its values are its own: intop rollback" in out


def test_foreign_changes_and_reports_keep_their_commands_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = "2026-11-21T15:00:00Z: no sign of life from x@y; this host was restored " + "z" * 200
    lines = shown(capsys, *states([said(foreign=(FOREIGN,), reports=(report,))])).splitlines()
    assert lines[1:] == [
        (
            "lb: net.ipv4.tcp_fin_timeout was changed by somebody else: intop left 11, it is 12 "
            f"now. To have it as before, type there as root: {COMMAND}"
        ),
        f"lb: {report}",
    ]


@pytest.mark.parametrize(
    ("state", "count"),
    [
        (HostState(), 0),
        (HELD, 1),
        (HostState(foreign=(FOREIGN,)), 1),
        (HostState(reports=("x",)), 0),
    ],
)
def test_at_stake_are_sessions_and_foreign_values(state: HostState, count: int) -> None:
    assert count == len(at_stake(Answer(name="lb", result=state)))


def test_nothing_is_at_stake_on_a_host_that_is_silent() -> None:
    assert at_stake(Answer(name="lb", error="lb: gone")) == []


def rolled(done: RolledBack, held: HostState = HELD) -> list[Answer[Rollback]]:
    return [Answer(name="lb", folder="/x", result=Rollback(done=done, held=held))]


def test_a_rollback_lists_what_it_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    key = KeyValue(key="net.core.somaxconn", value="4096")
    out = shown(capsys, *rollbacks(rolled(RolledBack(outcome="restored", restored=(key,)))))
    assert out == "lb: as before, 1 key put back\n  net.core.somaxconn = 4096\n"


def test_a_rollback_lists_what_it_could_not_do_with_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lost = Unrestored(key="net.core.somaxconn", value="4096", command="echo 4096 > somewhere")
    done = RolledBack(outcome="partly", foreign=(FOREIGN,), unrestored=(lost,))
    lines = shown(capsys, *rollbacks(rolled(done))).splitlines()
    assert lines[0] == "lb: NOT as before, 0 keys put back"
    assert lines[1].endswith(COMMAND)
    assert lines[2].startswith("  net.core.somaxconn could not be set to 4096. Type there as root:")
    assert lines[2].endswith("echo 4096 > somewhere")
    assert lines[3] == "  After that, run again: intop rollback"


@pytest.mark.parametrize(
    ("done", "message"),
    [
        (RolledBack(outcome="nothing"), "lb: nothing to roll back in /x"),
        (RolledBack(outcome="held"), "lb: left alone: held by root@controller (process 812) since"),
    ],
)
def test_a_host_that_was_not_touched_says_why(
    capsys: pytest.CaptureFixture[str], done: RolledBack, message: str
) -> None:
    assert message in shown(capsys, *rollbacks(rolled(done)))


def test_a_host_that_could_not_be_asked_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    gone: list[Answer[Rollback]] = [Answer(name="lb", error="lb: no SSH connection")]
    assert shown(capsys, *rollbacks(gone)) == "lb: no SSH connection\n"


@pytest.mark.parametrize(
    ("done", "as_before"),
    [
        (RolledBack(outcome="restored"), True),
        (RolledBack(outcome="nothing"), True),
        (RolledBack(outcome="held"), False),
        (RolledBack(outcome="partly"), False),
        (RolledBack(outcome="restored", foreign=(FOREIGN,)), False),
    ],
)
def test_a_host_is_as_before_when_nothing_is_missing(done: RolledBack, as_before: bool) -> None:
    assert as_before is Rollback(done=done).is_as_before


# What is applied ----------------------------------------------------------------------------------

FILE = "/etc/sysctl.d/99-zz-intop.conf"
APPLIED = Applied(
    about={
        "since": "2026-11-22T02:10:00Z",
        "study": "shop",
        "campaign": "3",
        "arch": "x86",
        "workload": "slt",
    },
    keys=(StayingKey(key="net.core.somaxconn", before="4096", left="64", now="128"),),
    file=FILE,
    file_is="ours",
)
CHANGED = Drift(kind="changed", where="net.core.somaxconn", detail="is 128, was left at 64")
WHAT = "x86 slt of study shop, campaign 3, applied since 2026-11-22T02:10:00Z, 1 key"


def test_one_line_says_what_is_applied_and_whether_it_has_drifted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = [
        said(applied=APPLIED),
        said(applied=APPLIED, drift=(CHANGED,)),
        said(applied=APPLIED, holder="me"),
    ]
    out = shown(capsys, *states(result))
    assert out.splitlines()[:3] == [
        f"lb: {WHAT}, for good by {FILE}: as applied",
        f"lb: DRIFT: net.core.somaxconn changed ({WHAT}, for good by {FILE})",
        f"lb: held by me; {WHAT}, for good by {FILE}: not looked at while it is held",
    ]
    (head,) = [line for line in out.splitlines() if "applied key" in line]
    assert head.split() == ["host", "applied", "key", "before", "then", "now"]
    assert "lb: DRIFT: net.core.somaxconn: is 128, was left at 64\n" in out
    assert at_stake(result[0]) == []
    assert at_stake(result[1]) == ["lb: net.core.somaxconn: is 128, was left at 64"]


@pytest.mark.parametrize(
    ("file_is", "words"),
    [("removed", "removed"), ("edited", "was left alone"), ("stuck", "can't be removed")],
)
def test_what_became_of_the_file_is_said(
    capsys: pytest.CaptureFixture[str], file_is: str, words: str
) -> None:
    done = RolledBack(outcome="restored", file=FILE, file_is=file_is)  # type: ignore[arg-type]
    answer = Answer(name="lb", folder="/var/lib/intop", result=Rollback(done=done))
    (line,) = [line for line in shown(capsys, *rollbacks([answer])).splitlines() if FILE in line]
    assert words in line


def test_what_many_hosts_have_alike_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    other = replace(APPLIED, keys=(replace(APPLIED.keys[0], now="64"),))
    fleet = [Answer(name=f"lb{n}", result=HostState(applied=other)) for n in range(20)]
    fleet[3] = Answer(name="lb3", result=HostState(applied=APPLIED))
    out = shown(capsys, *states(fleet))
    rows = [line.split() for line in out.splitlines() if "net.core.somaxconn" in line]
    assert rows[0][:7] == ["lb0,", "lb1,", "lb2,", "lb4", "and", "15", "more"]
    assert rows[1] == ["lb3", "net.core.somaxconn", "4096", "64", "128"]
    assert len(rows) == 2
