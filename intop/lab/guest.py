"""A guest: the lab's load balancer as a virtual machine with a kernel of its own.

QEMU runs in the switch's namespace, so it belongs to the lab as every other process there. What
the guest is told about its lab is one shell script, read through QEMU's firmware interface: the
host's key and who may enter, the configurations of sshd and nginx, the address, the link.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from intop.domain.balancing import Balancing
from intop.domain.cluster import Link
from intop.errors import LabError
from intop.lab import kvm, network, processes, qemu, recipe, texts
from intop.lab.commands import last_lines, require_programs, start
from intop.lab.image import Image
from intop.lab.qemu import Accelerator, Files

FOLDER = Path(recipe.GUEST_FOLDER)
"""In the guest: what it was told, and its servers' files."""
STATE_FOLDER = "/var/lib/intop"
"""In the guest: where the guard keeps its snapshot."""
RESTART_SCRIPT = FOLDER / "server-restart"
"""In the guest: what opens nginx's sockets anew."""
NGINX = "/usr/sbin/nginx"
OPEN_FILES = 65536

TUN_DEVICE = Path("/dev/net/tun")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long one may take to answer before it is given up, by KVM and emulated."""

    kvm_s: float
    tcg_s: float


PATIENCE = Patience(kvm_s=20.0, tcg_s=180.0)
"""A guest takes 2, and 5 to 10 on a quiet machine."""


# -- texts ---------------------------------------------------------------------------------------


def script(
    address: str,
    prefix: int,
    link: Link | None,
    files: Mapping[str, str],
    sysctls: Sequence[tuple[str, str]] = (),
) -> str:
    """What the guest's first process runs: write the files, set up the link, start the servers."""
    parts = ["set -e", "umask 077", f"cd {FOLDER}", "mkdir -p keys home"]
    parts += [written(name, text) for name, text in files.items()]
    device = network.INTERFACE
    parts += [
        "umask 022",
        "echo guest > /proc/sys/kernel/hostname",
        "ip link set lo up",
        f"ip address add {address}/{prefix} dev {device}",
        f"ip link set {device} up",
    ]
    parts += [" ".join(command) for command in network.shaping(link)]
    parts += [f"echo '{value}' > /proc/sys/{key.replace('.', '/')}" for key, value in sysctls]
    parts += [
        f"/usr/sbin/sshd -f {FOLDER}/sshd.conf -E {FOLDER}/sshd.log",
        f"sh {RESTART_SCRIPT}",
    ]
    return "\n".join(parts) + "\n"


def written(name: str, text: str) -> str:
    """The shell's words for a file; none of our texts has a line with nothing but its end mark."""
    mark = "END-OF-FILE-FOR-GUEST"
    if mark in text.splitlines():
        raise LabError(f"{name} has a line {mark!r}")
    return f"cat > {name} <<'{mark}'\n{text.rstrip(chr(10))}\n{mark}"


def lab_files(
    address: str,
    backends: Sequence[str],
    host_key: str,
    authorized: str,
    balancing: Balancing = texts.USUAL,
) -> dict[str, str]:
    """What a lab gives its guest, by path below the guest's folder."""
    sshd = texts.sshd_config(address, FOLDER, FOLDER / "keys", network.BALANCER, use_pam=False)
    nginx = texts.balancer_config(
        FOLDER, "www-data www-data", backends, open_files=OPEN_FILES, balancing=balancing
    )
    return {
        f"keys/host-{network.BALANCER}": host_key,
        "keys/authorized_keys": authorized,
        "sshd.conf": sshd,
        "nginx.conf": nginx,
        RESTART_SCRIPT.name: texts.restart_script(texts.nginx_start(NGINX), FOLDER),
    }


def prepared(
    subnet: IPv4Network,
    backends: Sequence[str],
    link: Link | None,
    keys: Path,
    balancing: Balancing = texts.USUAL,
) -> str:
    """The script for a lab's guest, from the keys that were made for it."""
    address = network.address(subnet, network.BALANCER)
    given = lab_files(
        address,
        [network.address(subnet, backend) for backend in backends],
        (keys / f"host-{network.BALANCER}").read_text(),
        (keys / "authorized_keys").read_text(),
        balancing,
    )
    return script(address, subnet.prefixlen, link, given, balancing.sysctls)


# -- a guest at work -----------------------------------------------------------------------------


def require(arch: str) -> None:
    """Say what is missing on this machine for guests of an architecture."""
    machine = qemu.MACHINES[arch]
    require_programs({(machine.program,): machine.package}, f"a guest of architecture {arch}")
    if not TUN_DEVICE.exists():
        raise LabError(
            f"this machine has no {TUN_DEVICE}, which a guest's network goes through: modprobe tun"
        )


def launch(
    lab: str,
    arch: str,
    image: Image,
    files: Files,
    greeting_problem: Callable[[], str | None],
    say: Callable[[str], None],
    patience: Patience = PATIENCE,
    *,
    has_disk: bool = False,
) -> str:
    """Start the guest by the fastest means that works; returns which one, when sshd answers.

    Whether KVM works is only known when a guest has come up by it: the device may exist and be of
    no use. A try that failed is remembered, since it may take long.
    """
    *first, last = qemu.accelerators(arch)
    program, failed = qemu.program(arch), ""
    for accelerator in first:
        if (before := kvm.failed_before(program)) is not None:
            say(
                f"KVM failed on this machine before, so the guest is emulated: {before} "
                f"(to try it again: rm {kvm.record()})"
            )
            continue
        try:
            _start(lab, arch, accelerator, image, files, has_disk=has_disk)
            _wait(lab, files, greeting_problem, patience.kvm_s)
        except LabError as error:
            failed = str(error).splitlines()[-1].strip()  # the end of QEMU's own log, or of ours
            say(f"KVM does not work here, so the guest is emulated: {failed}")
            _end(lab, files)
        else:
            return qemu.emulation(accelerator)
    _start(lab, arch, last, image, files, has_disk=has_disk)
    _wait(lab, files, greeting_problem, patience.tcg_s)
    if failed:  # only now: a guest that does not come up at all says nothing about KVM
        kvm.remember(program, failed)
    return qemu.emulation(last)


def problem(lab: str, files: Files) -> str | None:
    """Why the guest is not there at all; None while QEMU runs."""
    if pid(lab, files) is not None:
        return None
    return f"{network.BALANCER}: the guest does not run any more{last_lines(files.console)}"


def pid(lab: str, files: Files) -> int | None:
    """QEMU's process, if it is the one that was started in this lab."""
    try:
        found = int(files.pid.read_text())
    except (OSError, ValueError):
        return None
    switch = processes.identity(network.NAMESPACE_FOLDER / network.namespace(lab, network.SWITCH))
    mine = processes.namespace_of(found)
    is_qemu = processes.command_name(found).startswith("qemu-system")
    return found if is_qemu and mine is not None and mine == switch else None


def _start(
    lab: str, arch: str, accelerator: Accelerator, image: Image, files: Files, *, has_disk: bool
) -> None:
    arguments = qemu.command(arch, accelerator, image, files, network.BALANCER, has_disk=has_disk)
    start(network.inside(lab, network.SWITCH, *arguments), log=files.log, timeout_s=60)


def _wait(
    lab: str, files: Files, greeting_problem: Callable[[], str | None], limit_s: float
) -> None:
    """Until the guest's sshd answers. Raises LabError as soon as QEMU has ended."""
    deadline = time.monotonic() + limit_s
    while (message := greeting_problem()) is not None:
        if (gone := problem(lab, files)) is not None:
            raise LabError(gone)
        if time.monotonic() > deadline:
            raise LabError(f"{message} (waited {limit_s:g} s){last_lines(files.console)}")
        time.sleep(0.05)


def _end(lab: str, files: Files) -> None:
    """End a guest that came up by halves, so that another can have its place."""

    def left() -> set[int]:
        found = pid(lab, files)
        return set() if found is None else {found}

    processes.end(left)
    files.pid.unlink(missing_ok=True)
