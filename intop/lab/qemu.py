"""QEMU: the machine that a guest is, and what carries it out."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from intop.domain.cluster import native_arch
from intop.lab import image, recipe
from intop.lab.commands import find_program, run
from intop.lab.image import Image

Accelerator = Literal["kvm", "tcg"]

MEMORY_MIB = 768
KVM_DEVICE = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Machine:
    """QEMU's words for a machine of an architecture."""

    program: str
    package: str
    kind: str
    tcg_cpu: str
    console: str
    network_card: str
    random: str


MACHINES: Mapping[str, Machine] = {
    "arm": Machine(
        program="qemu-system-aarch64",
        package="qemu-system-arm",
        kind="virt",
        tcg_cpu="neoverse-n1",  # a server's; `max` takes twice the time for everything
        console="ttyAMA0",
        network_card="virtio-net-device",
        random="virtio-rng-device",
    ),
    "x86": Machine(
        program="qemu-system-x86_64",
        package="qemu-system-x86",
        kind="q35",
        tcg_cpu="Nehalem",
        console="ttyS0",
        network_card="virtio-net-pci,romfile=",
        random="virtio-rng-pci",
    ),
}


@dataclass(frozen=True)
class Files:
    """A guest's files on this machine."""

    root: Path

    @property
    def script(self) -> Path:
        """The script for the guest; it holds the guest's private key."""
        return self.root / "guest-start"

    @property
    def console(self) -> Path:
        """The messages of the guest's kernel and first process."""
        return self.root / "console.log"

    @property
    def log(self) -> Path:
        """QEMU's own messages."""
        return self.root / "qemu.log"

    @property
    def pid(self) -> Path:
        """The id of QEMU's process."""
        return self.root / "qemu.pid"


def program(arch: str) -> str:
    """Return the QEMU for machines of an architecture, with its path where it is installed."""
    name = MACHINES[arch].program
    return find_program(name) or name


def command(
    arch: str,
    accelerator: Accelerator,
    image: Image,
    files: Files,
    interface: str,
    *,
    has_disk: bool = False,
) -> list[str]:
    """Return QEMU's command line. It ends when the guest runs, and leaves it behind.

    With a disk it is a machine, which may start itself again; without one it ends then.
    """
    machine = MACHINES[arch]
    if accelerator == "kvm":
        processor = ["-accel", "kvm", "-cpu", "host"]
        kind = f"{machine.kind},gic-version=host" if arch == "arm" else machine.kind
    else:
        # Without a limit the translated code takes a gigabyte of the machine's memory.
        processor = ["-accel", "tcg,tb-size=128", "-cpu", machine.tcg_cpu]
        kind = machine.kind
    return [
        *(program(arch), "-nodefaults", "-no-user-config"),
        *("-machine", kind, *processor, "-smp", "1", "-m", str(MEMORY_MIB)),
        *("-kernel", str(image.kernel), "-initrd", str(image.file_system)),
        *("-append", kernel_words(arch, accelerator, has_disk=has_disk)),
        *(("-drive", f"file={image.disk},if=virtio,format=raw") if has_disk else ("-no-reboot",)),
        *("-fw_cfg", f"name={recipe.LAB_FILE},file={files.script}"),
        *("-netdev", f"tap,id=link,ifname={interface},script=no,downscript=no"),
        *("-device", f"{machine.network_card},netdev=link"),
        *("-device", machine.random),
        *("-serial", f"file:{files.console}", "-display", "none"),
        *("-daemonize", "-pidfile", str(files.pid)),
    ]


def kernel_words(arch: str, accelerator: Accelerator, *, has_disk: bool = False) -> str:
    """Return the guest kernel's words. When it panics it starts again, or takes QEMU with it."""
    # As in images for clouds, the one interface is eth0.
    init = "root=/dev/vda ro net.ifnames=0" if has_disk else "rdinit=/init"
    words = f"console={MACHINES[arch].console} quiet {init} panic=-1 audit=0 psi=1 nokaslr"
    # What guards a real processor against itself is of no use to an emulated one, and slow there.
    return words if accelerator == "kvm" else f"{words} mitigations=off"


def accelerators(arch: str) -> tuple[Accelerator, ...]:
    """Return the means to try, in order: KVM only carries out the machine's own architecture."""
    own = arch == native_arch() and KVM_DEVICE.exists()
    return ("kvm", "tcg") if own else ("tcg",)


def emulation(accelerator: Accelerator) -> str:
    """Return the words that set trials on such a guest apart."""
    return "KVM" if accelerator == "kvm" else f"TCG on {platform.machine()}"


# -- KVM that does not work ----------------------------------------------------------------------

# A try takes up to 20 s when a guest hangs, so not every start of a lab shall have one. Another
# start of the machine, or another QEMU, may change the answer.


def kvm_record() -> Path:
    """Return the file that remembers a failure; without it KVM is tried again."""
    return image.CACHE_FOLDER / "kvm-failed.json"


def kvm_failure(arch: str) -> str | None:
    """Return why KVM did not work since this machine started, if it was tried."""
    try:
        known = json.loads(kvm_record().read_text())
        reason = str(known.pop("reason"))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return reason if known == _circumstances(arch) else None


def remember_kvm_failure(arch: str, reason: str) -> None:
    """Remember that KVM did not work, and why."""
    draft = kvm_record().with_suffix(".draft")
    draft.write_text(json.dumps({**_circumstances(arch), "reason": reason}) + "\n")
    draft.replace(kvm_record())


def _circumstances(arch: str) -> dict[str, str]:
    version = run([program(arch), "--version"]).partition("\n")[0]
    return {"boot": BOOT_ID.read_text().strip(), "qemu": version}
