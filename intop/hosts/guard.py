"""The guard: changes to a host that the host itself undoes when we go silent.

The work is done by `guard.sh` on the host; this module holds its lease and speaks with it.
"""

import getpass
import math
import os
import re
import secrets
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
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
from intop.domain.parameter import PARTNERS
from intop.errors import (
    CommandError,
    ForeignChangeError,
    HostError,
    HostLockedError,
    RefusedValueError,
    UnreachableError,
    UsageError,
)
from intop.hosts.answers import lines
from intop.hosts.host import Completed, Host, output
from intop.hosts.sysctl import key_of, parse_values, path_of

UNWRITABLE, HELD, NOT_OURS, NOTHING, FOREIGN = 73, 75, 76, 77, 78
"""Exit codes of guard.sh."""
NOT_BACK = 1
"""What it ends with after a restore that is not complete."""
REPORT = "report\t"
STATE_FOLDER_ADVICE = (
    "Make room there or make it writable, or give the host another folder as state_dir"
)
GOES_ON = (
    "What was measured is stored. Look at it with intop doctor; then the same command (tune with "
    "--resume) goes on"
)
"""The next step after a host was lost."""
OUTCOMES: Mapping[int, RollbackOutcome] = {
    0: "restored",
    NOT_BACK: "partly",
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

        The host is asked also when nothing is to be written: whether it is still ours, and whether
        somebody else has changed a guarded key. Raises RefusedValueError when a value reads back as
        something else, ForeignChangeError when somebody else has changed a key (nothing is written
        then), ValueError for a key that is not guarded, UsageError for a value that no key can
        have, UnreachableError when the watchdog has taken the host back, HostError when the host
        can't note what is written.
        """
        unknown = set(configuration.values) - set(self.snapshot)
        if unknown:
            raise ValueError(f"not guarded: {', '.join(sorted(unknown))}")
        for key, value in configuration.values.items():
            _check_value(key, value)
        wanted = _wanted(self.snapshot, configuration.values)
        changes = {k: v for k, v in wanted.items() if self._current.get(k) != v}
        written = "".join(
            f"{path_of(key)} {value}\n"
            for key, value in changes.items()
            # Its partner's value makes it zero; written, it would be refused or zero the partner.
            if not (value == "0" and changes.get(PARTNERS.get(key, ""), "0") != "0")
        )
        # Should we never hear how it went, the next call writes these again.
        self._current = {k: v for k, v in self._current.items() if k not in changes}
        done = _call(self._host, "write", self._token, stdin=written)
        name = self._host.address.name
        if done.exit_code == FOREIGN:
            changed = [f"{c.key} ({c.left!r} is {c.now!r} now)" for c in _foreign(done.stdout)]
            raise ForeignChangeError(name, changed)
        _check(self._host, done)
        read_back = parse_values(done.stdout)
        if missing := [key for key in self.snapshot if key not in read_back]:
            raise ForeignChangeError(name, [f"{key} (is gone)" for key in missing])
        self._current |= read_back
        for key, value in changes.items():
            got = read_back[key]
            if got != value:
                raise RefusedValueError(name, key, value, got)

    def renew(self) -> None:
        """Give a sign of life. Raises HostError when the lease is lost."""
        _check(self._host, _call(self._host, "renew", self._token))


@contextmanager
def guarded(
    host: Host, keys: Iterable[str], *, say: Callable[[str], None] = lambda _: None
) -> Iterator[GuardedHost]:
    """Hold the host's lock for these keys; at the end every one of them is as it was found.

    The lease is renewed from a thread of ours, and lapses `lease_s` after our death. `say` hears
    why it takes longer, and what the host reports of earlier sessions. Raises HostLockedError when
    another session holds the host and keeps it; HostError when the host can't store the snapshot,
    and, at the end, when a key is not as it was found.
    """
    address = host.address
    script = resources.files("intop.hosts").joinpath("guard.sh").read_text()
    try:
        host.put(address.state_dir, {"guard.sh": script})
    except CommandError as error:
        raise HostError(
            address.name,
            f"the state folder {address.state_dir} can't be written, so nothing was changed there. "
            f"{STATE_FOLDER_ADVICE}\n{error.message}",
        ) from error
    token = secrets.token_hex(8)
    keys = set(keys)
    partners = {PARTNERS[key] for key in keys if key in PARTNERS} - keys
    snapshot = _begin(host, token, keys, partners, say)
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


def is_held(host: Host) -> bool:
    """Whether the lock is there. Unlike `status`, this never makes a host restore itself."""
    return bool(output(host, f"[ ! -d {shlex.quote(host.address.state_dir)}/lock ] || echo held"))


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
    found = parse_rollback(done.stdout, outcome or "partly")
    # It says which keys are not back; another failure, as of an older guard.sh, ends with 1, too.
    if outcome is None or (outcome == "partly" and not found.foreign + found.unrestored):
        raise HostError(host.address.name, f"guard.sh ended with {done.exit_code}: {done.said}")
    return found


def parse_status(text: str) -> HostState:
    """What `guard.sh status` printed: a line of fields between tabs for each fact."""
    facts = {"holder": "", "since": "", "lease_s": "", "silent_s": "", "watchdog": ""}
    changed: list[KeyChange] = []
    reports: list[str] = []
    for line in lines(text):
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
    for line in lines(text):
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
    for line in lines(text):
        match line.split("\t"):
            case ["foreign", path, left, now, command]:
                found.append(ForeignChange(key=key_of(path), left=left, now=now, command=command))
    return tuple(found)


def _unrestored(text: str) -> tuple[Unrestored, ...]:
    found: list[Unrestored] = []
    for line in lines(text):
        match line.split("\t"):
            case ["unrestored", path, value, command]:
                found.append(Unrestored(key=key_of(path), value=value, command=command))
    return tuple(found)


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _begin(
    host: Host,
    token: str,
    keys: AbstractSet[str],
    partners: AbstractSet[str],
    say: Callable[[str], None],
) -> dict[str, str]:
    """The values of the keys, and of those partners that the host has."""
    address = host.address
    lease = str(math.ceil(address.lease_s))
    owner = " ".join(f"{_user()}@{socket.gethostname()} (process {os.getpid()})".split())
    paths = "".join(f"{path_of(key)}\n" for key in sorted(keys | partners))
    deadline = time.monotonic() + address.lease_s + TAKEOVER_GRACE_S
    told = False
    while True:
        with _undone_when_lost(address):
            done = _call(host, "begin", token, lease, owner, stdin=paths)
        if done.exit_code != HELD:
            break
        if not told:
            say(f"{address.name} is {done.said}; waiting for that lease to lapse")
            told = True
        if time.monotonic() > deadline:
            raise HostLockedError(
                address.name, f"{done.said}. End that session first, or wait for it"
            )
        time.sleep(1)
    _check(host, done)
    said = lines(done.stdout)
    for line in said:
        if line.startswith(REPORT):
            say(f"{address.name} reports: {line.removeprefix(REPORT)}")
    snapshot = parse_values("".join(f"{line}\n" for line in said if not line.startswith(REPORT)))
    if missing := sorted(keys - set(snapshot)):
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
            f"{address.lease_s:g} s, or was lost with its power. {GOES_ON}",
        ) from error


def _end(host: Host, token: str) -> None:
    with _undone_when_lost(host.address):
        done = _call(host, "end", token)
    if done.exit_code == NOT_OURS:
        raise UnreachableError(
            host.address.name,
            "its watchdog has restored it before we were done, since it heard nothing from us. "
            f"{GOES_ON}",
        )
    if done.exit_code not in (0, NOT_BACK):
        _check(host, done)
    problems = [
        f"somebody else has changed {c.key}: it was left at {c.left!r} and is {c.now!r}, "
        f"so it was left alone: {c.command}"
        for c in _foreign(done.stdout)
    ]
    problems += [f"could not be restored: {u.command}" for u in _unrestored(done.stdout)]
    if done.exit_code == NOT_BACK:
        said = "\n".join(problems or [done.said])
        raise HostError(
            host.address.name, f"not everything is as it was found; as root, type there:\n{said}"
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
    """Raises UnreachableError when the lock is lost, HostError when the guard has failed."""
    said = done.said
    if done.exit_code == NOT_OURS:
        raise UnreachableError(host.address.name, said)
    if done.exit_code == UNWRITABLE:
        raise HostError(host.address.name, f"{said}. {STATE_FOLDER_ADVICE}")
    if done.exit_code != 0:
        raise HostError(host.address.name, f"guard.sh ended with {done.exit_code}: {said}")


def _check_value(key: str, value: str) -> None:
    """Raises UsageError for what no sysctl can have and no command can be given."""
    if "\0" in value:
        raise UsageError(f"{key}: a value can't have a NUL in it, got {value[:100]!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{key}: not a value that can be written: {value[:100]!r}") from error


def _wanted(snapshot: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """What every guarded key is to be. The partner of one that is set becomes 0 by itself."""
    zeroed = {
        PARTNERS[key]: "0" for key, value in values.items() if key in PARTNERS and value != "0"
    }
    return {**snapshot, **{k: v for k, v in zeroed.items() if k in snapshot}, **values}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # of a container, perhaps, that has no name for its user
        return f"user {os.getuid()}"
