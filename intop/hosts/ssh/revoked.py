"""RevokedHostKeys: a list of keys that no host may have, as text or as OpenSSH's own KRL."""

import subprocess
import tempfile
from base64 import b64encode
from pathlib import Path

KRL = b"SSHKRL\n\0"
ASK_LIMIT_S = 20


def refusal(file: Path, kind: str, key: bytes) -> str | None:
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
