"""Known and revoked host keys: OpenSSH's files, read as `ssh` reads them.

Names may be hashed, patterns or negated, and keys revoked. What a certificate authority signs
counts as unknown, since paramiko takes no host certificates; the refusal says so.
"""

import hashlib
import hmac
import re
import shlex
import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SSH_PORT = 22
MARKERS = ("", "@revoked", "@cert-authority")
"""Words before a line's names; ssh skips a line with any other."""
KRL = b"SSHKRL\n\0"
"""The beginning of OpenSSH's own list of revoked keys."""
ASK_LIMIT_S = 20


@dataclass(frozen=True)
class Entry:
    """A key that is listed for a host."""

    path: Path
    line: int
    """The number of its line, from 1 on."""
    kind: str
    key: bytes
    revoked: bool
    authority: bool
    """Whether it signs keys of hosts."""


def known_name(hostname: str, port: int) -> str:
    """Return the name of a host in known_hosts."""
    return hostname.lower() if port == SSH_PORT else f"[{hostname.lower()}]:{port}"


def entries(paths: Iterable[Path], name: str) -> list[Entry]:
    """Return all keys listed for `name`, authorities too.

    Files that aren't there list none; other OSErrors are raised.
    """
    listed: list[Entry] = []
    for path in paths:
        try:
            text = path.read_text(errors="replace")
        except FileNotFoundError:
            continue
        listed.extend(_entries(path, text, name))
    return listed


def kinds(paths: Sequence[Path], hostname: str, port: int) -> set[str]:
    """Return the kinds of keys, such as `ssh-ed25519`, that are listed for a host."""
    listed = _plain(entries(paths, known_name(hostname, port)))
    listed = listed or _plain(entries(paths, known_name(hostname, SSH_PORT)))
    return {entry.kind for entry in listed}


def _plain(listed: Iterable[Entry]) -> list[Entry]:
    """Return the keys that a host may show itself."""
    return [entry for entry in listed if not entry.revoked and not entry.authority]


def refusal(
    paths: Sequence[Path], hostname: str, port: int, kind: str, key: bytes, *, ignored: str = ""
) -> str | None:
    """Return why a host's key is not to be trusted, with the next step; None when it is known.

    A key that is known for the host's usual port holds at its other ports too, as with `ssh`.

    Args:
        paths: The known_hosts files.
        hostname: The host's name.
        port: Its port.
        kind: The kind of the key, such as `ssh-ed25519`.
        key: The public key in SSH's encoding.
        ignored: A keyword of ssh's that could name the key, and that intop does not follow.
    """
    name = known_name(hostname, port)
    listed = entries(paths, name)
    usual = entries(paths, known_name(hostname, SSH_PORT))
    for entry in (*listed, *usual):
        if entry.revoked and entry.key == key:
            return f"its host key is marked as revoked in {entry.path}, line {entry.line}"
    if key in [entry.key for entry in _plain(listed) or _plain(usual)]:
        return None
    note = _note([entry for entry in (*listed, *usual) if entry.authority])
    note += f"intop doesn't run {ignored}, which ssh asks for keys. " if ignored else ""
    if changed := _plain(listed):
        where, line = changed[0].path, changed[0].line
        removing = shlex.join(["ssh-keygen", "-f", str(where), "-R", name])
        return (
            f"its host key is not the known one ({where}, line {line}), but "
            f"{_print_of(kind, key)}. {note}"
            f"If the host was really set up anew, remove the old key with: {removing}"
        )
    adding = _adding(paths, name, kind, key)
    return f"its host key is not known: {_print_of(kind, key)}. {note}{adding}"


def revocation(file: Path, kind: str, key: bytes) -> str | None:
    """Return why a host's key is not to be trusted; None where the file doesn't list it.

    As with ssh, a file that can't be read revokes every key.
    """
    encoded = b64encode(key)
    try:
        content = file.read_bytes()
        if not content.startswith(KRL):
            is_listed = encoded in content.split()
        else:
            with tempfile.NamedTemporaryFile(prefix="intop-key-") as public:
                public.write(kind.encode() + b" " + encoded + b"\n")
                public.flush()
                words = ["ssh-keygen", "-Q", "-f", str(file), public.name]
                done = subprocess.run(words, capture_output=True, timeout=ASK_LIMIT_S)
            is_listed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"RevokedHostKeys {file} can't be read: {error}"
    return f"its host key is revoked in {file} (RevokedHostKeys)" if is_listed else None


def _note(authorities: Sequence[Entry]) -> str:
    if not authorities:
        return ""
    path, line = authorities[0].path, authorities[0].line
    return (
        f"The @cert-authority of {path}, line {line}, is for this host, but intop can't check "
        "certificates of hosts: it needs a line with the host's own key. "
    )


def _adding(paths: Sequence[Path], name: str, kind: str, key: bytes) -> str:
    usable = [path for path in paths if str(path) != "/dev/null"]
    if not usable:
        return "No file of known hosts is in use: name one by known_hosts"
    line = shlex.quote(f"{name} {kind} {b64encode(key).decode()}")
    file = shlex.quote(str(usable[0]))
    folder = "" if usable[0].parent.is_dir() else f"mkdir -p {shlex.quote(str(usable[0].parent))}; "
    return (
        "If `ssh-keygen -lf` says the same of /etc/ssh/ssh_host_*_key.pub on that host, "
        f"add it with: {folder}echo {line} >> {file}"
    )


def _print_of(kind: str, key: bytes) -> str:
    """Return a key's fingerprint as `ssh-keygen -l` prints it."""
    digest = b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
    return f"SHA256:{digest} ({kind})"


def _entries(path: Path, text: str, name: str) -> Iterator[Entry]:
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#") or marker not in MARKERS:
            continue
        names, kind, encoded = fields[:3]
        if not _matches(names, name):
            continue
        try:
            key = b64decode(encoded, validate=True)
        except ValueError:
            continue
        yield Entry(
            path,
            number,
            kind,
            key,
            revoked=marker == "@revoked",
            authority=marker == "@cert-authority",
        )


def _matches(names: str, name: str) -> bool:
    if names.startswith("|"):
        return _is_hash_of(names, name)
    patterns = names.lower().split(",")
    if any(p.startswith("!") and _pattern(p[1:]).fullmatch(name) for p in patterns):
        return False
    return any(_pattern(p).fullmatch(name) for p in patterns)


def _is_hash_of(hashed: str, name: str) -> bool:
    """Return whether this is `|1|salt|HMAC-SHA1 of the name by that salt`, both in base 64."""
    fields = hashed.split("|")
    try:
        salt, digest = (b64decode(field, validate=True) for field in fields[2:])
    except ValueError:
        return False
    expected = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return fields[1] == "1" and hmac.compare_digest(expected, digest)


def _pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern: only `*` and `?` are special, brackets enclose a host with a port."""
    special = {"*": ".*", "?": "."}
    return re.compile("".join(special.get(c, re.escape(c)) for c in pattern))
