"""What apply says: where, what, how it ended, and what comes next."""

import pytest

from builders.results import COSTLY, VERDICT
from intop.deploy.rollout import HostRollout, Rollout
from intop.deploy.rollouts_view import rollouts
from kit.golden import Golden
from kit.printed import shown

FILE = "/etc/sysctl.d/99-zz-intop.conf"


def host(name: str, outcome: str, file: str = "") -> HostRollout:
    return HostRollout(host=name, outcome=outcome, verdict=VERDICT, file=file)  # type: ignore[arg-type]


def test_what_was_applied_says_how_long_it_lasts_and_how_it_is_undone(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, *rollouts([Rollout(title="x86 slt", hosts=(host("lb1", "applied"),))]))
    golden(out)
    out = shown(
        capsys, *rollouts([Rollout(title="x86 slt", hosts=(host("lb1", "applied", FILE),))])
    )
    golden(out)


def test_where_it_stopped_says_who_has_it_and_who_has_not(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    canary = Rollout(title="x86 slt", hosts=(host("lb1", "stopped"),), untouched=("lb2", "lb3"))
    out = shown(capsys, *rollouts([canary]))
    golden(out)
    later = Rollout(title="x86 slt", hosts=(host("lb1", "applied"), host("lb2", "stopped")))
    golden(shown(capsys, *rollouts([later])))


def test_a_host_that_breaks_a_guardrail_says_so_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    costs = HostRollout(host="lb1", outcome="stopped", verdict=COSTLY)
    golden(shown(capsys, *rollouts([Rollout(title="x86 slt", hosts=(costs,))])))


def test_a_host_that_has_it_for_good_is_not_said_to_lose_it(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(
        capsys, *rollouts([Rollout(title="x86 slt", hosts=(host("lb1", "already", FILE),))])
    )
    golden(out)


def test_directives_outlast_a_reboot_without_a_file_of_ours(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    conf = "/etc/nginx/nginx.conf"
    edited = HostRollout(host="lb1", outcome="applied", verdict=VERDICT, nginx_files=(conf,))
    golden(shown(capsys, *rollouts([Rollout(title="x86 slt", hosts=(edited,))])))
