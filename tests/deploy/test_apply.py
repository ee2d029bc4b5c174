"""Roll-outs on made-up hosts: who is measured, what stays, and where it stops and goes on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from builders.results import DEPLOYMENT, VERDICT
from builders.testbeds import FakeTestbed
from builders.trials import HOSTS, METRICS
from intop.deploy import apply, apply_command
from intop.deploy.result import HostPlan, Plan, planned_key
from intop.domain.configuration import Configuration
from intop.domain.host_state import Answer
from intop.domain.persistent import Persistent
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.errors import IntopError, UsageError
from intop.run import cluster_testbed, opening
from intop.run.cluster_testbed import ClusterTestbed

NAMES = ("one", "two", "three")
FILE = "/etc/sysctl.d/99-zz-intop.conf"
OWN = {change.key: change.default for change in DEPLOYMENT.changes}
KEYS = tuple(planned_key(c, c.default, "", Persistent(), FILE) for c in DEPLOYMENT.changes)
HOST = HostPlan(file=FILE, keys=KEYS)
DONE = replace(HOST, has_it=True)
HELD = replace(HOST, problems=("is held by me",))
LACKING = replace(HOST, keys=(KEYS[0], replace(KEYS[1], obstacle="this kernel doesn't have it")))


def planned_on(hosts: Mapping[str, HostPlan], *, persist: bool = False) -> Plan:
    answers = tuple(Answer(name=name, result=host) for name, host in hosts.items())
    return Plan(deployment=DEPLOYMENT, hosts=answers, rounds=4, persist=persist)


@dataclass
class Fleet:
    """Three replicas; a deployment makes P99 so many times better on each."""

    testbed: FakeTestbed
    gains: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(NAMES, 3.0))
    left: dict[str, tuple[Mapping[str, str], Any]] = field(default_factory=dict)
    cpu: Mapping[str, float] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    snapshots: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def plan(self, **hosts: HostPlan) -> Plan:
        return planned_on(hosts or dict.fromkeys(NAMES, HOST))

    def roll_out(self, **options: Any) -> list[tuple[str, str]]:
        context = self.testbed.task.context
        done = apply.roll_out(context, options.pop("plan", self.plan()), **options)
        return [(host.host, host.outcome) for host in done.hosts]

    def on(self, number: int) -> FakeTestbed:
        name = NAMES[number]

        def latency(planned: PlannedTrial) -> int:
            noise = 1 + 0.01 * (planned.index % 3)
            gain = 1.0 if planned.configuration.is_default else self.gains[name]
            return round(20_000 * noise / gain)

        made = replace(self.testbed, name=name, latency=latency, measured=[])
        trial = made.trial

        def busy(planned: PlannedTrial, *rest: Any) -> Trial:
            result = trial(planned, *rest)
            if planned.configuration.is_default or name not in self.cpu:
                return result
            lb = replace(METRICS, cpu=self.cpu[name])
            return replace(result, metrics={**HOSTS, "lb": lb})

        made.trial = busy  # type: ignore[method-assign,assignment]
        vars(made).update(
            guard=SimpleNamespace(value_before=self.snapshots.get(name, OWN).get),
            leave=lambda configuration, about, file: self.left.update(
                {name: (configuration.values, file)}
            ),
            give_server_its_own=lambda: self.events.append(f"{name} given back"),
        )
        return made


@pytest.fixture
def fleet(testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    made = Fleet(testbed)

    @contextmanager
    def opened(_: object, number: int, *, originals: bool) -> Iterator[FakeTestbed]:
        assert originals
        one = made.on(number)
        yield one
        made.events.append(f"{NAMES[number]} {len(one.measured)}")

    monkeypatch.setattr(opening, "cluster_testbed", opened)
    return made


def test_host_by_host_with_rounds_of_its_own(fleet: Fleet) -> None:
    assert [(name, "applied") for name in NAMES] == fleet.roll_out()
    assert dict.fromkeys(NAMES, (DEPLOYMENT.values, None)) == fleet.left
    assert fleet.events == ["one 8", "two 8", "three 8"]
    plan = fleet.testbed.task.store.plan(fleet.testbed.task.subject, "apply")
    assert list(range(24)) == [place.index for place in plan]


@pytest.mark.parametrize(("stops_at", "untouched"), [("one", 2), ("two", 1)])
def test_a_host_without_a_gain_is_given_back_and_stops_it(
    fleet: Fleet, stops_at: str, untouched: int
) -> None:
    fleet.gains = {**fleet.gains, stops_at: 1.0}
    result = apply.roll_out(fleet.testbed.task.context, fleet.plan())
    assert result.is_stopped
    assert untouched == len(result.untouched)
    assert stops_at not in fleet.left
    assert f"{stops_at} given back" in fleet.events
    # Asked again it is measured in fresh rounds, not judged by those that were decided on.
    fleet.gains = dict.fromkeys(NAMES, 3.0)
    assert (stops_at, "applied") in fleet.roll_out()


@pytest.mark.parametrize(("gain", "outcome"), [(1.0, "applied"), (0.5, "stopped")])
def test_no_loss_can_be_enough_and_a_loss_never_is(fleet: Fleet, gain: float, outcome: str) -> None:
    fleet.gains = dict.fromkeys(NAMES, gain)
    assert ("one", outcome) == fleet.roll_out(accept_no_loss=True)[0]


@pytest.mark.parametrize("accept_no_loss", [True, False])
def test_a_host_that_breaks_a_guardrail_stops_it_unless_that_was_accepted(
    fleet: Fleet, accept_no_loss: bool
) -> None:
    fleet.cpu = {"two": METRICS.cpu + 0.2}
    result = apply.roll_out(fleet.testbed.task.context, fleet.plan(), accept_no_loss=accept_no_loss)
    assert [(h.host, h.outcome) for h in result.hosts] == [("one", "applied"), ("two", "stopped")]
    assert result.hosts[1].verdict is not None
    assert result.hosts[1].verdict.short == "no gain: it costs CPU"
    accepted = replace(fleet.plan(), accept_costs=True)
    assert ("two", "applied") in fleet.roll_out(plan=accepted)


@pytest.mark.parametrize(
    ("accept_no_loss", "accept_costs", "outcome"),
    [(True, False, "stopped"), (False, True, "stopped"), (True, True, "applied")],
)
def test_no_loss_is_not_enough_where_a_guardrail_is_broken(
    fleet: Fleet, accept_no_loss: bool, accept_costs: bool, outcome: str
) -> None:
    fleet.gains = dict.fromkeys(NAMES, 1.0)
    fleet.cpu = {"one": METRICS.cpu + 0.2}
    plan = replace(fleet.plan(), accept_costs=accept_costs)
    assert ("one", outcome) == fleet.roll_out(plan=plan, accept_no_loss=accept_no_loss)[0]


def test_a_hosts_verdict_is_not_the_campaigns(fleet: Fleet) -> None:
    task = fleet.testbed.task
    task.store.put(task.subject, VERDICT)
    fleet.roll_out()
    assert task.store.get(task.subject, Verdict) == VERDICT


def test_one_that_was_killed_goes_on_where_it_was(fleet: Fleet) -> None:
    fleet.testbed.dies_after = 3
    with pytest.raises(KeyboardInterrupt):
        fleet.roll_out()
    assert fleet.left == {}
    fleet.testbed.dies_after = None
    fleet.roll_out()
    assert fleet.events[0] == "one 5"


def test_a_host_that_has_it_is_left_alone(fleet: Fleet) -> None:
    plan = planned_on({"one": DONE, "two": HOST}, persist=True)
    done = apply.roll_out(fleet.testbed.task.context, plan)
    assert [(h.host, h.outcome) for h in done.hosts] == [("one", "already"), ("two", "applied")]
    assert {host.file for host in done.hosts} == {FILE}
    assert list(fleet.left) == ["two"]
    path, text = fleet.left["two"][1]
    assert path == FILE
    assert "net.core.somaxconn = 64\n" in text


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (HELD, "three: is held by me"),
        (LACKING, "three: net.core.somaxconn can't be set to 64: this kernel doesn't have it"),
        (None, "three: the network is gone"),
    ],
    ids=["held", "obstacle", "silent"],
)
def test_with_a_problem_anywhere_no_host_is_touched(
    fleet: Fleet, last: HostPlan | None, words: str
) -> None:
    gone: Answer[HostPlan] = Answer(name="three", error="three: the network is gone")
    plan = fleet.plan(one=HOST, two=HELD)
    answer = gone if last is None else Answer(name="three", result=last)
    plan = replace(plan, hosts=(*plan.hosts, answer))
    with pytest.raises(IntopError) as error:
        fleet.roll_out(plan=plan)
    message = ["nothing was touched on any host:", "two: is held by me", words]
    assert message == str(error.value).splitlines()
    assert (fleet.events, fleet.left) == ([], {})


def test_with_a_problem_on_one_architecture_the_other_one_is_not_touched(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plans are shown, and neither is asked about or begun."""
    result = {"x86": fleet.plan(), "arm": fleet.plan(two=LACKING)}

    @contextmanager
    def made(**_: object) -> Iterator[Any]:
        yield fleet.testbed.task.context, result

    monkeypatch.setattr(apply_command, "_planned", made)
    with pytest.raises(IntopError, match=r"two: net\.core\.somaxconn can't be set"):
        apply_command.command(["--yes"], standalone_mode=False)
    assert (fleet.events, fleet.left) == ([], {})
    assert "IMPOSSIBLE  net.core.somaxconn: this kernel" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("snapshot", "now"),
    [({**OWN, "net.core.somaxconn": "7"}, "is 7 now"), ({}, "is left out now")],
)
def test_a_host_that_changes_while_it_waits_is_left_as_it_is(
    fleet: Fleet, snapshot: dict[str, str], now: str
) -> None:
    fleet.snapshots["two"] = snapshot
    with pytest.raises(IntopError, match=f"two: net.* when it was planned, and {now}"):
        fleet.roll_out()
    assert list(fleet.left) == ["one"]
    assert fleet.events == ["one 8"]


def test_a_plan_for_review_is_not_applied(fleet: Fleet) -> None:
    with pytest.raises(UsageError, match="for review only"):
        fleet.roll_out(plan=replace(fleet.plan(), for_review=True))
    assert fleet.events == []


@pytest.mark.parametrize(
    "option", ["--persist", "--winner", "--accept-costs", "--rounds=4", "--arch=x86"]
)
def test_what_a_plan_in_a_file_says_is_not_said_again(option: str) -> None:
    with pytest.raises(
        UsageError, match=r"plan\.json says what is to be done: leave --.* out here"
    ):
        apply_command.command(["plan.json", option], standalone_mode=False)


def test_a_file_that_is_not_there_is_named(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match=r"nosuch\.json: can't be read"):
        apply_command.command([str(tmp_path / "nosuch.json")], standalone_mode=False)


def test_nginx_gets_what_the_host_was_found_with_not_what_was_before_an_earlier_apply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[object] = []
    monkeypatch.setattr(cluster_testbed, "restart", lambda _: done.append("nginx started"))
    ready: Any = SimpleNamespace(
        guard=SimpleNamespace(as_found=Configuration({"a.b": "1"}), apply=done.append),
        rig=None,
    )
    ClusterTestbed.give_server_its_own(ready)
    assert [Configuration({"a.b": "1"}), "nginx started"] == done


def test_without_a_gain_there_is_nothing_to_roll_out(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    testbed.task.store.put(testbed.task.subject, replace(VERDICT, ratio_low=0.9))
    context = nullcontext(testbed.task.context)
    monkeypatch.setattr(apply_command, "stored_context", lambda *_, **__: context)
    with pytest.raises(SystemExit) as ended:
        apply_command.command([], standalone_mode=False)
    assert ended.value.code == 3
    assert "there is nothing to apply" in capsys.readouterr().out


def test_hosts_are_not_changed_without_a_yes(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(UsageError, match="say --yes to do it"):
        apply_command._confirm([fleet.plan()], yes=False)
    apply_command._confirm([fleet.plan()], yes=True)
    apply_command._confirm([fleet.plan(one=DONE)], yes=False)
