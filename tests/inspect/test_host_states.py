"""status and rollback of many hosts; the real thing is in test_rollback.py."""

from dataclasses import replace

import pytest

from intop.config.study import Study, load_study
from intop.domain.cluster import HostAddress, LabSpec
from intop.domain.host_state import HostState, Rollback, RolledBack
from intop.errors import LabError, UnreachableError, UsageError
from intop.hosts import guard
from intop.hosts.host import Host
from intop.inspect.host_states import roll_back, states, tuned_hosts
from intop.lab import cluster as lab
from intop.resources import shipped
from kit.local_host import LocalHost

ADDRESSES = [
    HostAddress(name=name, role="load-balancer", hostname=f"{name}.example") for name in "abc"
]


def connect(address: HostAddress) -> Host:
    if address.name == "b":
        raise UnreachableError("b", "the network is gone")
    host = LocalHost("0\n")  # the user's id
    host.address = address
    return host


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Every host is held; `force` of each rollback by name."""
    result: list[tuple[str, bool]] = []

    def rollback(host: Host, *, force: bool) -> RolledBack:
        result.append((host.address.name, force))
        return RolledBack(outcome="restored")

    monkeypatch.setattr(guard, "status", lambda host: HostState(holder=host.address.name))
    monkeypatch.setattr(guard, "rollback", rollback)
    return result


@pytest.mark.usefixtures("asked")
def test_a_host_that_is_gone_does_not_hide_the_others() -> None:
    one, two, three = states(ADDRESSES, connect)
    assert (HostState(holder="a"), "") == (one.result, one.error)
    assert (two.result, two.error) == (None, "b: the network is gone")
    assert ("c", "/var/lib/intop", HostState(holder="c")) == (
        three.name,
        three.folder,
        three.result,
    )


@pytest.mark.parametrize("force", [True, False])
def test_every_host_is_rolled_back_as_asked(asked: list[tuple[str, bool]], force: bool) -> None:
    answers = roll_back(ADDRESSES, connect, force=force)
    assert [("a", force), ("c", force)] == sorted(asked)
    assert [a.result is not None and a.result.is_as_before for a in answers] == [True, False, True]


@pytest.mark.usefixtures("asked")
def test_who_keeps_a_host_from_being_rolled_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done = RolledBack(outcome="held")
    monkeypatch.setattr(guard, "rollback", lambda _, *, force: done)
    (answer,) = roll_back(ADDRESSES[:1], connect, force=False)
    assert Rollback(done=done, held=HostState(holder="a")) == answer.result


def test_a_host_that_is_named_twice_is_asked_once(asked: list[tuple[str, bool]]) -> None:
    assert len(roll_back([ADDRESSES[0]] * 3, connect, force=False)) == 1
    assert asked == [("a", False)]


def test_no_hosts_no_answers() -> None:
    assert states([], connect) == []


def test_who_is_no_root_is_told_so_in_place_of_nothing_to_roll_back() -> None:
    def as_user(address: HostAddress) -> Host:
        host = LocalHost("1000\n")
        host.address = address
        return host

    (answer,) = roll_back(ADDRESSES[:1], as_user, force=False)
    assert answer.result is None
    assert (
        "a: is reached without root, and only root can see who holds it: use sudo" in answer.error
    )


# Of a study ---------------------------------------------------------------------------------------


@pytest.fixture
def fleet() -> Study:
    return load_study(shipped("configs") / "cluster.example.toml")


def test_of_a_study_only_load_balancers_are_asked(fleet: Study) -> None:
    result, missing = tuned_hosts(fleet, None, pytest.fail)
    assert ([a.name for a in result], missing) == (["x86-balancer", "arm-balancer"], [])
    assert [a.name for a in tuned_hosts(fleet, "arm", pytest.fail)[0]] == ["arm-balancer"]


def test_all_replicas_are_asked(fleet: Study) -> None:
    (one,) = fleet.clusters["x86"]
    assert not isinstance(one, LabSpec)
    other = replace(one, load_balancer=replace(one.load_balancer, name="another"))
    study = replace(fleet, clusters={"x86": (one, other)})
    result, _ = tuned_hosts(study, None, pytest.fail)
    assert [a.name for a in result] == ["x86-balancer", "another"]


def test_an_architecture_that_the_study_lacks_is_refused(fleet: Study) -> None:
    with pytest.raises(UsageError, match="has no cluster for arm"):
        tuned_hosts(replace(fleet, clusters={"x86": fleet.clusters["x86"]}), "arm", pytest.fail)


def test_a_lab_that_is_not_up_does_not_hide_other_hosts(
    fleet: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_up(name: str) -> None:
        raise LabError(f"lab {name} is not up")

    monkeypatch.setattr(lab, "cluster", not_up)
    study = replace(fleet, clusters={**fleet.clusters, "arm": (LabSpec(name="gone", arch="arm"),)})
    result, (missing,) = tuned_hosts(study, None, pytest.fail)
    assert [a.name for a in result] == ["x86-balancer"]
    assert (missing.name, missing.result, missing.error) == ("lab gone", None, "lab gone is not up")
    # One that the study can do without is left out, unless it was asked for.
    study = replace(study, optional=frozenset({"arm"}))
    heard: list[str] = []
    assert tuned_hosts(study, None, heard.append)[1] == []
    assert "arm is optional in " in heard[0]
    assert "lab gone is not up" in heard[0]
    assert [missing] == tuned_hosts(study, "arm", pytest.fail)[1]
