"""Our keys for a host: those of the agent, key files and their certificates, by paramiko."""

import shlex
import socket
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import UnknownKeyType

from intop.errors import UnreachableError
from intop.hosts.ssh.config import Route

AGENT_LIMIT_S = 30.0
"""An agent may ask its user to agree to each use of a key."""
KINDS = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-")
"""Kinds that we can sign with by ourselves; a security key's signature is the agent's to get."""

_CERTIFIED = "-cert-v01"
_FIELDS = {
    "ssh-ed25519": 1,
    "ssh-rsa": 2,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
    "sk-ssh-ed25519@openssh.com": 2,
    "sk-ecdsa-sha2-nistp256@openssh.com": 3,
}
"""The number of fields of a public key of each kind, after its kind."""


# -- certificates, as OpenSSH writes them (its PROTOCOL.certkeys) ---------------------------------


@dataclass(frozen=True)
class _Certificate:
    """A certificate of a user's key."""

    file: Path
    blob: paramiko.pkey.PublicBlob
    plain: bytes
    """The public key that it is about."""


def _read(file: Path) -> _Certificate:
    """Return the certificate of a file. Raises OSError, and ValueError where there is none."""
    words = file.read_text(errors="replace").split()
    if len(words) < 2 or _CERTIFIED not in words[0]:
        raise ValueError("it is no certificate")
    blob = b64decode(words[1])
    plain = _plain_of(blob)
    if plain is None:
        raise ValueError(f"{words[0]} is no kind of certificate that intop knows")
    return _Certificate(file, paramiko.pkey.PublicBlob(words[0], blob), plain)


def _plain_of(blob: bytes) -> bytes | None:
    """Return the public key that a certificate is about; None for what is no certificate."""
    message = paramiko.Message(blob)
    certified = message.get_binary().decode(errors="replace")
    kind = certified.replace(
        f"{_CERTIFIED}@openssh.com", "@openssh.com" if "sk-" in certified else ""
    )
    if _CERTIFIED not in certified or kind not in _FIELDS:
        return None
    message.get_binary()  # a random number
    plain = paramiko.Message()
    plain.add_string(kind)
    for _ in range(_FIELDS[kind]):
        plain.add_string(message.get_binary())
    return plain.asbytes()


# -- keys ----------------------------------------------------------------------------------------


class _Agent(AgentSSH):
    """The agent behind a socket, or none without one. The environment may name another one."""

    def __init__(self, path: str | None) -> None:
        super().__init__()
        if path is None:
            return
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(AGENT_LIMIT_S)
        try:
            connection.connect(path)
            self._connect(connection)  # type: ignore[attr-defined]
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Hang up."""
        self._close()  # type: ignore[attr-defined]


@dataclass
class _Offer:
    """The keys that were tried."""

    tried: list[str] = field(default_factory=list)
    unusable: dict[Path, str] = field(default_factory=dict)
    """Reasons why files could not be tried."""


def authenticate(name: str, transport: paramiko.Transport, route: Route) -> None:
    """Offer our keys until one is taken.

    First come those of the agent that belong to an identity, then its others, then files: as with
    `ssh`. Nobody is ever asked for a passphrase.

    Raises:
        UnreachableError: None was taken. It says which were tried, and why others were not.
    """
    transport.auth_timeout = max(route.timeout_s, AGENT_LIMIT_S)
    wanted = _without_key(transport, route.user)
    if wanted is None:
        return
    if "publickey" not in wanted:
        raise UnreachableError(
            name, f"{route.where} takes no keys, only {', '.join(wanted)}: allow keys in its sshd"
        )
    offer = _Offer()
    with closing(_agent(route, offer)) as agent:
        for label, key in _keys(route, agent, offer):
            offer.tried.append(label)
            try:
                further = transport.auth_publickey(route.user, key)
            except paramiko.AuthenticationException:
                if not transport.is_active():
                    break
                continue
            if further:
                raise UnreachableError(
                    name,
                    f"{route.where} wants {', '.join(further)} besides the key, which can't be "
                    "given in the middle of a campaign: let the key be enough for this user",
                )
            return
    raise UnreachableError(name, _none_taken(route, offer, ended=not transport.is_active()))


def _without_key(transport: paramiko.Transport, user: str) -> list[str] | None:
    """Return the ways that the host takes, or None when it lets us in as we are."""
    try:
        transport.auth_none(user)
    except paramiko.BadAuthenticationType as error:
        return list(error.allowed_types)
    except paramiko.AuthenticationException:
        return ["publickey"]
    return None


def _agent(route: Route, offer: _Offer) -> _Agent:
    try:
        return _Agent(route.agent or None)
    except (OSError, paramiko.SSHException) as error:
        offer.unusable[Path(route.agent or "")] = f"is no agent that answers ({error})"
        return _Agent(None)


def _keys(route: Route, agent: AgentSSH, offer: _Offer) -> Iterator[tuple[str, paramiko.PKey]]:
    files = [file for file in route.identities if file.is_file()]
    publics = {file: _public(file) for file in files}
    own = {public: file for file, public in publics.items() if public is not None}
    held = _held(agent)
    papers = _certificates(route, offer)
    for public in [*own, *(public for public in held if public not in own)]:
        if public in own or not route.only_identities:
            for key in held.get(public, ()):
                yield from _of_agent(key, papers.get(public, ()))
    for file, known in publics.items():
        if known is None or known not in held:
            yield from _of_file(file, known, papers, offer)


def _held(agent: AgentSSH) -> dict[bytes, list[AgentKey]]:
    """Return the agent's keys by their public part, each certificate of it before the key alone."""
    held: dict[bytes, list[AgentKey]] = {}
    for key in agent.get_keys():
        plain = _plain_of(key.blob)
        if plain is None:
            held.setdefault(key.asbytes(), []).append(key)
        else:
            # Else paramiko would show the key alone as a certificate.
            key.inner_key = None  # type: ignore[attr-defined]
            held.setdefault(plain, []).insert(0, key)
    return held


def _certificates(route: Route, offer: _Offer) -> dict[bytes, list[_Certificate]]:
    """Return the certificates in files by the public part of their keys.

    They are those that are named, or else those beside the identities.
    """
    beside = [file.with_name(f"{file.name}-cert.pub") for file in route.identities]
    papers: dict[bytes, list[_Certificate]] = {}
    for file in route.certificates or [file for file in beside if file.is_file()]:
        try:
            certificate = _read(file)
        except (OSError, ValueError, IndexError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or error
            offer.unusable[file] = f"can't be used as a certificate ({reason})"
            continue
        papers.setdefault(certificate.plain, []).append(certificate)
    return papers


def _of_agent(key: AgentKey, papers: Iterable[_Certificate]) -> Iterator[tuple[str, paramiko.PKey]]:
    """Return the key with each of its certificates, and the key alone."""
    for certificate in papers if _plain_of(key.blob) is None else ():
        certified = AgentKey(key.agent, key.blob, key.comment)
        certified.public_blob = certificate.blob  # type: ignore[assignment]
        yield f"{_label(key)} with {certificate.file}", certified
    yield _label(key), key


def _label(key: AgentKey) -> str:
    return f"{key.comment or key.get_name()} (agent)"


def _of_file(
    file: Path, public: bytes | None, papers: Mapping[bytes, list[_Certificate]], offer: _Offer
) -> Iterator[tuple[str, paramiko.PKey]]:
    """Return the key with each of its certificates, and the key alone."""
    kind = _kind(public) if public else ""
    if kind and not kind.startswith(KINDS):
        offer.unusable[file] = f"is a {kind} key, which only an agent can use: {_adding(file)}"
        return
    try:
        key = paramiko.PKey.from_path(str(file))
        # One beside the file is among ours where it counts.
        key.public_blob = None
    except (TypeError, paramiko.PasswordRequiredException):
        offer.unusable[file] = f"is encrypted, and the agent doesn't have it: {_adding(file)}"
        return
    except (paramiko.SSHException, UnknownKeyType, OSError, ValueError) as error:
        offer.unusable[file] = f"can't be used ({error or 'it is no private key'})"
        return
    own = papers.get(key.asbytes(), ())
    for certificate in own:
        certified = paramiko.PKey.from_path(str(file))
        certified.public_blob = certificate.blob
        yield f"{file} with {certificate.file}", certified
    yield f"{file} without its certificate" if own else str(file), key


def _adding(file: Path) -> str:
    return f"type ssh-add {shlex.quote(str(file))} first"


def _public(file: Path) -> bytes | None:
    """Return the public part of a key file, readable even when the rest is encrypted."""
    readers: tuple[Callable[[Path], bytes], ...] = (_of_private, _of_itself, _of_public)
    for reader in readers:
        try:
            return reader(file)
        except (OSError, ValueError, IndexError):
            continue
    return None


_MAGIC = b"openssh-key-v1\0"


def _of_private(file: Path) -> bytes:
    """OpenSSH's PROTOCOL.key: cipher, its options, one key; the public part stands in the clear."""
    text = file.read_text()
    body = b64decode("".join(line for line in text.splitlines() if not line.startswith("-----")))
    if not body.startswith(_MAGIC):
        raise ValueError("not in OpenSSH's own format")
    message = paramiko.Message(body[len(_MAGIC) :])
    for _ in ("cipher", "key derivation", "its options"):
        message.get_binary()
    message.get_int()
    return message.get_binary()


def _of_public(file: Path) -> bytes:
    return b64decode(file.with_name(f"{file.name}.pub").read_text().split()[1])


def _of_itself(file: Path) -> bytes:
    """An identity may be a public key, which selects one of the agent's."""
    kind, encoded = file.read_text().split()[:2]
    public = b64decode(encoded)
    if _kind(public) != kind:
        raise ValueError("no public key")
    return public


def _kind(public: bytes) -> str:
    return paramiko.Message(public).get_binary().decode(errors="replace")


def _none_taken(route: Route, offer: _Offer, *, ended: bool) -> str:
    reasons = "".join(f". {file} {reason}" for file, reason in offer.unusable.items())
    if not offer.tried:
        missing = ", ".join(str(file) for file in route.identities if not file.is_file())
        absent = f"; there is no {missing}" if missing and not reasons else ""
        return f"no key for {route.where}: the agent has none to offer{absent}{reasons}"
    tried = ", ".join(offer.tried)
    if ended:
        return (
            f"{route.where} refused the keys {tried}, and then hung up: it takes no further tries. "
            f"Name the right one by key_file{reasons}"
        )
    return (
        f"{route.where} refused the key{'s' if len(offer.tried) > 1 else ''} {tried}{reasons}. "
        "Put the public key there (ssh-copy-id), or name another one by key_file"
    )
