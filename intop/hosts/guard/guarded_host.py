"""A host under the guard: the writes of its session."""

import hashlib
from collections.abc import Mapping, Sequence

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.parameter import PARTNERS, zeroed
from intop.errors import (
    ForeignChangeError,
    HostError,
    NginxRefusedError,
    RefusedValueError,
    UnreachableError,
    UsageError,
)
from intop.hosts.answers import joined, lines
from intop.hosts.guard import script
from intop.hosts.guard.script import KEPT, NOT_BACK, REFUSED
from intop.hosts.guard.state import by_kind, check
from intop.hosts.host import Completed, Host
from intop.hosts.nginx_files import (
    DRAIN_S,
    DRAINING,
    EFFECT_LIMIT_S,
    SHOWN,
    GuardedNginx,
    Sending,
)
from intop.hosts.sysctl import parse_values, path_of

KEEP_LIMIT_S = 120.0
"""A keep waits for the disk."""


class GuardedHost:
    """A host whose snapshot is taken and whose watchdog is armed."""

    def __init__(
        self,
        host: Host,
        token: str,
        snapshot: Mapping[str, str],
        originals: Mapping[str, str] | None = None,
        nginx: GuardedNginx | None = None,
        applied: Mapping[str, str] = {},
    ) -> None:
        self.snapshot = dict(snapshot)
        """The values that a restore puts back."""
        self.base = {**snapshot, **(originals or {})}
        """The values of keys that a configuration does not name.

        Those of the snapshot, but the `originals` for keys of an earlier apply.
        """
        self.nginx = nginx
        """nginx's files, where they are guarded."""
        self.applied = dict(applied)
        """The host's record of an earlier apply that it still has; empty where there is none."""
        self.draining = 0
        """Old workers of nginx that still served connections when the last write took effect."""
        self.is_left = False
        """Whether the session has ended with its values left there."""
        self.was_tuned = False
        """Whether the host may have had other values than the snapshot's.

        Whoever lets programs open their sockets under the snapshot again makes it False.
        """
        self._host = host
        self._token = token
        self._current = dict(snapshot)

    def apply(self, configuration: Configuration) -> None:
        """Make the host have this configuration, every other guarded key its base value.

        Values of nginx's directives become edits of its files as they were found; nginx takes them
        by a reload or a restart, after the sysctls are set, and shows what it has then. The host is
        asked also when nothing is to be written: whether it is still ours, and whether somebody
        else has changed a guarded key.

        Raises:
            ValueError: A key is not guarded.
            UsageError: No key can have a value like this.
            RefusedValueError: A value reads back as something else.
            ForeignChangeError: Somebody else has changed a key. Nothing is written then.
            NginxRefusedError: nginx does not take its files. They are as they were found then.
            UnreachableError: The watchdog has restored the host.
            HostError: The host can't note what is written.
        """
        values, directives = split_by_kind(configuration.values)
        unknown = set(values) - set(self.snapshot)
        if unknown or (directives and self.nginx is None):
            raise ValueError(f"not guarded: {', '.join(sorted(unknown or directives))}")
        for key, value in values.items():
            _check_value(key, value)
        sending = self.nginx.sending(directives) if self.nginx is not None else None
        wanted = _wanted(self.base, values)
        self.was_tuned |= bool(directives)
        self.was_tuned |= any(value != self.snapshot.get(key) for key, value in wanted.items())
        changes = {k: v for k, v in wanted.items() if self._current.get(k) != v}
        # Should we never hear how it went, the next call writes these again.
        self._current = {k: v for k, v in self._current.items() if k not in changes}
        self._read_back(self._write(changes, sending), changes, sending)

    def _write(self, changes: Mapping[str, str], sending: Sending | None) -> Completed:
        """Return the answer to a write that the host has taken."""
        listed = [
            f"{path_of(key)} {value}"
            for key, value in changes.items()
            # Its partner's value makes it zero; written, it would be refused or zero the partner.
            if not (value == "0" and changes.get(PARTNERS.get(key, ""), "0") != "0")
        ]
        words: tuple[str, ...] = ()
        limit_s = script.LIMIT_S
        if self.nginx is not None and sending is not None and sending.lines:
            listed += sending.lines
            words, limit_s = (sending.by, str(DRAIN_S)), EFFECT_LIMIT_S
            self.nginx.is_sent(sending)
        stdin = joined(listed)
        done = script.call(self._host, "write", self._token, *words, stdin=stdin, limit_s=limit_s)
        if done.exit_code == REFUSED and self.nginx is not None:
            self.nginx.is_refused()
            raise NginxRefusedError(self._host.address.name, done.message)
        check(self._host, done)
        return done

    def _read_back(
        self, done: Completed, changes: Mapping[str, str], sending: Sending | None
    ) -> None:
        """Check that the host has the changes, by its answer to a write."""
        name = self._host.address.name
        answer = by_kind(done.stdout, (SHOWN, DRAINING))
        read_back = parse_values(answer[""])
        if missing := [key for key in self.snapshot if key not in read_back]:
            raise ForeignChangeError(name, [f"{key} (is gone)" for key in missing])
        self._current |= read_back
        for key, value in changes.items():
            got = read_back[key]
            if got != value:
                raise RefusedValueError(name, key, value, got)
        if self.nginx is not None and sending is not None:
            self.nginx.is_done(sending, next(iter(answer[SHOWN]), None))
            self.draining = int(next(iter(answer[DRAINING]), "0"))

    @property
    def as_found(self) -> Configuration:
        """The configuration before the session: the default, unless an earlier apply stays."""
        return DEFAULT if self.snapshot == self.base else Configuration(self.snapshot)

    def value_before(self, key: str) -> str | None:
        """Return the value of a key, of the kernel or of nginx, from before the session."""
        if self.nginx is not None and key in self.nginx.own:
            return self.nginx.own[key]
        return self.snapshot.get(key)

    def renew(self) -> None:
        """Give a sign of life.

        Raises:
            HostError: The lease is lost.
        """
        check(self._host, script.call(self._host, "renew", self._token))

    def keep(
        self,
        configuration: Configuration,
        about: Mapping[str, str],
        file: tuple[str, str] | None = None,
    ) -> None:
        """Make the host have this configuration, and leave it so: that ends the session.

        `about` goes into the record that a rollback needs; `file` is the path and the text of a
        persistent file to be put in place. The host does all of it or nothing, whoever dies
        meanwhile.

        Raises:
            HostError: As for `apply`; or nothing stays, or not all of it (the message says which).
            UnreachableError: Nobody can tell whether it stays.
        """
        self.apply(configuration)
        values, directives = split_by_kind(configuration.values)
        record = [f"key\t{path_of(key)}" for key in values]
        record += [
            f"directive\t{key}\t{_word(self.value_before(key) or '')}\t{_word(value)}"
            for key, value in directives.items()
        ]
        record += [f"about\t{_word(name)}\t{_word(word)}" for name, word in about.items()]
        words: tuple[str, ...] = ()
        if file is not None:
            path, text = file
            body = text if text.endswith("\n") else f"{text}\n"
            record += [f"text\t{line}" for line in lines(body)]
            words = (path, hashlib.sha256(body.encode()).hexdigest())
        # nginx takes its files once more: the host can't know whether it has.
        limit_s = KEEP_LIMIT_S + (EFFECT_LIMIT_S if directives else 0)
        self._check_kept(self._keep(words, joined([*record, "end"]), limit_s))

    def _keep(self, words: Sequence[str], stdin: str, limit_s: float) -> Completed:
        # Whether its answer is ever heard or not: only the host knows now how the session ends.
        self.is_left = True
        try:
            return script.call(
                self._host, "keep", self._token, *words, stdin=stdin, limit_s=limit_s
            )
        except HostError as error:
            raise UnreachableError(
                self._host.address.name,
                f"{error.message}. Whether what was set there stays, was to be answered: within "
                f"{self._host.address.lease_s:g} s either all of it does or nothing, and intop "
                "status says which",
            ) from error

    def _check_kept(self, done: Completed) -> None:
        self.is_left = done.exit_code in (0, KEPT)
        name = self._host.address.name
        if done.exit_code == KEPT:
            raise HostError(
                name,
                f"{done.message}. Make that path writable and apply again, or undo "
                "it by intop rollback",
            )
        if done.exit_code == NOT_BACK:
            raise HostError(name, f"{done.message}. Nothing stays there")
        check(self._host, done)


def _check_value(key: str, value: str) -> None:
    """Raises UsageError for what no sysctl can have and no command can be given."""
    if "\0" in value:
        raise UsageError(f"{key}: a value can't have a NUL in it, got {value[:100]!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{key}: not a value that can be written: {value[:100]!r}") from error


def _wanted(snapshot: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Return the value of every guarded key. The partner of one that is set becomes 0 by itself."""
    partners = {key: zero for key, zero in zeroed(values).items() if key in snapshot}
    return {**snapshot, **partners, **values}


def _word(text: str) -> str:
    """Return a text as one field of a line of fields between tabs."""
    return " ".join(text.split())
