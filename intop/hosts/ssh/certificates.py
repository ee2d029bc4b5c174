"""Certificates of users' keys, as OpenSSH writes them (its PROTOCOL.certkeys)."""

from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path

import paramiko

MARK = "-cert-v01"
FIELDS = {
    "ssh-ed25519": 1,
    "ssh-rsa": 2,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
    "sk-ssh-ed25519@openssh.com": 2,
    "sk-ecdsa-sha2-nistp256@openssh.com": 3,
}
"""Of how many fields a public key of each kind is made, after its kind."""


@dataclass(frozen=True)
class Certificate:
    """A certificate, the file it is in, and the `plain` public key that it is about."""

    file: Path
    blob: paramiko.pkey.PublicBlob
    plain: bytes


def read(file: Path) -> Certificate:
    """Return the certificate of a file. Raises OSError, and ValueError where there is none."""
    words = file.read_text(errors="replace").split()
    if len(words) < 2 or MARK not in words[0]:
        raise ValueError("it is no certificate")
    blob = b64decode(words[1])
    plain = plain_of(blob)
    if plain is None:
        raise ValueError(f"{words[0]} is no kind of certificate that intop knows")
    return Certificate(file, paramiko.pkey.PublicBlob(words[0], blob), plain)


def plain_of(blob: bytes) -> bytes | None:
    """Return the public key that a certificate is about; None for what is no certificate."""
    message = paramiko.Message(blob)
    certified = message.get_binary().decode(errors="replace")
    kind = certified.replace(f"{MARK}@openssh.com", "@openssh.com" if "sk-" in certified else "")
    if MARK not in certified or kind not in FIELDS:
        return None
    message.get_binary()  # a random number
    plain = paramiko.Message()
    plain.add_string(kind)
    for _ in range(FIELDS[kind]):
        plain.add_string(message.get_binary())
    return plain.asbytes()
