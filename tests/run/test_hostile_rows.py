"""A store in which somebody else writes rows, under a worker whose host only notes what it gets."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders.trials import CONDITIONS, trial
from intop.domain.configuration import Configuration
from intop.errors import HostError
from intop.run import worker
from intop.store import Subject
from intop.store.documents import document_of
from kit.worker_site import (
    LINGER,
    PORTS,
    PROBING,
    Broken,
    Site,
    check,
)

pytestmark = pytest.mark.timeout(600)

# Each kind of row ---------------------------------------------------------------------------------


def changed(**changes: Any) -> Callable[[Site], dict[str, Any]]:
    """A job whose request has these fields of a workload."""

    def columns(site: Site) -> dict[str, Any]:
        document = json.loads(document_of(site.request()))
        document["workload"] |= changes
        return {"request": json.dumps(document)}

    return columns


def asked(**changes: Any) -> Callable[[Site], dict[str, Any]]:
    """A job whose request has these fields."""

    def columns(site: Site) -> dict[str, Any]:
        return {"request": json.dumps(json.loads(document_of(site.request())) | changes)}

    return columns


def refusal(**values: str) -> Callable[[Site], dict[str, Any]]:
    def columns(site: Site) -> dict[str, Any]:
        named = {key.replace("__", "."): value for key, value in values.items()}
        return asked(configuration={"values": named})(site) | {"kind": "refusal"}

    return columns


def of_plan(**place: Any) -> Callable[[Site], dict[str, Any]]:
    return lambda site: {"kind": "trial", "planned_id": site.plan(**place)}


def of_columns(**values: Any) -> Callable[[Site], dict[str, Any]]:
    return lambda _: values


def of_another_plan(site: Site) -> dict[str, Any]:
    return {"kind": "trial", "planned_id": site.plan(arch="arm")}


HOSTILE: dict[str, tuple[Callable[[Site], dict[str, Any]], str]] = {
    "rate": (changed(rate_rps=151), r"slt: rate_rps is 151.0 where .* and 150.0 in "),
    "no rate": (changed(rate_rps=1e12), "job .* is not as this .*: workload: rate_rps: Input sh"),
    "connections": (
        changed(connections=10**9),
        "job .* is not as this .*: workload: connectio",
    ),
    "duration": (changed(duration_s=3600), "slt: duration_s is 3600 where it was asked for, and 2"),
    "script": (changed(script="/etc/evil.lua"), "slt: script is 'evil' where .* and '' in "),
    "paths": (changed(paths=["/a\r\nX: y"]), "job .* is not as this .*: workload: paths: 0: "),
    "headers": (
        changed(clients=[{"headers": ["A: b\r\nHost: evil"]}]),
        "job .* is not as this intop writes it: workload: clients: 0: headers: 0: ",
    ),
    "name": (changed(name="dlt"), "slt: name is 'dlt' where"),
    "tunes": (asked(tunes=["nginx", "kernel", "all"]), "job .* is not as this intop writes it: "),
    "no tunes": (asked(tunes=[]), "asked is to tune nothing, and tunes in .study. of "),
    "pilot": (
        lambda s: asked(
            tries_durations=True,
            workload=json.loads(changed(duration_s=10**6)(s)["request"])["workload"],
        )(s),
        "job .* is not as this intop writes it: workload: duration_s: Input should be less than",
    ),
    "limit": (asked(prune_above_ms=-1), "slt: trials can't be pruned above -1.0 ms"),
    "workload": (of_columns(workload="cdn"), r"has no \[workload.cdn\]"),
    "kind": (of_columns(kind="shell"), "job .*: 'shell' is no kind of job"),
    "request": (of_columns(request="{"), "job .* is not as this intop writes it"),
    "bytes": (of_columns(request=b"\xff"), "job .* is not as this intop writes it"),
    "no text": (of_columns(request=Broken(b'{"\xff"')), "job .* is not as this intop writes it"),
    "attempt": (of_columns(attempt=1.5), "job .*: attempt is 1.5"),
    "no place": (of_columns(kind="trial"), "job .*: a job of kind trial has a place in no plan"),
    "another's place": (of_another_plan, "job .* is not as this intop writes it"),
    "no configuration": (of_columns(kind="refusal"), "job .*: .* refusal has no configuration"),
    "ports": (
        refusal(net__ipv4__ip_local_port_range="1024 1100"),
        f"lb: nothing was set, .* '{PORTS}' = '1024 1100', beyond a hard bound: 1024 is below",
    ),
    "not guarded": (refusal(kernel__core_pattern="|/x"), "'kernel.core_pattern' = .* deny list"),
    "no word": (refusal(**{"net.\ud800": "1"}), "job .* is not as this intop writes it"),
    "place": (of_plan(configuration='{"net.core.x": 7}'), "is not as this intop writes it"),
    "place's rate": (of_plan(rate_rps=1e12), "slt: trial . is planned with a load that the study"),
    "place's path": (of_plan(path="/ HTTP/1.1\r\nX: y"), "slt: trial . is planned with a load"),
    "place's workload": (of_plan(other_workload="cdn"), r"has no \[workload.cdn\] any more"),
    "soak": (of_plan(role="soak", rate_rps=1e6, duration_s=9), "a soak is measured by its own"),
}


@pytest.mark.parametrize(("columns", "why"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_bad_row_fails_its_own_job_with_its_reason_and_the_worker_goes_on(
    site: Site, columns: Callable[[Site], dict[str, Any]], why: str
) -> None:
    def write() -> None:
        site.when_open = lambda: None
        numbers.append(site.job(**columns(site)))

    for is_late in (False, True):
        site.clear()
        numbers: list[int] = []
        if is_late:  # on a replica that is open for the campaign already
            site.job()
            site.when_open = write
        else:
            write()
        site.offer_ours()
        site.work()
        ((state, reason),) = site.rows(f"select state, answer from job where id = {numbers[0]}")
        assert state == b"failed"
        assert re.search(f"one says of .*{why}", reason.decode()), reason
        assert site.ours_is_measured()
        check(site)


def test_a_planned_value_that_does_not_fit_is_not_set_whoever_has_measured_it(
    site: Site,
) -> None:
    """A place that has a trial is left out of the check of opening a replica."""
    place = site.plan(configuration=json.dumps({PORTS: "1024 1100"}))
    number = site.job(kind="trial", planned_id=place, attempt=1)
    subject = Subject(campaign=site.hostile, arch="x86", workload="slt")
    store = site.worker.store
    (planned,) = store.plan(subject, "collect")
    conditions = replace(CONDITIONS, workload="slt")
    store.add(
        subject, replace(trial(planned.configuration, conditions=conditions), planned=planned)
    )
    site.work()
    ((state, reason),) = site.rows(f"select state, answer from job where id = {number}")
    assert (state, b"1024 is below 32768" in reason) == (b"failed", True)
    check(site)


def test_a_job_does_not_add_to_what_a_workers_study_tunes(site: Site) -> None:
    number = site.job()
    site.worker.studies = {site.study.name: replace(site.study, tunes=("kernel",))}
    site.work()
    ((state, reason),) = site.rows(f"select state, answer from job where id = {number}")
    assert state == b"failed"
    assert b"asked is to tune kernel and nginx, and tunes in [study] of " in reason
    assert site.host.opened == []


def test_what_a_command_may_change_is_measured(site: Site) -> None:
    """A pilot's duration, fewer kinds of parameters, a sweep's places, another workload."""
    pilot = json.loads(document_of(site.request(tries_durations=True)))
    pilot["workload"]["duration_s"] = 7
    good = [
        {"request": json.dumps(pilot)},
        asked(tunes=["kernel"], prune_above_ms=12.5)(site),
        of_plan(configuration=json.dumps({PORTS: "40000 65000", PROBING: "2"}))(site),
        of_plan(rate_rps=120.0, connections=64, path="/a.css", duration_s=3)(site),
        of_plan(connections=16, closed_loop=1)(site),
        of_plan(other_workload="dlt")(site),
        refusal(net__ipv4__tcp_fin_timeout="5")(site),
    ]
    numbers = [site.job(**columns) for columns in good]
    site.host.refuses = LINGER
    site.work()
    assert site.rows("select id, answer from job where state <> 'done'") == []
    assert {numbers[0], numbers[1], numbers[6]} == {n for (n,) in site.rows("select id from job")}
    ((answer,),) = site.rows(f"select answer from job where id = {numbers[6]}")
    assert json.loads(answer) == {"host": "lb", "key": LINGER, "value": "5", "got": "1"}
    assert len(site.host.sent) == 4
    assert {t.context.study.tunes for t in site.host.opened} == {("kernel",), ("kernel", "nginx")}
    assert {task.workload.duration_s for task in site.host.opened} == {2, 7}
    check(site)


def test_a_host_in_trouble_fails_no_job(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    number = site.job()

    def busy() -> None:
        site.when_open = lambda: None
        raise HostError("lb", "is busy")

    site.when_open = busy
    site.worker.run(idle_s=worker.BACK_OFF_S + 1)
    assert [(number, b"done")] == site.rows("select id, state from job")


def test_ctrl_c_ends_a_worker_and_gives_its_job_back(site: Site) -> None:
    number = site.job(**of_plan()(site))

    def interrupted(_: Configuration) -> None:
        raise KeyboardInterrupt

    site.host.apply = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        site.work()
    assert [(number, b"offered")] == site.rows("select id, state from job")
