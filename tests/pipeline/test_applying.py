"""Roll-outs on made-up hosts: who is measured, what stays, and where it stops and goes on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from fakes import FakeBench
from intop.cli import apply
from intop.domain.applied import Applied, Drift, StayingKey
from intop.domain.configuration import Configuration
from intop.domain.host_state import HostState
from intop.domain.persistent import Persistent
from intop.domain.rollout import HostStep, RolloutPlan
from intop.domain.trial import PlannedTrial
from intop.errors import IntopError, UsageError
from intop.pipeline import applying
from intop.pipeline.bench import Bench
from samples import DEPLOYMENT, VERDICT

NAMES = ("one", "two", "three")
FILE = "/etc/sysctl.d/99-zz-intop.conf"


@dataclass
class Fleet:
    """Three replicas; a deployment makes P99 so many times better on each."""

    bench: FakeBench
    gains: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(NAMES, 3.0))
    left: dict[str, tuple[Mapping[str, str], Any]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)

    def plan(self, **changes: Any) -> RolloutPlan:
        hosts = tuple(HostStep(host=name) for name in NAMES)
        return RolloutPlan(deployment=DEPLOYMENT, hosts=changes.get("hosts", hosts), rounds=4)

    def roll_out(self, **options: Any) -> list[tuple[str, str]]:
        context = self.bench.task.context
        done = applying.roll_out(context, options.pop("plan", self.plan()), **options)
        return [(host.host, host.outcome) for host in done.hosts]

    def on(self, number: int) -> FakeBench:
        name = NAMES[number]

        def latency(planned: PlannedTrial) -> int:
            noise = 1 + 0.01 * (planned.index % 3)
            gain = 1.0 if planned.configuration.is_default else self.gains[name]
            return round(20_000 * noise / gain)

        made = replace(self.bench, name=name, latency=latency, measured=[])
        vars(made).update(
            guard=SimpleNamespace(snapshot=dict.fromkeys(DEPLOYMENT.values, "")),
            leave=lambda configuration, about, file: self.left.update(
                {name: (configuration.values, file)}
            ),
            give_nginx_its_own=lambda: self.events.append(f"{name} given back"),
        )
        return made


@pytest.fixture
def fleet(bench: FakeBench, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    made = Fleet(bench)

    @contextmanager
    def opened(_: object, number: int, *, originals: bool) -> Iterator[FakeBench]:
        assert originals
        one = made.on(number)
        yield one
        made.events.append(f"{NAMES[number]} {len(one.measured)}")

    monkeypatch.setattr(applying, "bench", opened)
    return made


def test_host_by_host_with_rounds_of_its_own(fleet: Fleet) -> None:
    assert [(name, "applied") for name in NAMES] == fleet.roll_out()
    assert dict.fromkeys(NAMES, (DEPLOYMENT.values, None)) == fleet.left
    assert ["one 8", "two 8", "three 8"] == fleet.events
    plan = fleet.bench.task.store.plan(fleet.bench.task.subject, "apply")
    assert list(range(24)) == [place.index for place in plan]


@pytest.mark.parametrize(("stops_at", "untouched"), [("one", 2), ("two", 1)])
def test_a_host_without_a_gain_is_given_back_and_stops_it(
    fleet: Fleet, stops_at: str, untouched: int
) -> None:
    fleet.gains = {**fleet.gains, stops_at: 1.0}
    found = applying.roll_out(fleet.bench.task.context, fleet.plan())
    assert found.is_stopped
    assert untouched == len(found.untouched)
    assert stops_at not in fleet.left
    assert f"{stops_at} given back" in fleet.events
    # Asked again it is measured in fresh rounds, not judged by those that were decided on.
    fleet.gains = dict.fromkeys(NAMES, 3.0)
    assert (stops_at, "applied") in fleet.roll_out()


@pytest.mark.parametrize(("gain", "outcome"), [(1.0, "applied"), (0.5, "stopped")])
def test_no_loss_can_be_enough_and_a_loss_never_is(fleet: Fleet, gain: float, outcome: str) -> None:
    fleet.gains = dict.fromkeys(NAMES, gain)
    assert ("one", outcome) == fleet.roll_out(accept_no_loss=True)[0]


def test_one_that_was_killed_goes_on_where_it_was(fleet: Fleet) -> None:
    fleet.bench.dies_after = 3
    with pytest.raises(KeyboardInterrupt):
        fleet.roll_out()
    assert {} == fleet.left
    fleet.bench.dies_after = None
    fleet.roll_out()
    assert "one 5" == fleet.events[0]


def test_a_host_that_has_it_is_left_alone(fleet: Fleet) -> None:
    hosts = (HostStep(host="one", has_it=True, file=FILE), HostStep(host="two", file=FILE))
    done = applying.roll_out(fleet.bench.task.context, fleet.plan(hosts=hosts))
    assert [("one", "already"), ("two", "applied")] == [(h.host, h.outcome) for h in done.hosts]
    assert {FILE} == {host.file for host in done.hosts}
    assert ["two"] == list(fleet.left)
    path, text = fleet.left["two"][1]
    assert FILE == path
    assert "net.core.somaxconn = 64\n" in text


def test_with_a_problem_anywhere_no_host_is_touched(fleet: Fleet) -> None:
    hosts = (HostStep(host="one"), HostStep(host="two", problem="two: is gone"))
    with pytest.raises(IntopError, match="two: is gone"):
        fleet.roll_out(plan=fleet.plan(hosts=hosts))
    assert [] == fleet.events


def test_with_a_problem_on_one_architecture_the_other_one_is_not_touched(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither asked about nor begun."""
    hosts = (HostStep(host="two", problem="two: is gone"),)
    context = nullcontext(fleet.bench.task.context)
    monkeypatch.setattr(apply, "stored_context", lambda *_, **__: context)
    plans = [fleet.plan(), fleet.plan(hosts=hosts)]
    monkeypatch.setattr(applying, "plan_rollouts", lambda *_, **__: plans)
    with pytest.raises(IntopError, match="two: is gone"):
        apply.command(["--yes"], standalone_mode=False)
    assert ([], {}) == (fleet.events, fleet.left)


def test_a_key_that_is_left_out_by_now_is_refused_by_name(fleet: Fleet) -> None:
    ready: Any = SimpleNamespace(
        name="one",
        guard=SimpleNamespace(snapshot={}),
        probed=SimpleNamespace(refused={"net.core.somaxconn": "its risk is high"}),
    )
    with pytest.raises(UsageError, match=r"one: net\.core\.somaxconn is left out.*risk is high"):
        applying._check_guarded(ready, Configuration({"net.core.somaxconn": "1"}))


def test_nginx_gets_what_the_host_was_found_with_not_what_was_before_an_earlier_apply() -> None:
    done: list[object] = []
    ready: Any = SimpleNamespace(
        guard=SimpleNamespace(snapshot=VALUES, base={"a.b": "0"}, apply=done.append),
        _settle=lambda: done.append("nginx started"),
    )
    Bench.give_nginx_its_own(ready)
    assert [Configuration(VALUES), "nginx started"] == done


# What was seen before -----------------------------------------------------------------------------

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
        (HostState(holder="me", since="noon"), "", "lb: is held by me since noon"),
        (drifted("changed"), FILE, "a.b was changed by somebody else"),
        (drifted("lost"), FILE, ""),
        (HostState(applied=ON), "", "Say --persist to replace it"),
        (HostState(applied=replace(ON, file_is="missing")), "", ""),
    ],
)
def test_what_is_in_the_way_is_said_with_the_next_step(
    state: HostState, file: str, words: str
) -> None:
    problem = applying._problem("lb", state, Persistent() if file else None, file)
    assert words in problem
    assert bool(words) == bool(problem)


def test_a_file_of_that_name_that_no_apply_wrote_is_in_the_way() -> None:
    there = Persistent(files=(FILE,))
    assert "move it away" in applying._problem("lb", HostState(), there, FILE)
    assert "" == applying._problem("lb", HostState(applied=ON), there, FILE)


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
    assert expected == applying._has(state, values, file)


def test_without_a_gain_there_is_nothing_to_roll_out(bench: FakeBench) -> None:
    bench.task.store.put(bench.task.subject, replace(VERDICT, ratio_low=0.9))
    assert [] == applying.plan_rollouts(bench.task.context)


def test_hosts_are_not_changed_without_a_yes(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(UsageError, match="say --yes to do it"):
        apply._confirm([fleet.plan()], ["what is planned"], yes=False)
    assert "what is planned" in capsys.readouterr().err
    apply._confirm([fleet.plan()], [], yes=True)
