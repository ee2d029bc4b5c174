from dataclasses import replace

import pytest

from intop.domain.answer import Answer
from intop.domain.applied import Applied, StayingKey
from intop.domain.host_state import ForeignChange, HostState, KeyChange
from intop.report.dry_run import rollback
from printed import cells, shown

FOREIGN = ForeignChange(key="net.b", left="2", now="3", command="sysctl -w net.b=1")
CHANGED = (
    KeyChange(key="net.a", before="1", now="2"),
    KeyChange(key="net.b", before="1", now="3"),
)
LEFT = Answer(name="lb", said=HostState(changed=CHANGED, foreign=(FOREIGN,)))
HELD = Answer(name="lb", said=HostState(holder="root@x (process 8)", changed=CHANGED))


def test_what_would_be_put_back_is_told_key_by_key(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, *rollback([LEFT, Answer(name="gone", error="gone: silent")], force=False))
    assert ["lb", "net.a", "2", "1"] == cells(out, "lb  ")
    assert "lb: 1 key would be put back" in out
    assert "left as somebody else has set them: net.b" in out
    assert "gone: silent" in out


def test_by_force_it_is_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, *rollback([LEFT], force=True))
    assert "lb: 2 keys would be put back" in out
    assert "left as" not in out


def test_a_living_session_is_left_alone_without_force(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, *rollback([HELD], force=False))
    assert "would be left alone without --force, if that session is alive: held by root@x" in out
    assert "net.a" not in out
    assert "net.a" in shown(capsys, *rollback([HELD], force=True))


def test_a_host_as_before_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, *rollback([Answer(name="lb", said=HostState())], force=False))
    assert "lb: nothing would be put back" in out


APPLIED = Applied(
    about={"study": "lab"},
    keys=(
        StayingKey(key="net.a", before="1", left="2", now="2"),
        StayingKey(key="net.b", before="1", left="2", now="3"),
        StayingKey(key="net.c", before="1", left="2", now="1"),
    ),
    file="/etc/sysctl.d/99-zz-intop.conf",
    file_is="ours",
)


@pytest.mark.parametrize(
    ("applied", "force", "told", "keys"),
    [
        (APPLIED, False, "conf would be removed", ["net.a"]),
        (APPLIED, True, "conf would be removed", ["net.a", "net.b"]),
        (replace(APPLIED, file_is="edited"), False, "would be left alone", ["net.a"]),
        (replace(APPLIED, file_is="edited"), True, "conf would be removed", ["net.a", "net.b"]),
        (replace(APPLIED, file_is="missing"), False, "net.b", ["net.a"]),
        (replace(APPLIED, file="", was_rebooted=True), True, "nothing would be put back", []),
    ],
)
def test_what_an_apply_has_left_would_go_too(
    applied: Applied, force: bool, told: str, keys: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = Answer(name="lb", said=HostState(applied=applied))
    out = shown(capsys, *rollback([answer], force=force))
    assert told in out
    rows = [line.split() for line in out.splitlines() if line.split()[:1] == ["lb"]]
    assert keys == [key for _, key, *_ in rows]
    assert ("left as somebody else has set them: net.b" in out) == (not force)
