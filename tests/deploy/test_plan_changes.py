"""What a plan rests on, and how a difference is told."""

from dataclasses import replace
from typing import Any

import pytest

from builders.results import DEPLOYMENT
from intop.deploy.plan import changes
from intop.deploy.result import FileEdit, HostPlan, Plan, planned_key
from intop.domain.applied import Applied, StayingKey
from intop.domain.host_state import Answer
from intop.domain.persistent import FILES, Persistent, Setting, our_file

FILE = our_file("/")
RMEM, SOMAXCONN = DEPLOYMENT.changes
KEY = SOMAXCONN.key
KEYS = tuple(planned_key(c, c.default, "", Persistent(), FILE) for c in DEPLOYMENT.changes)
RIVAL = Persistent(settings=(Setting(SOMAXCONN.key, "9", "/etc/sysctl.d/a.conf:1", (FILES, "a")),))
OURS = Persistent(settings=(Setting(SOMAXCONN.key, "7", f"{FILE}:2", (FILES, "99-zz-intop.conf")),))
APPLIED = Applied(
    about={"arch": "x86", "workload": "slt", "study": "lab", "campaign": "1", "since": "noon"},
    keys=(StayingKey(key="a.b", before="0", left="1", now="1"),),
    file=FILE,
    file_is="ours",
)
HOST = HostPlan(file=FILE, keys=KEYS, machine="x86_64", kernel="6.1.0", applied=APPLIED)


def plan(*hosts: HostPlan | None, **deployment: Any) -> Plan:
    answers = tuple(
        Answer(name=f"lb{n}", result=host, error="" if host else f"lb{n}: is gone")
        for n, host in enumerate(hosts, start=1)
    )
    return Plan(deployment=replace(DEPLOYMENT, **deployment), hosts=answers, rounds=4)


def key(**made: Any) -> HostPlan:
    """The host with another somaxconn."""
    arguments = {"now": SOMAXCONN.default, "obstacle": "", "persistent": Persistent(), **made}
    return replace(HOST, keys=(KEYS[0], planned_key(SOMAXCONN, file=FILE, **arguments)))


def left(**made: Any) -> HostPlan:
    """The host with another record of an earlier apply."""
    return replace(HOST, applied=replace(APPLIED, **made))


STAYING = APPLIED.keys[0]
AGAIN = {**APPLIED.about, "since": "later"}
WAS = "x86 slt of study lab, campaign 1, since noon (a.b)"
WAS_APPLIED = f"applied: {WAS} in the plan"
OTHER = "/etc/sysctl.d/a.conf:1 to 9 (at boot)"


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (key(now="128"), f"{KEY}: 4096 in the plan, 128 now"),
        (key(now=None), f"{KEY}: 4096 in the plan, no value now"),
        (key(obstacle="x"), f"{KEY}: what is in its way: nothing in the plan, x now"),
        (key(persistent=RIVAL), f"{KEY}: what else sets it: nothing in the plan, {OTHER} now"),
        (key(persistent=OURS), f"{KEY}: our file: nothing in the plan, {FILE}:2 has 7 now"),
        (replace(HOST, kernel="6.2.0"), "kernel: 6.1.0 in the plan, 6.2.0 now"),
        (replace(HOST, machine="arm"), "machine: x86_64 in the plan, arm now"),
        (replace(HOST, applied=None), f"{WAS_APPLIED}, nothing now"),
        (left(about=AGAIN), f"{WAS_APPLIED}, {WAS.replace('noon', 'later')} now"),
        (left(file_is="edited"), f"{FILE}: ours in the plan, edited now"),
        (left(keys=(replace(STAYING, now="5"),)),
         "a.b, which an apply has left: now: 1 in the plan, 5 now"),
        (replace(HOST, edits=(FileEdit(path="/n.conf", diff="+a on;"),)),
         "/n.conf: other lines would change there than in the plan"),
        (None, "is gone"),
    ],
)  # fmt: skip
def test_each_difference_of_a_host_is_a_line_with_both_values(
    now: HostPlan | None, line: str
) -> None:
    assert changes(plan(HOST, HOST), plan(HOST, now)) == [f"lb2: {line}"]


def test_nothing_changed_is_no_difference() -> None:
    assert changes(plan(HOST, HOST), plan(HOST, HOST)) == []
    # What sets the same value, and what is only to be known, is no matter.
    agreeing = Setting(SOMAXCONN.key, SOMAXCONN.value, "/etc/sysctl.d/a.conf:1", (FILES, "a"))
    now = replace(key(persistent=Persistent(settings=(agreeing,))), notes=("a note",))
    assert changes(plan(HOST), plan(now)) == []


def test_a_host_that_has_it_by_now_is_no_difference() -> None:
    """So a roll-out that was interrupted goes on by the same file."""
    done = replace(key(now=SOMAXCONN.value), has_it=True, applied=replace(APPLIED, about=AGAIN))
    assert changes(plan(HOST, HOST), plan(done, HOST)) == []


def test_a_host_that_was_silent_and_answers_now_is_a_difference() -> None:
    (line,) = changes(plan(None), plan(HOST))
    assert "lb1: could not be asked then" in line


def test_other_hosts_are_a_difference() -> None:
    line = "x86 slt: load balancers: lb1 in the plan, lb1, lb2 now"
    assert [line] == changes(plan(HOST), plan(HOST, HOST))


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({"origin": "smallest set"}, "origin: winner in the plan, smallest set now"),
        ({"campaign": 2}, "campaign: 1 in the plan, 2 now"),
        (
            {"changes": (RMEM, replace(SOMAXCONN, value="65"))},
            f"{KEY}: set to: 64 in the plan, 65 now",
        ),
        (
            {"changes": (RMEM, replace(SOMAXCONN, default="1"))},
            f"{KEY}: the default: 4096 in the plan, 1 now",
        ),
    ],
)
def test_another_result_is_a_difference(now: dict[str, Any], line: str) -> None:
    assert changes(plan(HOST), plan(HOST, **now)) == [f"x86 slt: {line}"]
