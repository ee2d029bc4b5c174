"""guard.sh against a model of what must hold, by random sequences of all that may happen to it.

A few in every run; for 10,000: `make fuzz-guard`, which sets SEQUENCES.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
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

from intop.hosts.guard.script import FOREIGN, HELD, MISSING, NOT_OURS, NOTHING, UNWRITABLE
from intop.hosts.host import Completed
from kit.fake_kernel import MAIN, OWN, RMEM, SITE, FakeKernelHost, fake_kernel_host

SEQUENCES = int(os.environ.get("SEQUENCES", "15"))
PARTS = 4 if "SEQUENCES" in os.environ else 1
"""At once, on two processors: most of the time a sequence waits."""
STEPS = 12
DONE = 3
KILLED = (9, 137, -9)
"""setsid ends with the first, a shell with the second."""

NAMES = st.sampled_from("ab")
KEYS = st.sampled_from(sorted(OWN))
VALUES = st.sampled_from(["1", "2", "777"])
FILES = st.sampled_from([MAIN, SITE])
VECTORS = st.sampled_from(["4096 87380 4194304", "8192 131072 6291456"])
TOO_LARGE = "99999999999"
"""For the last number of a value: the kernel refuses it, and has taken the others."""
IMPOSTORS = st.sampled_from(
    ["its title", "nginx: master process /usr/sbin/nginx", "nginx: worker process"]
)
NOT_BACK = 1
FATAL = st.integers(1, 25)
"""At which of its programs a command is killed; it may end before."""


class Guard(RuleBasedStateMachine):
    """Two controllers, each with its state folder, of which a has a disk that may be full.

    `base` is what the host has when nobody has a session: its own values, or what stays of a keep.
    `files` are the texts of a real nginx in the same way, `kept` those from before a keep of the
    files that it has left changed, `left` as it left them, and `theirs` those of what somebody else
    has changed while it was guarded: nobody overwrites these but by force. `tokens` are the last
    sessions of each folder, dead or alive: a controller may not know it. While `is_spoiled` the
    kernel refuses a part of one value that is to be restored. `vector` is what `base` has of RMEM.
    A user without rights may have processes that look like nginx's.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="intop-model-"))
        self._entered = fake_kernel_host(self._folder)
        self.host: FakeKernelHost = self._entered.__enter__()
        self.host.start_nginx()
        # Joined by blanks it would fail.
        self.host.restart_command = f"false\nsh {self.host.nginx}/restart"
        self.own_vector = self.vector = self.host.rmem()
        self.spoiled = "\t".join([*self.own_vector.split()[:2], TOO_LARGE])
        self.is_spoiled = False
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
        self.impostors: list[str] = []

    def guard(self, name: str, *words: str, stdin: str = "", fatal: int = 0) -> Completed:
        """A verb. Nobody else ever changes a key here, whatever a restore has half written."""
        done = self.host.guard(name, *words, stdin=stdin, fatal=fatal)
        assert not re.search("^foreign\t(net|vm)/", done.stdout, re.MULTILINE), done
        return done

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
            assert self.host.pending(self.other(name)) == []
            self.check_keys()
            # What was left to somebody else has been accepted, or was in the way of nothing.
            self.check_files()
        elif done.exit_code == HELD:
            assert self.host.pending("a") or self.host.pending("b")
        elif done.exit_code == MISSING:
            assert self.theirs or self.is_spoiled
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
        done = self.guard(name, "write", self.tokens[name], stdin=lines, fatal=fatal)
        if done.exit_code == 0:
            assert value == self.host.now()[key]
        self.check_lost(name, done.exit_code, fatal)

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES, value=VECTORS)
    def write_vector(self, name: str, value: str) -> None:
        done = self.guard(name, "write", self.tokens[name], stdin=f"{RMEM} {value}\n")
        if done.exit_code == 0:
            assert value.split() == self.host.rmem().split()
        self.check_lost(name, done.exit_code, 0)

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
        self.check_lost(name, self.guard(name, "renew", self.tokens[name]).exit_code, 0)

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES, fatal=st.just(0) | FATAL)
    def end(self, name: str, fatal: int) -> None:
        done = self.guard(name, "end", self.tokens[name], fatal=fatal)
        if done.exit_code == 0:
            self.check_keys()
        if done.exit_code != 79:  # What it kept before it died has been put in place.
            self.check_lost(name, done.exit_code, fatal)

    @precondition(lambda self: not self.is_half_undone)
    @rule(fatal=st.just(0) | FATAL)
    def keep(self, fatal: int) -> None:
        """Only of one folder: a rollback there knows nothing of what another one has left."""
        before, wanted, texts = self.host.applied("a"), self.host.now(), self.texts()
        vector = self.host.rmem()
        about = "about\tsince\tnow\nend\n"
        done = self.guard("a", "keep", self.tokens["a"], stdin=about, fatal=fatal)
        after = self.host.applied("a")
        if after and after[-1] not in before:
            self.base, self.vector = wanted, vector
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

    @precondition(lambda self: not self.is_half_undone and not self.is_spoiled)
    @rule(name=NAMES)
    def accept(self, name: str) -> None:
        """Not of what the kernel refuses: that would be the host's own from then on."""
        done = self.guard(name, "accept")
        assert done.exit_code in (0, HELD, NOTHING) or self.is_full, done

    @rule(force=st.booleans(), fatal=st.just(0) | FATAL)
    def roll_back(self, force: bool, fatal: int) -> None:
        words = ["force"] if force and not self.host.pending("b") else []
        had = self.host.applied("a")
        is_left = self.is_spoiled or ((self.theirs or self.is_edited_since()) and not words)
        done = self.guard("a", "rollback", *words, fatal=fatal)
        assert done.exit_code in (0, HELD, NOTHING) or fatal or is_left, done
        if had and not self.host.applied("a"):
            self.is_half_undone = False
            self.undone()
        elif had and (
            done.exit_code in KILLED
            or (done.exit_code == NOT_BACK and (self.kept or self.is_spoiled))
        ):
            self.is_half_undone = True
        if words:
            self.take_by_force()
        if done.exit_code in (0, NOTHING) and not self.host.pending("b"):
            assert not self.host.pending("a") or self.is_full
            self.check_keys()

    # What befalls them

    @precondition(lambda self: not self.is_full and not self.is_spoiled)
    @rule(name=NAMES)
    def spoil(self, name: str) -> None:
        """What is to be restored there is more than the kernel takes from now on.

        Where nothing was written since, the host has that value, and nothing is to be restored.
        """
        self.is_spoiled = self.replace_in(name, self.own_vector, self.spoiled)

    @precondition(lambda self: self.is_spoiled)
    @rule()
    def heal(self) -> None:
        for name in "ab":
            self.replace_in(name, self.spoiled, self.own_vector)
        self.is_spoiled = False

    def replace_in(self, name: str, old: str, new: str) -> bool:
        """Replace the value of RMEM in all that is to be restored, if it is the old one."""
        is_changed = False
        for pending in [*self.host.pending(name), *self.host.applied(name)]:
            for file in (self.host.folder(name) / pending).glob("**/snapshot"):
                text = file.read_text()
                if f"{RMEM}:{old}\n" in text and (file.parent / "left").exists():
                    file.write_text(text.replace(f"{RMEM}:{old}\n", f"{RMEM}:{new}\n"))
                    is_changed = True
        return is_changed

    @rule(title=IMPOSTORS)
    def pretend(self, title: str) -> None:
        """By a user without rights; a few of them are enough."""
        if len(self.impostors) < 3:
            self.impostors.append(title)
            self.host.impostor(self.host.nginx_title() if title == "its title" else title)

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
            self.check_keys()

    @precondition(lambda self: not self.is_half_undone)
    @rule(name=NAMES, fatal=st.just(0) | FATAL)
    def ask(self, name: str, fatal: int) -> None:
        done = self.guard(name, "status", fatal=fatal)
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
            self.check_keys()
            self.check_files()
            assert self.host.beside() == []
            if not self.is_edited:
                assert tuple(word_in(self.files[f]) for f in (MAIN, SITE)) == self.host.serves()

    def texts(self) -> dict[str, str]:
        return {name: file[0] for name, file in self.host.files().items()}

    def is_edited_since(self) -> bool:
        """Whether a file is neither as the keep has left it nor as that found it."""
        texts = self.texts()
        return any(texts[f] not in (self.kept[f], self.left[f]) for f in self.kept)

    def check_keys(self) -> None:
        assert (self.base, self.vector) == (self.host.now(), self.host.rmem())

    def undone(self) -> None:
        """What was applied is."""
        self.base, self.vector = dict(OWN), self.own_vector
        self.files |= self.kept
        self.kept = {}

    def check_files(self) -> None:
        """Nothing is there of ours but what stays."""
        self.files |= self.theirs
        self.theirs = {}
        result = self.host.files()
        assert self.files == {name: file[0] for name, file in result.items()}
        assert [file[1:] for file in result.values()] == [(0o644, 0, 0), (0o640, 0, 33)]

    def take_by_force(self) -> None:
        """A death may leave some of it to others."""
        for name, file in self.host.files().items():
            if name in self.theirs and file[0] in (self.files[name], self.kept.get(name)):
                del self.theirs[name]

    def check_lost(self, name: str, code: int, fatal: int) -> None:
        """Whoever is told that a session is over finds all of it restored."""
        if code == NOT_OURS and not any(map(self.host.pending, "ab")):
            self.check_keys()
        if (self.theirs or self.is_spoiled) and code in (FOREIGN, NOT_BACK):
            return
        assert code in (0, NOT_OURS) or (code == UNWRITABLE and self.is_full) or fatal, (name, code)

    def other(self, name: str) -> str:
        return "b" if name == "a" else "a"

    def teardown(self) -> None:
        """Whatever was: one rollback gives all of it back."""
        try:
            self.host.free()
            self.host.kill_all()
            self.heal()
            for name in "ba":
                self.host.lapse(name)
                words = ["force"] if self.theirs or self.is_edited_since() else []
                done = self.guard(name, "rollback", *words)
                if not self.host.applied("a"):
                    self.undone()
                self.take_by_force()
                assert done.exit_code in (0, NOTHING), done
            assert (OWN, self.own_vector) == (self.host.now(), self.host.rmem())
            for name in "ab":
                report = self.host.folder(name) / "report"
                lines = report.read_text() if report.exists() else ""
                assert not re.search(r"somebody else has changed (net|vm)\.", lines), lines
            assert [*self.host.pending("a"), *self.host.pending("b")] == []
            assert self.host.applied("a") == []
            self.check_files()
        finally:
            self._entered.__exit__(None, None, None)
            shutil.rmtree(self._folder)


def word_in(text: str) -> str:
    """What nginx says by this text of a file."""
    (word,) = re.findall(r"(?:add_header Main|return 200) (\w+);", text)
    return word


@pytest.mark.parametrize("part", range(PARTS))
def test_what_a_model_says_holds_for_random_sequences(part: int) -> None:
    run_state_machine_as_test(
        Guard,
        settings=settings(
            max_examples=-(-SEQUENCES // PARTS),
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize="SEQUENCES" not in os.environ,
            suppress_health_check=list(HealthCheck),
        ),
    )
