"""A plan in a file: what is read back, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from builders.results import DEPLOYMENT
from intop.deploy.plan_file import read_plan, write_plan
from intop.deploy.result import HostPlan, Plan, planned_key
from intop.domain.applied import Applied, StayingKey
from intop.domain.host_state import Answer
from intop.domain.persistent import Persistent, Setting, our_file
from intop.errors import UsageError

FILE = our_file("/")
RIVALS = Persistent(settings=tuple(Setting(c.key, "9", "/a.conf:1") for c in DEPLOYMENT.changes))
HOST = HostPlan(
    file=FILE,
    keys=tuple(planned_key(c, c.default, "", RIVALS, FILE, "1") for c in DEPLOYMENT.changes),
    machine="x86_64",
    kernel="6.1.0",
    applied=Applied(
        about={"since": "noon"}, keys=(StayingKey(key="a.b", before="0", left="1", now="1"),)
    ),
    problems=("a problem",),
    notes=("a note",),
)
PLAN = Plan(
    deployment=DEPLOYMENT,
    hosts=(Answer(name="lb", result=HOST), Answer(name="gone", error="gone: is gone")),
    rounds=10,
    persist=True,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "plan.json"
    write_plan(made, [PLAN], whole=True)
    return made


def test_what_was_written_is_read_back(path: Path) -> None:
    saved = read_plan(path)
    assert saved.plans == (PLAN,)
    assert (saved.study, saved.campaign, saved.whole) == ("lab", 1, True)
    document = json.loads(path.read_text())
    assert (document["kind"], document["format"]) == ("plan", 1)
    assert document["written_by"].startswith("intop ")
    assert [path] == list(path.parent.iterdir())


def test_ours_is_replaced_and_nothing_else(path: Path, tmp_path: Path) -> None:
    write_plan(path, [PLAN], whole=False)
    assert not read_plan(path).whole
    theirs = tmp_path / "theirs.json"
    theirs.write_text("{}")
    with pytest.raises(UsageError, match="was not written by intop"):
        write_plan(theirs, [PLAN], whole=False)
    assert theirs.read_text() == "{}"
    with pytest.raises(UsageError, match="can't be written"):
        write_plan(tmp_path / "no" / "plan.json", [PLAN], whole=False)


def test_a_byte_order_mark_is_no_part_of_a_plan(path: Path) -> None:
    saved = read_plan(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert saved == read_plan(path)


def edited(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "export"}, "is no plan of intop"),
        ({"format": 2}, "has format 2, written by intop .* reads 1"),
        ({"format": None}, "has format None"),
        ({"plans": []}, "is damaged: it has no plans"),
        ({"plans": [{}]}, r"is damaged: plans\.0\.deployment: "),
        ({"campaign": "many"}, "is damaged: campaign: "),
        ({"campaign": "7"}, "is damaged: campaign: Input should be a valid integer"),
        ({"campaign": True}, "is damaged: campaign: Input should be a valid integer"),
        ({"whole": "yes"}, "is damaged: whole: Input should be a valid boolean"),
    ],
)
def test_what_is_no_plan_of_ours_is_refused(
    path: Path, changes: dict[str, Any], words: str
) -> None:
    edited(path, **changes)
    with pytest.raises(UsageError, match=rf"plan\.json: {words}.*intop plan --output"):
        read_plan(path)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("kernel.pid_max", "on the deny list: without room for another process nobody can log in"),
        ("net.ipv4.tcp_fastopen_key", "on the deny list: is a secret"),
        ("kernel.new_in_7_0", "not on the list of keys that may be tuned"),
    ],
)
def test_a_key_that_may_not_be_tuned_is_refused(path: Path, key: str, why: str) -> None:
    path.write_text(path.read_text().replace(DEPLOYMENT.changes[0].key, key))
    with pytest.raises(UsageError, match=rf"deployment\.changes\.0: .*{key} is {why}"):
        read_plan(path)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000, b"[sysctl]\na = 1"])
def test_what_is_damaged_is_refused(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"plan\.json: is .*intop plan --output"):
        read_plan(path)


def test_one_that_was_cut_off_anywhere_is_refused(path: Path) -> None:
    whole = path.read_bytes().rstrip()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        with pytest.raises(UsageError, match=r"plan\.json: is "):
            read_plan(path)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nosuch: can't be read: No such file"):
        read_plan(tmp_path / "nosuch")
    with pytest.raises(UsageError, match="can't be read"):
        read_plan(tmp_path)
