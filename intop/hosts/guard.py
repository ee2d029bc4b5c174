"""The guard: changes to a host that the host itself undoes when we go silent.

The work is done by `guard.sh` on the host; this module holds its lease and speaks with it.
"""

import getpass
import hashlib
import math
import os
import secrets
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress

from intop.domain.applied import title_of
from intop.domain.cluster import HostAddress
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.host_state import (
    ForeignChange,
    HostState,
    RollbackOutcome,
    RolledBack,
    Unrestored,
)
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.parameter import PARTNERS, zeroed
from intop.errors import (
    CommandError,
    ForeignChangeError,
    HostError,
    HostLockedError,
    IntopError,
    NginxRefusedError,
    RefusedValueError,
    UnreachableError,
    UsageError,
)
from intop.hosts import guard_script
from intop.hosts.answers import lines
from intop.hosts.guard_answers import foreign_changes, parse_rollback, parse_status, unrestored_keys
from intop.hosts.guard_script import STATE_FOLDER_ADVICE
from intop.hosts.host import Completed, Host, output
from intop.hosts.nginx_files import (
    CONTENT,
    DRAIN_S,
    DRAINING,
    EFFECT_LIMIT_S,
    FILE,
    SHOWN,
    GuardedNginx,
    TunableNginx,
    guarded_nginx,
)
from intop.hosts.sysctl import parse_values, path_of

UNWRITABLE, HELD, NOT_OURS, NOTHING, FOREIGN, KEPT, MISSING, REFUSED = (
    73,
    75,
    76,
    77,
    78,
    79,
    80,
    81,
)
"""Exit codes of guard.sh."""
WIDENED = "net.ipv4.tcp_allowed_congestion_control"
"""The kernel adds to it what tcp_congestion_control is set to; guard.sh restores it at the end."""
NOT_BACK = 1
"""What it ends with after a restore that is not complete."""
REPORT, APPLIED, ORIGINAL = "report\t", "applied\t", "original\t"
"""What lines of an answer begin with that are not of the snapshot."""
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
KEEP_LIMIT_S = 120.0
"""A keep waits for the disk."""


class GuardedHost:
    """A host whose snapshot is taken and whose watchdog is armed.

    `snapshot` is what a restore gives back, `base` what a key has that a configuration does not
    name: the same, but for keys of an earlier apply where their `originals` are asked for.
    `nginx` are nginx's files, where they are guarded, and `draining` how many of its old workers
    still served connections when the last configuration was in effect. `was_tuned` says that it
    may have had other values than the snapshot's; whoever lets programs open their sockets under
    the snapshot again makes it False. `applied` is what the host says of an earlier apply that it
    still has, empty where there is none.
    """

    def __init__(
        self,
        host: Host,
        token: str,
        snapshot: Mapping[str, str],
        originals: Mapping[str, str] | None = None,
        nginx: GuardedNginx | None = None,
        applied: Mapping[str, str] = {},
    ) -> None:
        self.nginx = nginx
        self.applied = dict(applied)
        self.draining = 0
        self._host = host
        self._token = token
        self.snapshot = dict(snapshot)
        self.base = {**snapshot, **(originals or {})}
        self._current = dict(snapshot)
        self.is_left = False
        self.was_tuned = False

    def apply(self, configuration: Configuration) -> None:
        """Make the host have this configuration, every other guarded key its base value.

        Values of nginx's directives become edits of its files as they were found; nginx takes them
        by a reload or a restart, after the sysctls are set, and shows what it has then. The host is
        asked also when nothing is to be written: whether it is still ours, and whether somebody
        else has changed a guarded key. Raises RefusedValueError when a value reads back as
        something else, ForeignChangeError when somebody else has changed a key (nothing is written
        then), ValueError for a key that is not guarded, UsageError for a value that no key can
        have, NginxRefusedError when nginx does not take its files (they are as they were found
        then), UnreachableError when the watchdog has taken the host back, HostError when the host
        can't note what is written.
        """
        values, directives = split_by_kind(configuration.values)
        unknown = set(values) - set(self.snapshot)
        if unknown or (directives and self.nginx is None):
            raise ValueError(f"not guarded: {', '.join(sorted(unknown or directives))}")
        for key, value in values.items():
            _check_value(key, value)
        sending = self.nginx.sending(directives) if self.nginx is not None else None
        self.was_tuned |= bool(directives)
        wanted = _wanted(self.base, values)
        self.was_tuned |= any(value != self.snapshot.get(key) for key, value in wanted.items())
        changes = {k: v for k, v in wanted.items() if self._current.get(k) != v}
        written = "".join(
            f"{path_of(key)} {value}\n"
            for key, value in changes.items()
            # Its partner's value makes it zero; written, it would be refused or zero the partner.
            if not (value == "0" and changes.get(PARTNERS.get(key, ""), "0") != "0")
        )
        # Should we never hear how it went, the next call writes these again.
        self._current = {k: v for k, v in self._current.items() if k not in changes}
        words: tuple[str, ...] = ()
        limit_s = None
        if self.nginx is not None and sending is not None and sending.lines:
            written += "".join(f"{line}\n" for line in sending.lines)
            words, limit_s = (sending.by, str(DRAIN_S)), EFFECT_LIMIT_S
            self.nginx.is_sent(sending)
        done = guard_script.call(
            self._host, "write", self._token, *words, stdin=written, limit_s=limit_s
        )
        name = self._host.address.name
        if done.exit_code == FOREIGN:
            raise ForeignChangeError(name, _told(foreign_changes(done.stdout)))
        if done.exit_code == REFUSED and self.nginx is not None:
            self.nginx.is_refused()
            raise NginxRefusedError(name, done.said)
        _check(self._host, done)
        said = _by_kind(done.stdout, (SHOWN, DRAINING))
        read_back = parse_values("".join(f"{line}\n" for line in said[""]))
        if missing := [key for key in self.snapshot if key not in read_back]:
            raise ForeignChangeError(name, [f"{key} (is gone)" for key in missing])
        self._current |= read_back
        for key, value in changes.items():
            got = read_back[key]
            if got != value:
                raise RefusedValueError(name, key, value, got)
        if self.nginx is not None and sending is not None:
            self.nginx.is_done(sending, next(iter(said[SHOWN]), None))
            self.draining = int(next(iter(said[DRAINING]), "0"))

    @property
    def as_found(self) -> Configuration:
        """What the host was found with: the default, unless an earlier apply's originals are."""
        return DEFAULT if self.snapshot == self.base else Configuration(self.snapshot)

    def found(self, key: str) -> str | None:
        """The value of a key, of the kernel or of nginx, that the host was found with."""
        if self.nginx is not None and key in self.nginx.own:
            return self.nginx.own[key]
        return self.snapshot.get(key)

    def renew(self) -> None:
        """Give a sign of life. Raises HostError when the lease is lost."""
        _check(self._host, guard_script.call(self._host, "renew", self._token))

    def keep(
        self,
        configuration: Configuration,
        about: Mapping[str, str],
        file: tuple[str, str] | None = None,
    ) -> None:
        """Make the host have this configuration, and leave it so: that ends the session.

        `about` goes into the record that a rollback needs; `file` is the path and the text of a
        persistent file to be put in place. The host does all of it or nothing, whoever dies
        meanwhile. Raises what `apply` does, HostError where nothing stays, or not all of it does
        (the message says which), UnreachableError where nobody can tell.
        """
        self.apply(configuration)
        name = self._host.address.name
        values, directives = split_by_kind(configuration.values)
        lines = [f"key\t{path_of(key)}" for key in values]
        lines += [
            f"directive\t{key}\t{_word(self.found(key) or '')}\t{_word(value)}"
            for key, value in directives.items()
        ]
        lines += [f"about\t{_word(n)}\t{_word(told)}" for n, told in about.items()]
        words: tuple[str, ...] = ()
        if file is not None:
            path, text = file
            body = text if text.endswith("\n") else f"{text}\n"
            lines += [f"text\t{line}" for line in body[:-1].split("\n")]
            words = (path, hashlib.sha256(body.encode()).hexdigest())
        stdin = "".join(f"{line}\n" for line in [*lines, "end"])
        # nginx takes its files once more: the host can't know whether it has.
        limit_s = KEEP_LIMIT_S + (EFFECT_LIMIT_S if directives else 0)
        # Whether its answer is ever heard or not: only the host knows now how the session ends.
        self.is_left = True
        try:
            done = guard_script.call(
                self._host, "keep", self._token, *words, stdin=stdin, limit_s=limit_s
            )
        except HostError as error:
            raise UnreachableError(
                name,
                f"{error.message}. Whether what was set there stays, was to be answered: within "
                f"{self._host.address.lease_s:g} s either all of it does or nothing, and intop "
                "status says which",
            ) from error
        self.is_left = done.exit_code in (0, KEPT)
        if done.exit_code == FOREIGN:
            raise ForeignChangeError(name, _told(foreign_changes(done.stdout)))
        if done.exit_code == KEPT:
            raise HostError(
                name,
                f"{done.said}. Make that path writable and apply again, or undo "
                "it by intop rollback",
            )
        if done.exit_code == NOT_BACK:
            raise HostError(name, f"{done.said}. Nothing stays there")
        _check(self._host, done)


@contextmanager
def guarded(
    host: Host,
    keys: Iterable[str],
    *,
    originals: bool = False,
    restart: str = "",
    nginx: TunableNginx | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[GuardedHost]:
    """Hold the host's lock for these keys; at the end every one of them is as it was found.

    But where the session has left its values there. With `originals` what an earlier apply has
    left is guarded, too, and is measured against the values of before that. The lease is renewed
    from a thread of ours, and lapses `lease_s` after our death. `restart` is the command that the
    host's report names for programs that keep what they got of a trial's values. With `nginx` its
    files are guarded, too, and `restart` is what the host restarts it by. `say` hears why it
    takes longer, and what the host reports of earlier sessions. Raises HostLockedError when
    another session holds the host and keeps it; ForeignChangeError when somebody else has changed
    what an earlier apply has left, and its `originals` are asked for; HostError when the host can't
    store the snapshot, can't be watched, or still lacks values of before an earlier session, and,
    at the end, when a key is not as it was found.
    """
    address = host.address
    guard_script.install(host)
    token = secrets.token_hex(8)
    keys = set(keys)
    partners = {PARTNERS[key] for key in keys if key in PARTNERS} - keys
    # As it is written: lines and blanks of a command mean something.
    words = ("originals" if originals else "own", restart.strip())
    if nginx is not None and not restart.strip():
        raise ValueError("nginx's files can't be guarded without a command that restarts it")
    snapshot, before, ours, applied = _begin(host, token, keys, partners, say, words, nginx)
    session = GuardedHost(host, token, snapshot, before, ours, applied)
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
        if not session.is_left:
            _end(host, token, None if nginx is None else EFFECT_LIMIT_S)


def status(host: Host) -> HostState:
    """Who holds a host and what is changed there; a host whose lease has lapsed is restored first.

    Raises HostError when it can't be asked, and for an answer that was cut off.
    """
    done = guard_script.ask(host, "status", none=0)
    if done.exit_code != 0:
        raise HostError(host.address.name, f"guard.sh ended with {done.exit_code}: {done.said}")
    return parse_status(done.stdout)


UNWRITABLE_FOLDERS = """
while IFS='' read -r folder; do
    case $folder in /*) there=$folder ;; *) continue ;; esac
    while [ ! -e "$there" ]; do there=${there%/*}; there=${there:-/}; done
    { [ -d "$there" ] && [ -w "$there" ]; } || printf '%s\\n' "$folder"
done
"""


def unwritable(host: Host, folders: Iterable[str]) -> tuple[str, ...]:
    """Those of these absolute paths that can be no folder to write to. Nothing is written.

    Raises HostError when the host can't be asked.
    """
    asked = "".join(f"{folder}\n" for folder in folders)
    return tuple(lines(output(host, UNWRITABLE_FOLDERS, stdin=asked)))


def rollback(host: Host, *, force: bool = False) -> RolledBack:
    """Give a host back by what is on it alone: every guarded key its value from before.

    A host that a living session holds is left alone, and so are values that somebody else has set
    meanwhile, unless `force`. Raises HostError when the host can't be asked.
    """
    words = ("rollback", "force") if force else ("rollback",)
    # It may restart nginx, and may have to wait for a restart that was cut off.
    done = guard_script.ask(host, *words, none=NOTHING, limit_s=EFFECT_LIMIT_S)
    outcome = OUTCOMES.get(done.exit_code)
    found = parse_rollback(done.stdout, outcome or "partly")
    # It says which keys are not back; another failure, as of an older guard.sh, ends with 1, too.
    told = found.foreign or found.unrestored or found.file_is in ("edited", "stuck")
    if outcome is None or (outcome == "partly" and not told):
        raise HostError(host.address.name, f"guard.sh ended with {done.exit_code}: {done.said}")
    return found


def _told(changes: Iterable[ForeignChange]) -> list[str]:
    return [f"{c.key} ({c.left!r} is {c.now!r} now)" for c in changes]


def _word(text: str) -> str:
    """In a line of words between tabs."""
    return " ".join(text.split())


def _begin(
    host: Host,
    token: str,
    keys: AbstractSet[str],
    partners: AbstractSet[str],
    say: Callable[[str], None],
    more: tuple[str, ...],
    nginx: TunableNginx | None,
) -> tuple[dict[str, str], dict[str, str], GuardedNginx | None, dict[str, str]]:
    """The values of the keys, and of those partners that the host has; their originals; nginx; what
    the host says of an earlier apply.

    `more` are the last words of guard.sh's `begin`.
    """
    address = host.address
    paths = [path_of(key) for key in sorted(keys | partners)]
    paths += [] if nginx is None else _file_names(address, nginx)
    done = _taken(host, token, paths, say, more)
    if done.exit_code == FOREIGN:
        raise ForeignChangeError(address.name, _told(foreign_changes(done.stdout)))
    if done.exit_code == MISSING:
        raise HostError(address.name, _not_back(address, unrestored_keys(done.stdout)))
    _check(host, done)
    said = _by_kind(done.stdout, (REPORT, APPLIED, ORIGINAL, FILE, CONTENT))
    for line in said[REPORT]:
        say(f"{address.name} reports: {line}")
    applied = dict(line.split("\t", 1) for line in said[APPLIED] if "\t" in line)
    if said[APPLIED] and "originals" not in more:
        say(_applied_there(address, applied))
    snapshot, before = (parse_values("".join(f"{x}\n" for x in said[k])) for k in ("", ORIGINAL))
    if WIDENED not in keys:
        snapshot.pop(WIDENED, None)
    if missing := sorted(keys - set(snapshot)):
        _end(host, token)
        raise CommandError(address.name, f"can't be read there: {', '.join(missing)}")
    ours = None
    if nginx is not None:
        try:
            ours = guarded_nginx(address.name, nginx, said[FILE], said[CONTENT])
        except IntopError:
            _end(host, token)
            raise
    before = {key: value for key, value in before.items() if key in snapshot}
    return snapshot, before, ours, applied


def _file_names(address: HostAddress, nginx: TunableNginx) -> list[str]:
    """The paths of nginx's files, a line each. Raises HostError for one that can't be a line."""
    paths = list(nginx.conf.sources)
    if strange := [path for path in paths if not (path.startswith("/") and path.isprintable())]:
        raise HostError(address.name, f"a file with this path can't be guarded: {strange[0]!r}")
    return paths


def _taken(
    host: Host,
    token: str,
    paths: Iterable[str],
    say: Callable[[str], None],
    more: tuple[str, ...],
) -> Completed:
    """What guard.sh answers to `begin`, when nobody else has the host any more.

    Raises HostLockedError when somebody keeps it.
    """
    address = host.address
    lease = str(math.ceil(address.lease_s))
    owner = " ".join(f"{_user()}@{socket.gethostname()} (process {os.getpid()})".split())
    asked = "".join(f"{path}\n" for path in paths)
    deadline = time.monotonic() + address.lease_s + TAKEOVER_GRACE_S
    told = False
    while True:
        with _undone_when_lost(address):
            done = guard_script.call(host, "begin", token, lease, owner, *more, stdin=asked)
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
    return done


def _by_kind(text: str, kinds: Iterable[str]) -> dict[str, list[str]]:
    """The lines of an answer by what they begin with, without that."""
    said: dict[str, list[str]] = {"": [], **{kind: [] for kind in kinds}}
    for line in lines(text):
        kind = next((k for k in said if k and line.startswith(k)), "")
        said[kind].append(line.removeprefix(kind))
    return said


def _applied_there(address: HostAddress, about: Mapping[str, str]) -> str:
    return (
        f"{address.name} has {title_of(about)} applied since {about.get('since', '?')}: what "
        "is the default here, is not the host's own (intop rollback gives that back)"
    )


def _not_back(address: HostAddress, keys: Iterable[Unrestored]) -> str:
    """Why no session can begin, and what to type."""
    commands = "\n".join(each.command for each in keys)
    folder = shlex.quote(address.state_dir)
    return (
        "values of an earlier session could not be restored, and would become the default here. As "
        f"root, type there:\n{commands}\nor, to take the values of now for the host's own: "
        f"sh {folder}/guard.sh {folder} accept"
    )


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


def _end(host: Host, token: str, limit_s: float | None = None) -> None:
    with _undone_when_lost(host.address):
        done = guard_script.call(host, "end", token, limit_s=limit_s)
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
        for c in foreign_changes(done.stdout)
    ]
    problems += [
        f"{u.key}: {u.why}: {u.command}" if u.why else f"could not be restored: {u.command}"
        for u in unrestored_keys(done.stdout)
    ]
    if done.exit_code == NOT_BACK:
        said = "\n".join(problems or [done.said])
        raise HostError(
            host.address.name, f"not everything is as it was found; as root, type there:\n{said}"
        )


def _renew_until(session: GuardedHost, lease_s: float, stop: threading.Event) -> None:
    """From begin to begin a third of the lease goes by, however long the host takes to answer."""
    pause_s = lease_s / 3
    while not stop.wait(pause_s):
        began = time.monotonic()
        # One that fails may have been a hiccup. When the lock is really gone, the next write finds
        # out and says so, in the thread that can act on it.
        with suppress(HostError):
            session.renew()
        pause_s = max(0.0, lease_s / 3 - (time.monotonic() - began))


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
    partners = {key: zero for key, zero in zeroed(values).items() if key in snapshot}
    return {**snapshot, **partners, **values}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # of a container, perhaps, that has no name for its user
        return f"user {os.getuid()}"
