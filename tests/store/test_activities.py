"""Which process works on a campaign, as others learn it from the store."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from builders.stored import begun
from intop import process
from intop.domain.activity import SILENCE_S
from intop.store import Store, Subject
from intop.store.schema import activity_table

HOLD = """
import sys
from dataclasses import replace
from intop.store import opened, Subject
with opened(sys.argv[1]) as store:
    campaign = store.latest("study")
    subject = Subject(campaign=campaign, arch="x86", workload="slt")
    assert store.activities.take(subject, "train") is None
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def subject(store: Store) -> Subject:
    return begun(store)


@contextmanager
def another_process(url: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that works on the subject until the block ends, and is killed then."""
    command = [sys.executable, "-c", HOLD, url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            yield other
        finally:
            other.kill()


def test_this_process_is_heard_of_until_it_ends(store: Store, subject: Subject) -> None:
    assert store.activities.take(subject, "screen") is None
    assert store.activities.take(subject, "collect") is None
    ((key, activity),) = store.activities.of(subject.campaign).items()
    assert key == "x86 slt"
    assert (activity.process, activity.stage) == (process.title(), "collect")
    assert activity.is_alive
    store.activities.end(subject)
    assert store.activities.of(subject.campaign) == {}


def test_another_process_is_refused_while_this_one_lives_and_welcome_after(
    store: Store, subject: Subject, url: str
) -> None:
    with another_process(url) as other:
        held = store.activities.take(subject, "screen")
        assert held is not None
        assert (held.stage, held.is_alive) == ("train", True)
        assert f"(process {other.pid})" in held.process
    (left,) = store.activities.of(subject.campaign).values()
    assert (left.is_gone, left.is_alive) == (True, False)
    assert store.activities.take(subject, "screen") is None


def test_one_on_another_machine_is_replaced_once_it_is_silent(
    store: Store, subject: Subject
) -> None:
    def elsewhere(silent_s: float) -> None:
        heard_at = activity_table.c.heard_at - silent_s
        update = activity_table.update().values(identity="elsewhere:1/7/99", heard_at=heard_at)
        store.session.change(update)

    store.activities.take(subject, "train")
    elsewhere(SILENCE_S / 2)
    assert store.activities.take(subject, "screen") is not None
    store.activities.renew(subject, "screen")  # changes only what is its own
    store.activities.end(subject)
    (activity,) = store.activities.of(subject.campaign).values()
    assert (activity.stage, activity.is_alive) == ("train", True)
    elsewhere(SILENCE_S)
    (activity,) = store.activities.of(subject.campaign).values()
    assert (activity.is_gone, activity.is_alive) == (False, False)
    assert store.activities.take(subject, "screen") is None


def test_a_sign_of_life_is_the_stores_time(store: Store, subject: Subject) -> None:
    store.activities.take(subject, "train")
    store.session.change(activity_table.update().values(heard_at=0.0))
    store.activities.renew(subject, "train")
    assert store.session.rows(sa.select(activity_table.c.heard_at))[0].heard_at > 1.7e9
