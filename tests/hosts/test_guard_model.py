"""guard.sh against a model of what must hold, by random sequences of all that may happen to it.

A few in every run; for 10,000: `make fuzz-guard`, which sets SEQUENCES.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fake_kernel import MAIN, OWN, SITE, FakeKernelHost, fake_kernel_host
from intop.hosts.guard import FOREIGN, HELD, MISSING, NOT_OURS, NOTHING, UNWRITABLE

SEQUENCES = int(os.environ.get("SEQUENCES", "15"))
STEPS = 12
DONE = 3
KILLED = (9, 137, -9)
"""setsid ends with the first, a shell with the second."""

NAMES = st.sampled_from("ab")
KEYS = st.sampled_from(sorted(OWN))
VALUES = st.sampled_from(["1", "2", "777"])
FILES = st.sampled_from([MAIN, SITE])
NOT_BACK = 1
FATAL = st.integers(1, 25)
"""At which of its programs a command is killed; it may end before."""


class Guard(RuleBasedStateMachine):
    """Two controllers, each with its state folder, of which a has a disk that may be full.

    `base` is what the host has when nobody has a session: its own values, or what stays of a keep.
    `files` are the texts of a real nginx in the same way, `kept` those from before a keep of the
    files that it has left changed, `left` as it left them, and `theirs` those of what somebody else
    has changed while it was guarded: nobody overwrites these but by force. `tokens` are the last
    sessions of each folder, dead or alive: a controller may not know it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="intop-model-"))
        self._entered = fake_kernel_host(self._folder)
        self.host: FakeKernelHost = self._entered.__enter__()
        self.host.start_nginx()
        self.base = dict(OWN)
        self.files = self.host.own_texts()
        self.theirs: dict[str, str] = {}
        self.kept: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self.is_edited = False
        self.tokens = {"a": "none", "b": "none"}
        self.count = 0
        self.is_full = False
        self.is_half_undone = False

    # What controllers do

    @initialize(name=NAMES, key=KEYS, value=VALUES)
    def some_session(self, name: str, key: str, value: str) -> None:
        """Most of what may go wrong needs one."""
        self.begin(name, 0)
        self.write(name, key, value, 0)

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES, fatal=st.just(0) | FATAL)
    def begin(self, name: str, fatal: int) -> None:
        self.count += 1
        token = f"t{self.count}"
        done = self.host.begin_in(name, token, fatal)
        if done.exit_code == 0:
            self.tokens[name] = token
            # No value of ours is ever taken for the host's own.
            assert all(f"{path}:{value}\n" in done.stdout for path, value in self.base.items()), (
                done.stdout,
                self.base,
            )
            assert [] == self.host.pending(self.other(name))
            assert self.base == self.host.now()
            # What was left to somebody else has been accepted, or was in the way of nothing.
            self.check_files()
        elif done.exit_code == HELD:
            assert self.host.pending("a") or self.host.pending("b")
        elif done.exit_code == MISSING:
            assert self.theirs
            assert self.host.pending(name)
        elif done.exit_code == UNWRITABLE:
            assert (name, True) == ("a", self.is_full)
        else:
            assert fatal, done
            assert done.exit_code in KILLED, done

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES, key=KEYS, value=VALUES, fatal=st.just(0) | FATAL)
    def write(self, name: str, key: str, value: str, fatal: int) -> None:
        lines = f"{key} {value}\n"
        done = self.host.guard(name, "write", self.tokens[name], stdin=lines, fatal=fatal)
        if done.exit_code == 0:
            assert value == self.host.now()[key]
        self.check_lost(name, done.exit_code, fatal)

    @precondition(lambda self: not self.is_half_undone)
    @rule(
        name=NAMES,
        file=FILES,
        word=st.sampled_from(["own", "one", "two"]),
        by=st.sampled_from(["reload", "reload", "restart"]),
        fatal=st.just(0) | st.integers(1, 60),
    )
    def write_file(self, name: str, file: str, word: str, by: str, fatal: int) -> None:
        """Or give it back its own text."""
        text = None if word == "own" else self.host.texts(word)[file]
        token = self.tokens[name]
        done = self.host.write_files(name, token, {file: text}, by=by, fatal=fatal)
        if done.exit_code == 0:
            assert (text or self.files[file]) == self.host.files()[file][0]
            if not self.is_edited:
                assert word_in(text or self.files[file]) == self.host.serves()[file == SITE]
        self.check_lost(name, done.exit_code, fatal)

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES)
    def renew(self, name: str) -> None:
        self.check_lost(name, self.host.guard(name, "renew", self.tokens[name]).exit_code, 0)

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES, fatal=st.just(0) | FATAL)
    def end(self, name: str, fatal: int) -> None:
        done = self.host.guard(name, "end", self.tokens[name], fatal=fatal)
        if done.exit_code == 0:
            assert self.base == self.host.now()
        if done.exit_code != 79:  # What it kept before it died has been put in place.
            self.check_lost(name, done.exit_code, fatal)

    @precondition(lambda self: not self.is_half_undone)
    @rule(fatal=st.just(0) | FATAL)
    def keep(self, fatal: int) -> None:
        """Only of one folder: a rollback there knows nothing of what another one has left."""
        before, wanted, texts = self.host.applied("a"), self.host.now(), self.texts()
        about = "about\tsince\tnow\nend\n"
        done = self.host.guard("a", "keep", self.tokens["a"], stdin=about, fatal=fatal)
        after = self.host.applied("a")
        if after and after[-1] not in before:
            self.base = wanted
            assert not self.kept
            self.kept = {
                name: self.files[name] for name in texts if texts[name] != self.files[name]
            }
            self.left = {name: texts[name] for name in self.kept}
            self.files = texts
        else:
            assert done.exit_code != 0, done
        if done.exit_code != NOT_BACK:  # Over files that stay changed nothing is kept.
            self.check_lost("a", done.exit_code, fatal)

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES)
    def accept(self, name: str) -> None:
        done = self.host.guard(name, "accept")
        assert done.exit_code in (0, HELD, NOTHING) or self.is_full, done

    @rule(force=st.booleans(), fatal=st.just(0) | FATAL)
    def roll_back(self, force: bool, fatal: int) -> None:
        words = ["force"] if force and not self.host.pending("b") else []
        had = self.host.applied("a")
        is_left = (self.theirs or self.is_edited_since()) and not words
        done = self.host.guard("a", "rollback", *words, fatal=fatal)
        assert done.exit_code in (0, HELD, NOTHING) or fatal or is_left, done
        if had and not self.host.applied("a"):
            self.is_half_undone = False
            self.undone()
        elif had and (done.exit_code in KILLED or (done.exit_code == NOT_BACK and self.kept)):
            self.is_half_undone = True
        if words:
            self.take_by_force()
        if done.exit_code in (0, NOTHING) and not self.host.pending("b"):
            assert not self.host.pending("a") or self.is_full
            assert self.base == self.host.now()

    # What befalls them

    @rule(name=NAMES, lease=st.sampled_from(["0", "9999999999"]))
    def lapse(self, name: str, lease: str) -> None:
        """Its controller is silent for too long, or the clock begins again."""
        self.host.lapse(name, lease)

    @rule(file=FILES)
    def edit(self, file: str) -> None:
        """By somebody else, for good."""
        self.count += 1
        text = self.host.texts(f"theirs{self.count}")[file]
        self.is_edited = True
        if self.host.is_guarded(file):
            self.theirs[file] = text
        else:
            self.files[file] = text
        (self.host.nginx / file).write_text(text)

    @rule()
    def kill_watchdogs(self) -> None:
        self.host.kill_all()

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES, fatal=st.just(0) | FATAL)
    def watch(self, name: str, fatal: int) -> None:
        code = self.host.watch(name, self.tokens[name], fatal)
        if code == DONE and not any(map(self.host.pending, "ab")):
            assert self.base == self.host.now()

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES, fatal=st.just(0) | FATAL)
    def ask(self, name: str, fatal: int) -> None:
        done = self.host.guard(name, "status", fatal=fatal)
        assert fatal or done.exit_code == 0

    @rule()
    def fill(self) -> None:
        self.host.fill()
        self.is_full = True

    @rule()
    def free(self) -> None:
        self.host.free()
        self.is_full = False

    # What must hold

    @invariant()
    def what_is_not_given_back_is_known(self) -> None:
        texts = self.texts()
        assert self.theirs == {name: texts[name] for name in self.theirs}
        if not self.is_half_undone and not any(map(self.host.pending, "ab")):
            assert self.base == self.host.now()
            self.check_files()
            assert [] == self.host.beside()
            if not self.is_edited:
                assert tuple(word_in(self.files[f]) for f in (MAIN, SITE)) == self.host.serves()

    def texts(self) -> dict[str, str]:
        return {name: file[0] for name, file in self.host.files().items()}

    def is_edited_since(self) -> bool:
        """Whether a file is neither as the keep has left it nor as that found it."""
        texts = self.texts()
        return any(texts[f] not in (self.kept[f], self.left[f]) for f in self.kept)

    def undone(self) -> None:
        """What was applied is."""
        self.base = dict(OWN)
        self.files |= self.kept
        self.kept = {}

    def check_files(self) -> None:
        """Nothing is there of ours but what stays."""
        self.files |= self.theirs
        self.theirs = {}
        found = self.host.files()
        assert self.files == {name: file[0] for name, file in found.items()}
        assert [(0o644, 0, 0), (0o640, 0, 33)] == [file[1:] for file in found.values()]

    def take_by_force(self) -> None:
        """A death may leave some of it to others."""
        for name, file in self.host.files().items():
            if name in self.theirs and file[0] in (self.files[name], self.kept.get(name)):
                del self.theirs[name]

    def check_lost(self, name: str, code: int, fatal: int) -> None:
        """Whoever is told that a session is over finds all of it restored."""
        if code == NOT_OURS and not any(map(self.host.pending, "ab")):
            assert self.base == self.host.now()
        if self.theirs and code in (FOREIGN, NOT_BACK):
            return
        assert code in (0, NOT_OURS) or (code == UNWRITABLE and self.is_full) or fatal, (name, code)

    def other(self, name: str) -> str:
        return "b" if name == "a" else "a"

    def teardown(self) -> None:
        """Whatever was: one rollback gives all of it back."""
        try:
            self.host.free()
            self.host.kill_all()
            for name in "ba":
                self.host.lapse(name)
                words = ["force"] if self.theirs or self.is_edited_since() else []
                done = self.host.guard(name, "rollback", *words)
                if not self.host.applied("a"):
                    self.undone()
                self.take_by_force()
                assert done.exit_code in (0, NOTHING), done
            assert OWN == self.host.now()
            assert [] == [*self.host.pending("a"), *self.host.pending("b")]
            assert [] == self.host.applied("a")
            self.check_files()
        finally:
            self._entered.__exit__(None, None, None)
            shutil.rmtree(self._folder)


def word_in(text: str) -> str:
    """What nginx says by this text of a file."""
    (word,) = re.findall(r"(?:add_header Main|return 200) (\w+);", text)
    return word


def test_what_a_model_says_holds_for_random_sequences() -> None:
    run_state_machine_as_test(
        Guard,
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize="SEQUENCES" not in os.environ,
            suppress_health_check=list(HealthCheck),
        ),
    )
