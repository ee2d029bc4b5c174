"""A session of the guard: its lock on a host, and its lease."""

import math
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from intop import process
from intop.domain.applied import title_of
from intop.domain.cluster import HostAddress
from intop.domain.host_state import Unrestored
from intop.domain.parameter import PARTNERS
from intop.errors import (
    CommandError,
    HostError,
    HostLockedError,
    IntopError,
    UnreachableError,
)
from intop.hosts.answers import joined
from intop.hosts.guard import script
from intop.hosts.guard.guarded_host import GuardedHost
from intop.hosts.guard.script import HELD, MISSING, NOT_BACK, NOT_OURS
from intop.hosts.guard.state import by_kind, check, foreign_changes, unrestored_keys
from intop.hosts.host import Completed, Host
from intop.hosts.nginx_files import CONTENT, EFFECT_LIMIT_S, FILE, TunableNginx, guarded_nginx
from intop.hosts.sysctl import parse_values, path_of

WIDENED = "net.ipv4.tcp_allowed_congestion_control"
"""The kernel adds to it what tcp_congestion_control is set to; guard.sh restores it at the end."""
REPORT, APPLIED, ORIGINAL = "report\t", "applied\t", "original\t"
"""Beginnings of the lines of an answer that are not of the snapshot."""
GOES_ON = (
    "What was measured is stored. Look at it with intop doctor; then the same command (tune with "
    "--resume) goes on"
)
"""The next step after a host was lost."""
TAKEOVER_GRACE_S = 10.0

Say = Callable[[str], None]


@contextmanager
def guarded(
    host: Host,
    keys: Iterable[str],
    *,
    originals: bool = False,
    restart: str = "",
    nginx: TunableNginx | None = None,
    say: Say = lambda _: None,
) -> Iterator[GuardedHost]:
    """Hold the host's lock for these keys, and restore them at the end.

    A session that ends by `GuardedHost.keep` leaves its values there. The lease is renewed from a
    thread of ours, and lapses `lease_s` after our death.

    Args:
        host: The host to hold.
        keys: The sysctls to guard.
        originals: Also guard what an earlier apply has left, and measure against the values of
            before that.
        restart: The command that the host's report names for programs that keep what they got of a
            trial's values. With `nginx` the host restarts it by this command.
        nginx: The nginx whose files are guarded, too.
        say: Hears why it takes longer, and what the host reports of earlier sessions.

    Raises:
        HostLockedError: Another session holds the host and keeps it.
        ForeignChangeError: Somebody else has changed what an earlier apply has left, and its
            `originals` are asked for.
        HostError: The host can't store the snapshot, can't be watched, or still lacks values of
            before an earlier session. At the end: a key is not as it was found.
    """
    address = host.address
    script.install(host)
    token = secrets.token_hex(8)
    if nginx is not None and not restart.strip():
        raise ValueError("nginx's files can't be guarded without a command that restarts it")
    # As it is written: lines and blanks of a command mean something.
    words = ("originals" if originals else "own", restart.strip())
    session = _begin(host, token, set(keys), words, nginx, say)
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
            _end(host, token, script.LIMIT_S if nginx is None else EFFECT_LIMIT_S)


# -- the beginning -------------------------------------------------------------------------------


def _begin(
    host: Host,
    token: str,
    keys: set[str],
    words: tuple[str, ...],
    nginx: TunableNginx | None,
    say: Say,
) -> GuardedHost:
    """Return the session that begins; `words` are the last ones of guard.sh's `begin`."""
    address = host.address
    partners = {PARTNERS[key] for key in keys if key in PARTNERS} - keys
    paths = [path_of(key) for key in sorted(keys | partners)]
    paths += [] if nginx is None else _file_names(address, nginx)
    done = _taken(host, token, paths, words, say)
    if done.exit_code == MISSING:
        raise HostError(address.name, _not_back(address, unrestored_keys(done.stdout)))
    check(host, done)
    answer = by_kind(done.stdout, (REPORT, APPLIED, ORIGINAL, FILE, CONTENT))
    for line in answer[REPORT]:
        say(f"{address.name} reports: {line}")
    applied = dict(line.split("\t", 1) for line in answer[APPLIED] if "\t" in line)
    if answer[APPLIED] and "originals" not in words:
        say(_applied_there(address, applied))
    try:
        snapshot = _snapshot(address, answer[""], keys)
        originals = parse_values(answer[ORIGINAL])
        files = None
        if nginx is not None:
            files = guarded_nginx(address.name, nginx, answer[FILE], answer[CONTENT])
    except IntopError:
        _end(host, token)
        raise
    originals = {key: value for key, value in originals.items() if key in snapshot}
    return GuardedHost(host, token, snapshot, originals, files, applied)


def _snapshot(address: HostAddress, listed: Iterable[str], keys: set[str]) -> dict[str, str]:
    """Return the values of the keys, and of those partners that the host has."""
    snapshot = parse_values(listed)
    if WIDENED not in keys:
        snapshot.pop(WIDENED, None)
    if missing := sorted(keys - set(snapshot)):
        raise CommandError(address.name, f"can't be read there: {', '.join(missing)}")
    return snapshot


def _file_names(address: HostAddress, nginx: TunableNginx) -> list[str]:
    """Return the paths of nginx's files. Raises HostError for one that can't be a line."""
    paths = list(nginx.conf.sources)
    if strange := [path for path in paths if not (path.startswith("/") and path.isprintable())]:
        raise HostError(address.name, f"a file with this path can't be guarded: {strange[0]!r}")
    return paths


def _taken(
    host: Host, token: str, paths: Iterable[str], words: tuple[str, ...], say: Say
) -> Completed:
    """Return guard.sh's answer to `begin`, when nobody else has the host any more.

    Raises:
        HostLockedError: Somebody keeps the host.
    """
    address = host.address
    lease = str(math.ceil(address.lease_s))
    owner = process.title()
    asked = joined(paths)
    deadline = time.monotonic() + address.lease_s + TAKEOVER_GRACE_S
    is_waiting = False
    while True:
        with _undone_when_lost(address):
            done = script.call(host, "begin", token, lease, owner, *words, stdin=asked)
        if done.exit_code != HELD:
            return done
        if not is_waiting:
            say(f"{address.name} is {done.message}; waiting for that lease to lapse")
            is_waiting = True
        if time.monotonic() > deadline:
            raise HostLockedError(
                address.name, f"{done.message}. End that session first, or wait for it"
            )
        time.sleep(1)


def _applied_there(address: HostAddress, about: Mapping[str, str]) -> str:
    return (
        f"{address.name} has {title_of(about)} applied since {about.get('since', '?')}: what "
        "is the default here, is not the host's own (intop rollback gives that back)"
    )


def _not_back(address: HostAddress, keys: Iterable[Unrestored]) -> str:
    """Return why no session can begin, and what to type."""
    commands = "\n".join(key.command for key in keys)
    folder = shlex.quote(address.state_dir)
    return (
        "values of an earlier session could not be restored, and would become the default here. As "
        f"root, type there:\n{commands}\nor, to take the values of now for the host's own: "
        f"sh {folder}/guard.sh {folder} accept"
    )


# -- the end -------------------------------------------------------------------------------------


@contextmanager
def _undone_when_lost(address: HostAddress) -> Iterator[None]:
    """Say what becomes of a host whose connection is lost while it is taken or restored."""
    try:
        yield
    except UnreachableError as error:
        raise UnreachableError(
            address.name,
            f"{error.message}. What was set there is undone by its watchdog within "
            f"{address.lease_s:g} s, or was lost with its power. {GOES_ON}",
        ) from error


def _end(host: Host, token: str, limit_s: float = script.LIMIT_S) -> None:
    with _undone_when_lost(host.address):
        done = script.call(host, "end", token, limit_s=limit_s)
    if done.exit_code == NOT_OURS:
        raise UnreachableError(
            host.address.name,
            "its watchdog has restored it before we were done, since it heard nothing from us. "
            f"{GOES_ON}",
        )
    if done.exit_code != NOT_BACK:
        check(host, done)
        return
    problems = [
        f"somebody else has changed {c.key}: it was left at {c.left!r} and is {c.now!r}, "
        f"so it was left alone: {c.command}"
        for c in foreign_changes(done.stdout)
    ]
    problems += [
        f"{u.key}: {u.why}: {u.command}" if u.why else f"could not be restored: {u.command}"
        for u in unrestored_keys(done.stdout)
    ]
    listed = "\n".join(problems or [done.message])
    raise HostError(
        host.address.name, f"not everything is as it was found; as root, type there:\n{listed}"
    )


def _renew_until(session: GuardedHost, lease_s: float, stop: threading.Event) -> None:
    """Renew the lease once in a third of it, however long the host takes to answer."""
    pause_s = lease_s / 3
    while not stop.wait(pause_s):
        began = time.monotonic()
        # One that fails may have been a hiccup. When the lock is really gone, the next write finds
        # out and says so, in the thread that can act on it.
        with suppress(HostError):
            session.renew()
        pause_s = max(0.0, lease_s / 3 - (time.monotonic() - began))
