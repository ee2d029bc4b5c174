from dataclasses import replace

import pytest

from intop.domain.applied import Applied, Drift, StayingFile, StayingKey
from intop.domain.host_state import Answer, ForeignChange, HostState, KeyChange
from intop.inspect.dry_run_view import rollback
from kit.golden import Golden
from kit.printed import cells, shown

FOREIGN = ForeignChange(key="net.b", left="2", now="3", command="sysctl -w net.b=1")
CHANGED = (
    KeyChange(key="net.a", before="1", now="2"),
    KeyChange(key="net.b", before="1", now="3"),
)
LEFT = Answer(name="lb", result=HostState(changed=CHANGED, foreign=(FOREIGN,)))
HELD = Answer(name="lb", result=HostState(holder="root@x (process 8)", changed=CHANGED))


def test_what_would_be_put_back_is_told_key_by_key(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, *rollback([LEFT, Answer(name="gone", error="gone: silent")], force=False))
    assert cells(out, "lb  ") == ["lb", "net.a", "2", "1"]
    golden(out)


def test_by_force_it_is_all_of_them(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    golden(shown(capsys, *rollback([LEFT], force=True)))


def test_a_living_session_is_left_alone_without_force(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, *rollback([HELD], force=False))
    golden(out)
    assert "net.a" in shown(capsys, *rollback([HELD], force=True))


def test_a_host_as_before_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, *rollback([Answer(name="lb", result=HostState())], force=False))
    assert "lb: nothing would be put back" in out


APPLIED = Applied(
    about={"arch": "x86", "workload": "slt", "study": "shop", "campaign": "3", "since": "noon"},
    keys=(
        StayingKey(key="net.a", before="1", left="2", now="2"),
        StayingKey(key="net.b", before="1", left="2", now="3"),
    ),
    file="/etc/sysctl.d/99-zz-intop.conf",
    file_is="ours",
)
THEIRS = (Drift(kind="changed", where="net.b", detail="is 3, was left at 2"),)


def test_what_is_applied_would_be_undone_but_for_what_is_somebody_elses(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    on = Answer(name="lb", result=HostState(applied=APPLIED, drift=THEIRS))
    out = shown(capsys, *rollback([on], force=False))
    golden(out)
    assert cells(out, "lb  ") == ["lb", "net.a", "2", "1"]
    assert "lb: 2 keys would be put back" in shown(capsys, *rollback([on], force=True))


def test_after_a_reboot_without_a_file_only_the_record_goes(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    lost = replace(APPLIED, file="", file_is=None, was_rebooted=True)
    on = Answer(name="lb", result=HostState(applied=lost, drift=THEIRS))
    golden(shown(capsys, *rollback([on], force=False)))


def test_directives_are_put_back_after_a_reboot_too_but_not_over_an_edited_file(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    path = "/etc/nginx/nginx.conf"
    processes = StayingKey(key="nginx:main.worker_processes", before="1", left="2", now="2")
    files = (StayingFile(path=path, state="ours"),)
    staying = replace(APPLIED, directives=(processes,), nginx_files=files, file="", file_is=None)
    on = Answer(name="lb", result=HostState(applied=replace(staying, was_rebooted=True)))
    out = shown(capsys, *rollback([on], force=False))
    assert "lb: 1 key would be put back" in out
    assert cells(out, "lb  ") == ["lb", "nginx:main.worker_processes", "2", "1"]
    edited = replace(
        staying,
        keys=(),
        directives=(replace(processes, now=""),),
        nginx_files=(StayingFile(path=path, state="edited"),),
    )
    on = Answer(name="lb", result=HostState(applied=edited))
    out = shown(capsys, *rollback([on], force=False))
    golden(out)
    assert "lb: 1 key would be put back" in shown(capsys, *rollback([on], force=True))
