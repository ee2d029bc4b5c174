"""A lab, a study of it whose lease is short, and what every fault must leave behind.

The study names the lab's hosts one by one, as a user's file does: so they have the shortest lease
that a file may ask for.
"""

import json
import platform
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from faults.signalled import Point, prepare
from intop.domain.balancing import Balancing
from intop.domain.cluster import Cluster, HostAddress, LabSpec
from intop.domain.server import ServerName
from intop.domain.trial import Trial
from intop.lab import cluster as lab
from intop.lab import processes
from intop.lab.commands import find_program
from intop.store import Subject, opened
from kit.forked import PATIENCE_S, Forked
from kit.studies import RUN, wait_for

LEASE_S = 3
PROMISED_S = LEASE_S + 5
"""So long after the controller's death every key is as it was."""

COLLECT = ("collect", "--workload", "slt", "--samples", "8")
TRIALS = 9
"""That COLLECT makes: the default, and its samples."""

PARTS = ("lg", "lb", "b1", "b2", "b3")

MOVING = ("_ns_last", "nf_conntrack_count")
"""Keys that count what goes on."""
POLL_S = 0.2

FILE = """\
[study]
name = "small"
store = {store}
load_tool = "engine"
hints = false
{catalogue}

{cluster}
[workload.slt]
rate_rps = 100
connections = 8
threads = 1
duration_s = {duration_s}
warmup_s = 0

[budget]
collect_trials = 8
replicate_trials = 0
finalists = 1
pick_rounds = 1
trim_rounds = 0
judge_pairs = 3
sentinel_every = 100
prune_factor = 0
settle_limit_s = 10
# The machine that runs the tests may have other work.
max_foreign_cores = 1000
max_load_cpu = 1
max_lag = 1
max_steal_cores = 1000
max_steal = 0.99
"""


@dataclass(frozen=True)
class Site:
    """A lab and the folder of its study. `before` has the values of its hosts by their parts."""

    folder: Path
    store: Path
    name: str
    cluster: Cluster
    before: Mapping[str, list[str]]

    # The hosts

    @property
    def balancer(self) -> str:
        """What messages call the tuned host."""
        return self.cluster.load_balancer.name

    @property
    def state(self) -> Path:
        """The tuned host's folder of its own."""
        return Path(self.cluster.load_balancer.state_dir)

    def inside(self, part: str, command: str) -> str:
        """What a command prints in the namespace of a host."""
        words = ["ip", "netns", "exec", f"intop-{self.name}-{part}", "sh", "-c", command]
        return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout

    def pids(self, part: str, words: str) -> list[int]:
        """The processes of a host whose command line has these words."""
        listed = ["ip", "netns", "pids", f"intop-{self.name}-{part}"]
        pids = subprocess.check_output(listed, text=True, timeout=60).split()
        return [int(pid) for pid in pids if words in " ".join(processes.arguments(int(pid)))]

    def values(self, part: str) -> list[str]:
        """The keys that a host has for itself, each with its value."""
        inside = ["nsenter", f"--net=/run/netns/intop-{self.name}-{part}"]
        words = [*inside, "grep", "-rs", "", "/proc/sys/net"]
        # Its exit code says that it could not read those that are for writing only.
        text = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
        return [line for line in text.splitlines() if not any(key in line for key in MOVING)]

    def is_changed(self) -> bool:
        """Whether some key of the tuned host is not as it was."""
        return self.values("lb") != self.before["lb"]

    def given_back(self, since: float) -> float:
        """Wait until the tuned host is as it was; how many seconds after `since` that is."""
        deadline = time.monotonic() + PATIENCE_S
        while self.is_changed():
            assert time.monotonic() < deadline, (
                f"{self.balancer} is not given back: "
                f"{sorted(set(self.values('lb')) ^ set(self.before['lb']))}"
            )
            time.sleep(POLL_S)
        return time.monotonic() - since

    def wait_until_held(self) -> None:
        """A session has the tuned host."""
        wait_for(self.is_held, f"{self.balancer} to be held")

    def is_held(self) -> bool:
        """Whether a session has the tuned host."""
        return (self.state / "lock" / "token").exists()

    def wait_until_released(self) -> None:
        """No session has it."""
        wait_for(lambda: not (self.state / "lock").exists(), f"{self.balancer} to be released")

    def wait_until_watched(self) -> None:
        """A watchdog is at work on it."""
        wait_for(lambda: bool(self.pids("lb", " watch ")), f"a watchdog on {self.balancer}")

    def assert_untouched(self) -> None:
        """Every key of every host is as it was."""
        for part in PARTS:
            assert self.before[part] == self.values(part), part

    def start_sshd(self, part: str) -> None:
        """As the lab does."""
        sshd = find_program("sshd") or "sshd"
        folder = self.state.parents[1] / f"host-{part}"
        self.inside(part, f"{sshd} -f {folder}/sshd.conf -E {folder}/sshd.log")

    # The controller

    def start(self, *words: str) -> Forked:
        """intop in a process of its own."""
        return self._forked(words, None)

    def _forked(self, words: Sequence[str], point: Point | None) -> Forked:
        output = self.folder / f"said-{next(_NUMBERS)}"
        output.mkdir()
        return Forked(words, folder=self.folder, output=output, prepare=partial(prepare, point))

    def signalled(self, number: signal.Signals, step: str, count: int, moment: str) -> Forked:
        """COLLECT by a controller that gets a signal there; signalled.py has the words."""
        return self._forked(COLLECT, Point(number, step, count, moment))

    @contextmanager
    def stopped(self, step: str, count: int, moment: str) -> Iterator[Forked]:
        """COLLECT that stands still there; it goes on when it is sent SIGCONT."""
        with ending(self.signalled(signal.SIGSTOP, step, count, moment)) as process:
            wait_for(lambda: _state(process.pid) in "TZ", f"{step} {count} {moment}")
            assert process.poll() is None, process.communicate()
            yield process

    def run(self, *words: str, expected: tuple[int, ...] = (0,)) -> tuple[str, str]:
        """Standard output and error of a command that ends as expected."""
        return ended(self.start(*words), *expected)

    def assert_goes_on(self) -> None:
        """COLLECT goes on: what is stored stays, and further trials come. It is soon stopped."""
        before = self.trials()
        process = self.signalled(signal.SIGINT, "store", 1, "after")
        ended(process, 130)
        after = self.trials()
        assert before == after[: len(before)]
        assert len(before) < len(after)
        assert after[-1].usable, after[-1].detail
        self.assert_untouched()

    def write_file(
        self, *, duration_s: int = 1, lease_s: int = LEASE_S, catalogue: str = ""
    ) -> None:
        """intop.toml; the parameters are those of the catalogue's text, where there is one."""
        text = FILE.format(
            store=json.dumps(str(self.store)),
            catalogue='catalogue = "parameters.toml"' if catalogue else "",
            cluster=_tables(self.cluster, lease_s),
            duration_s=duration_s,
        )
        (self.folder / "intop.toml").write_text(text)
        (self.folder / "parameters.toml").write_text(catalogue)

    def trials(self) -> list[Trial]:
        """All trials in the store, which must open."""
        with opened(str(self.store)) as store:
            campaign = store.latest("small")
            if campaign is None:
                return []
            return store.trials(Subject(campaign=campaign, arch="x86", workload="slt"))

    def doctor(self) -> dict[str, Any]:
        """What doctor finds, such as what the watchdog has left to say."""
        (result,) = json.loads(self.run("doctor", "--json")[0])
        return dict(result)


_NUMBERS = count()


def ended(process: Forked, *expected: int) -> tuple[str, str]:
    """Standard output and error of a process that ends with one of these exit codes."""
    out, err, code = process.communicate()
    assert code in expected, f"exit code {code}: {err}\n{out}"
    assert "Traceback" not in err, err
    return out, err


def message(err: str) -> str:
    """The one message that a command ends with, whatever it said before."""
    lines = err.splitlines()
    (start,) = [n for n, line in enumerate(lines) if line.startswith("intop: ")]
    return "\n".join(lines[start:])


def finished(err: str) -> int:
    """How many trials of COLLECT a command's progress has told of as made."""
    texts = re.findall(rf"^\S+Z x86 slt: collect: (\d+)/{TRIALS},", err, re.MULTILINE)
    return int(texts[-1]) if texts else 0


@contextmanager
def site(letter: str, folder: Path, server: ServerName = "nginx") -> Iterator[Site]:
    """A lab with a study in a folder, which is made."""
    name = f"f{letter}{RUN}"
    balancing = Balancing(server=server)
    spec = LabSpec(name=name, arch="x86", machines=(platform.machine(),), balancing=balancing)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        made = Site(folder, folder / "small.db", name, lab.up(spec), {})
        before = {part: made.values(part) for part in PARTS}
        made = Site(folder, made.store, name, made.cluster, before)
        made.write_file()
        yield made
    finally:
        lab.down(name)


@contextmanager
def ending(process: Forked) -> Iterator[Forked]:
    """Whatever happens, the process is gone afterwards."""
    try:
        yield process
    finally:
        process.kill()


def _state(pid: int) -> str:
    """One letter, as the kernel has it: T stands still, Z has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _tables(cluster: Cluster, lease_s: int) -> str:
    """The cluster as tables of TOML, whose strings and lists are JSON's, too."""
    about = {
        "url": cluster.url,
        "server": cluster.server.name,
        "server_restart": cluster.server_restart,
        "static_paths": cluster.static_paths,
        "dynamic_path": cluster.dynamic_path,
        "machines": cluster.machines,
        "programs": cluster.programs,
    }
    lines = ["[cluster.x86]", *_fields(about)]
    for part in ("load_generator", "load_balancer"):
        lines.append(f"[cluster.x86.{part}]")
        lines += _fields(_host(getattr(cluster, part), lease_s))
    for backend in cluster.backends:
        lines += ["[[cluster.x86.backends]]", *_fields(_host(backend, lease_s))]
    return "\n".join(lines) + "\n"


def _host(address: HostAddress, lease_s: int) -> dict[str, Any]:
    output = ("name", "hostname", "key_file", "known_hosts", "state_dir")
    return {name: asdict(address)[name] for name in output} | {"lease_s": lease_s}


def _fields(table: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {json.dumps(value)}" for name, value in table.items()]
