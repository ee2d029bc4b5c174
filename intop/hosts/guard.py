"""The guard: changes to a host that the host itself undoes when we go silent.

The work is done by `guard.sh` on the host; this module holds its lease and speaks with it.
"""

import getpass
import os
import re
import secrets
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources

from intop.domain.cluster import HostAddress
from intop.domain.configuration import Configuration
from intop.domain.host_state import (
    ForeignChange,
    HostState,
    KeyChange,
    KeyValue,
    RollbackOutcome,
    RolledBack,
    Unrestored,
)
from intop.errors import (
    CommandError,
    HostError,
    HostLockedError,
    RefusedValueError,
    UnreachableError,
)
from intop.hosts.host import Completed, Host, output
from intop.hosts.sysctl import key_of, parse_values, path_of

HELD, NOT_OURS, NOTHING = 75, 76, 77
"""Exit codes of guard.sh."""
OUTCOMES: Mapping[int, RollbackOutcome] = {
    0: "restored",
    1: "partly",
    HELD: "held",
    NOTHING: "nothing",
}
"""What they say after a rollback."""

TAKEOVER_GRACE_S = 10.0


class GuardedHost:
    """A host whose snapshot is taken and whose watchdog is armed."""

    def __init__(self, host: Host, token: str, snapshot: Mapping[str, str]) -> None:
        self._host = host
        self._token = token
        self.snapshot = dict(snapshot)
        self._current = dict(snapshot)

    def apply(self, configuration: Configuration) -> None:
        """Make the host have this configuration, every other guarded key its snapshot value.

        Raises RefusedValueError when a value reads back as something else, ValueError for a key
        that is not guarded, UnreachableError when the watchdog has taken the host back.
        """
        unknown = set(configuration.values) - set(self.snapshot)
        if unknown:
            raise ValueError(f"not guarded: {', '.join(sorted(unknown))}")
        wanted = {**self.snapshot, **configuration.values}
        changes = {k: v for k, v in wanted.items() if self._current.get(k) != v}
        if not changes:
            return
        lines = "".join(f"{path_of(key)} {value}\n" for key, value in changes.items())
        # Should we never hear how it went, the next call writes these again.
        self._current = {k: v for k, v in self._current.items() if k not in changes}
        done = _call(self._host, "write", self._token, stdin=lines)
        _check(self._host, done)
        read_back = parse_values(done.stdout)
        self._current |= read_back
        for key, value in changes.items():
            got = read_back.get(key)
            if got != value:
                raise RefusedValueError(self._host.address.name, key, value, got)

    def renew(self) -> None:
        """Give a sign of life. Raises HostError when the lease is lost."""
        _check(self._host, _call(self._host, "renew", self._token))


@contextmanager
def guarded(
    host: Host, keys: Iterable[str], *, say: Callable[[str], None] = lambda _: None
) -> Iterator[GuardedHost]:
    """Hold the host's lock for these keys; at the end every one of them is as it was found.

    The lease is renewed from a thread of ours, and lapses `lease_s` after our death. `say` hears
    why it takes longer. Raises HostLockedError when another session holds the host and keeps it.
    """
    address = host.address
    script = resources.files("intop.hosts").joinpath("guard.sh").read_text()
    host.put(address.state_dir, {"guard.sh": script})
    token = secrets.token_hex(8)
    snapshot = _begin(host, token, sorted(set(keys)), say)
    session = GuardedHost(host, token, snapshot)
    stop = threading.Event()
    renewing = threading.Thread(
        target=_renew_until, args=(session, address.lease_s, stop), daemon=True
    )
    renewing.start()
    try:
        yield session
    finally:
        stop.set()
        renewing.join(timeout=address.lease_s)
        _end(host, token)


def status(host: Host) -> HostState:
    """Who holds a host and what is changed there; a host whose lease has lapsed is restored first.

    Raises HostError when it can't be asked.
    """
    folder = shlex.quote(host.address.state_dir)
    return parse_status(
        output(host, f"[ ! -f {folder}/guard.sh ] || sh {folder}/guard.sh {folder} status")
    )


def rollback(host: Host, *, force: bool = False) -> RolledBack:
    """Give a host back by what is on it alone: every guarded key its value from before.

    A host that a living session holds is left alone, and so are values that somebody else has set
    meanwhile, unless `force`. Raises HostError when the host can't be asked.
    """
    folder = shlex.quote(host.address.state_dir)
    words = "rollback force" if force else "rollback"
    done = host.run(
        f"[ -f {folder}/guard.sh ] || exit {NOTHING}; sh {folder}/guard.sh {folder} {words}"
    )
    outcome = OUTCOMES.get(done.exit_code)
    if outcome is None:
        _check(host, done)
        raise CommandError(host.address.name, f"guard.sh ended with {done.exit_code}")
    return parse_rollback(done.stdout, outcome)


def parse_status(text: str) -> HostState:
    """What `guard.sh status` printed: a line of fields between tabs for each fact."""
    facts = {"holder": "", "since": "", "lease_s": "", "silent_s": "", "watchdog": ""}
    changed: list[KeyChange] = []
    reports: list[str] = []
    for line in text.splitlines():
        match line.split("\t"):
            case ["key", path, before, now]:
                changed.append(KeyChange(key=key_of(path), before=before, now=now))
            case ["report", *words]:
                reports.append(" ".join(words))
            case [fact, value] if fact in facts:
                facts[fact] = value
    return HostState(
        holder=facts["holder"],
        since=facts["since"],
        lease_s=_seconds(facts["lease_s"]),
        silent_s=_seconds(facts["silent_s"]),
        is_watched={"alive": True, "dead": False}.get(facts["watchdog"]),
        changed=tuple(changed),
        foreign=_foreign(text),
        reports=tuple(reports),
    )


def parse_rollback(text: str, outcome: RollbackOutcome) -> RolledBack:
    """What `guard.sh rollback` printed, a line of fields between tabs for each key."""
    restored: list[KeyValue] = []
    for line in text.splitlines():
        match line.split("\t"):
            case ["restored", path, value]:
                restored.append(KeyValue(key=key_of(path), value=value))
    return RolledBack(
        restored=tuple(restored),
        foreign=_foreign(text),
        unrestored=_unrestored(text),
        outcome=outcome,
    )


def _foreign(text: str) -> tuple[ForeignChange, ...]:
    found: list[ForeignChange] = []
    for line in text.splitlines():
        match line.split("\t"):
            case ["foreign", path, left, now, command]:
                found.append(ForeignChange(key=key_of(path), left=left, now=now, command=command))
    return tuple(found)


def _unrestored(text: str) -> tuple[Unrestored, ...]:
    found: list[Unrestored] = []
    for line in text.splitlines():
        match line.split("\t"):
            case ["unrestored", path, value, command]:
                found.append(Unrestored(key=key_of(path), value=value, command=command))
    return tuple(found)


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _begin(host: Host, token: str, keys: list[str], say: Callable[[str], None]) -> dict[str, str]:
    address = host.address
    lease = str(int(address.lease_s))
    owner = f"{getpass.getuser()}@{socket.gethostname()} (process {os.getpid()})"
    paths = "".join(f"{path_of(key)}\n" for key in keys)
    deadline = time.monotonic() + address.lease_s + TAKEOVER_GRACE_S
    told = False
    while True:
        with _undone_when_lost(address):
            done = _call(host, "begin", token, lease, owner, stdin=paths)
        if done.exit_code != HELD:
            break
        if not told:
            say(f"{address.name} is {done.stdout.strip()}; waiting for that lease to lapse")
            told = True
        if time.monotonic() > deadline:
            raise HostLockedError(
                address.name, f"{done.stdout.strip()}. End that session first, or wait for it"
            )
        time.sleep(1)
    _check(host, done)
    snapshot = parse_values(done.stdout)
    if missing := [key for key in keys if key not in snapshot]:
        _end(host, token)
        raise CommandError(address.name, f"can't be read there: {', '.join(missing)}")
    return snapshot


@contextmanager
def _undone_when_lost(address: HostAddress) -> Iterator[None]:
    """Say what becomes of a host whose connection is lost while it is taken or given back."""
    try:
        yield
    except UnreachableError as error:
        raise UnreachableError(
            address.name,
            f"{error.message}. What was set there is undone by its watchdog within "
            f"{address.lease_s:g} s, or was lost with its power. What was measured is stored. "
            "Look at it with intop doctor; then the same command (tune with --resume) goes on",
        ) from error


def _end(host: Host, token: str) -> None:
    with _undone_when_lost(host.address):
        done = _call(host, "end", token)
    if done.exit_code == NOT_OURS:
        raise UnreachableError(
            host.address.name,
            "its watchdog has restored it before we were done, since it heard nothing from us",
        )
    if done.exit_code != 0:
        raise HostError(
            host.address.name,
            f"not everything is as it was found; as root, type there:\n{done.stdout}",
        )


def _renew_until(session: GuardedHost, lease_s: float, stop: threading.Event) -> None:
    while not stop.wait(lease_s / 3):
        # One that fails may have been a hiccup. When the lock is really gone, the next write finds
        # out and says so, in the thread that can act on it.
        with suppress(HostError):
            session.renew()


def _call(host: Host, verb: str, *words: str, stdin: str = "") -> Completed:
    folder = host.address.state_dir
    command = shlex.join(["sh", f"{folder}/guard.sh", folder, verb, *words])
    return host.run(command, stdin=stdin)


def _check(host: Host, done: Completed) -> None:
    if done.exit_code == NOT_OURS:
        raise UnreachableError(host.address.name, done.stderr.strip())
    if done.exit_code != 0:
        raise CommandError(
            host.address.name, f"guard.sh ended with {done.exit_code}: {done.stderr.strip()}"
        )
