"""KVM that was tried on this machine and does not work, remembered until its next start.

A try takes up to 20 s when a guest hangs, so not every start of a lab shall have one. Another
start of the machine, or another QEMU, may change the answer.
"""

import json
from pathlib import Path

from intop.lab import image
from intop.lab.commands import run

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def record() -> Path:
    """Where it is remembered; without this file KVM is tried again."""
    return image.CACHE_FOLDER / "kvm-failed.json"


def failed_before(qemu: str) -> str | None:
    """Why KVM did not work with the program `qemu` since this machine started, if it was tried."""
    try:
        known = json.loads(record().read_text())
        reason = str(known.pop("reason"))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return reason if known == _circumstances(qemu) else None


def remember(qemu: str, reason: str) -> None:
    """Remember that it did not work, and why."""
    draft = record().with_suffix(".draft")
    draft.write_text(json.dumps({**_circumstances(qemu), "reason": reason}) + "\n")
    draft.replace(record())


def _circumstances(qemu: str) -> dict[str, str]:
    version = run([qemu, "--version"]).partition("\n")[0]
    return {"boot": BOOT_ID.read_text().strip(), "qemu": version}
