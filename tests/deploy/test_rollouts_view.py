"""What apply says: where, what, how it ended, and what comes next."""

import pytest

from builders.results import COSTLY, VERDICT
from intop.deploy.rollout import HostRollout, Rollout
from intop.deploy.rollouts_view import rollouts
from kit.printed import shown

FILE = "/etc/sysctl.d/99-zz-intop.conf"


def host(name: str, outcome: str, file: str = "") -> HostRollout:
    return HostRollout(host=name, outcome=outcome, verdict=VERDICT, file=file)  # type: ignore[arg-type]


def test_what_was_applied_says_how_long_it_lasts_and_how_it_is_undone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(capsys, *rollouts([Rollout(title="x86 slt", hosts=(host("lb1", "applied"),))]))
    assert "x86 slt: lb1: applied: gain: P99 is 3.10 times lower" in out
    assert "last until the host is started anew" in out
    assert "intop rollback" in out
    out = shown(
        capsys, *rollouts([Rollout(title="x86 slt", hosts=(host("lb1", "applied", FILE),))])
    )
    assert f"applied, with {FILE}" in out
    assert "started anew" not in out


def test_where_it_stopped_says_who_has_it_and_who_has_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    canary = Rollout(title="x86 slt", hosts=(host("lb1", "stopped"),), untouched=("lb2", "lb3"))
    out = shown(capsys, *rollouts([canary]))
    assert "lb1: NOT applied, it has its values from before" in out
    assert "since the canary shows too little; not touched: lb2, lb3" in out
    assert "intop rollback" not in out
    later = Rollout(title="x86 slt", hosts=(host("lb1", "applied"), host("lb2", "stopped")))
    out = shown(capsys, *rollouts([later]))
    assert "since lb2 shows too little; what was applied before stays: lb1" in out
    assert "intop rollback" in out


def test_a_host_that_breaks_a_guardrail_says_so_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    costs = HostRollout(host="lb1", outcome="stopped", verdict=COSTLY)
    out = shown(capsys, *rollouts([Rollout(title="x86 slt", hosts=(costs,))]))
    assert "lb1: NOT applied, it has its values from before: no gain: it costs CPU" in out
    assert "since the canary breaks a guardrail (--accept-costs goes on although" in out


def test_a_host_that_has_it_for_good_is_not_said_to_lose_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(
        capsys, *rollouts([Rollout(title="x86 slt", hosts=(host("lb1", "already", FILE),))])
    )
    assert "lb1: has these values already" in out
    assert "started anew" not in out


def test_directives_outlast_a_reboot_without_a_file_of_ours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    conf = "/etc/nginx/nginx.conf"
    edited = HostRollout(host="lb1", outcome="applied", verdict=VERDICT, nginx_files=(conf,))
    out = shown(capsys, *rollouts([Rollout(title="x86 slt", hosts=(edited,))]))
    assert f"applied, with {conf}" in out
    assert "started anew" not in out
