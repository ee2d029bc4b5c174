"""A guest: the lab's load balancer as a virtual machine with a kernel of its own.

QEMU runs in the switch's namespace, so it belongs to the lab as every other process there. What
the guest is told about its lab is one shell script, read through QEMU's firmware interface: the
host's key and who may enter, the configurations of sshd and nginx, the address, the link.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from intop.domain.cluster import LabSpec
from intop.errors import LabError
from intop.lab import network, processes, qemu, recipe, servers, texts
from intop.lab.commands import last_lines, require_programs, start
from intop.lab.image import Image
from intop.lab.network import BALANCER
from intop.lab.qemu import Accelerator
from intop.lab.state import folders_of, guest_files
from intop.words import inert

FOLDER = Path(recipe.GUEST_FOLDER)
"""The guest's folder for its orders and its servers' files."""
STATE_FOLDER = "/var/lib/intop"
"""The guest's folder in which the guard keeps its snapshot."""
RESTART_SCRIPT = FOLDER / "server-restart"
"""The guest's script that reopens nginx's sockets."""
NGINX = "/usr/sbin/nginx"
OPEN_FILES = 65536

TUN_DEVICE = Path("/dev/net/tun")

_CRASH = re.compile(
    r"Kernel panic|Unable to handle|Internal error|Oops|BUG:|Out of memory|lockup|stall|reboot"
)
MOST_WORDS = 5


# -- texts ---------------------------------------------------------------------------------------


def prepared(spec: LabSpec, subnet: IPv4Network) -> str:
    """Return the script for a lab's guest, from the keys that were made for it."""
    address, keys = network.address(subnet, BALANCER), folders_of(spec.name).keys
    files = {
        f"keys/host-{BALANCER}": (keys / f"host-{BALANCER}").read_text(),
        "keys/authorized_keys": (keys / "authorized_keys").read_text(),
        "sshd.conf": texts.sshd_config(address, FOLDER, FOLDER / "keys", BALANCER, use_pam=False),
        "nginx.conf": texts.balancer_config(
            FOLDER,
            "www-data www-data",
            network.addresses(subnet),
            open_files=OPEN_FILES,
            balancing=spec.balancing,
        ),
        RESTART_SCRIPT.name: texts.restart_script(texts.nginx_start(NGINX), FOLDER),
    }
    return script(spec, subnet, files)


def script(spec: LabSpec, subnet: IPv4Network, files: Mapping[str, str]) -> str:
    """Return what the guest's first process runs: write files, set up the link, start servers."""
    device = network.INTERFACE
    parts = [
        *("set -e", "umask 077", f"cd {FOLDER}", "mkdir -p keys home"),
        *(written(name, text) for name, text in files.items()),
        "umask 022",
        "echo guest > /proc/sys/kernel/hostname",
        "ip link set lo up",
        f"ip address add {network.address(subnet, BALANCER)}/{subnet.prefixlen} dev {device}",
        f"ip link set {device} up",
        *(" ".join(command) for command in network.shaping(spec.link)),
        *(
            f"echo '{value}' > /proc/sys/{key.replace('.', '/')}"
            for key, value in spec.balancing.sysctls
        ),
        f"/usr/sbin/sshd -f {FOLDER}/sshd.conf -E {FOLDER}/sshd.log",
        f"sh {RESTART_SCRIPT}",
    ]
    return "\n".join(parts) + "\n"


def written(name: str, text: str) -> str:
    """Return the shell's words for a file. Raises LabError for one with a line of our end mark."""
    mark = "END-OF-FILE-FOR-GUEST"
    if mark in text.splitlines():
        raise LabError(f"{name} has a line {mark!r}")
    return f"cat > {name} <<'{mark}'\n{text.rstrip(chr(10))}\n{mark}"


# -- a guest at work -----------------------------------------------------------------------------


def require(arch: str) -> None:
    """Raise LabError for what is missing on this machine for guests of an architecture."""
    machine = qemu.MACHINES[arch]
    require_programs({(machine.program,): machine.package}, f"a guest of architecture {arch}")
    if not TUN_DEVICE.exists():
        raise LabError(
            f"this machine has no {TUN_DEVICE}, which a guest's network goes through: modprobe tun"
        )


@dataclass(frozen=True, kw_only=True)
class Guest:
    """A lab's virtual machine, to be started."""

    lab: str
    arch: str
    address: str
    image: Image
    has_disk: bool = False
    kvm_limit_s: float = 20.0
    """Seconds until it answers by KVM, at most. A guest takes 2 s."""
    tcg_limit_s: float = 180.0
    """Seconds until it answers when emulated, at most. A guest takes 5 to 10 s on a quiet machine.
    """

    def launch(self, say: Callable[[str], None]) -> str:
        """Start it by the fastest means that works; return which one, when sshd answers.

        Whether KVM works is only known when a guest has come up by it: the device may exist and be
        of no use. A try that failed is remembered, since it may take long.
        """
        *first, last = qemu.accelerators(self.arch)
        failure = ""
        for accelerator in first:
            if (before := qemu.kvm_failure(self.arch)) is not None:
                say(
                    f"KVM failed on this machine before, so the guest is emulated: {before} "
                    f"(to try it again: rm {qemu.kvm_record()})"
                )
                continue
            try:
                self._start(accelerator, self.kvm_limit_s)
            except LabError as error:
                failure = str(error).splitlines()[-1].strip()  # the end of QEMU's log, or of ours
                say(f"KVM does not work here, so the guest is emulated: {failure}")
                self._end()
            else:
                return qemu.emulation(accelerator)
        self._start(last, self.tcg_limit_s)
        if failure:  # only now: a guest that does not come up at all says nothing about KVM
            qemu.remember_kvm_failure(self.arch, failure)
        return qemu.emulation(last)

    def _start(self, accelerator: Accelerator, limit_s: float) -> None:
        """Start QEMU, and wait until sshd answers. Raises LabError as soon as QEMU has ended."""
        files = guest_files(self.lab)
        command = qemu.command(
            self.arch, accelerator, self.image, files, BALANCER, has_disk=self.has_disk
        )
        start(network.inside(self.lab, network.SWITCH, *command), log=files.log, timeout_s=60)
        deadline = time.monotonic() + limit_s
        while (message := servers.ssh_problem(self.address)) is not None:
            if (gone := problem(self.lab)) is not None:
                raise LabError(gone)
            if time.monotonic() > deadline:
                raise LabError(f"{message} (waited {limit_s:g} s){last_lines(files.console)}")
            time.sleep(0.05)

    def _end(self) -> None:
        """End a guest that came up by halves, so that another can have its place."""

        def left() -> set[int]:
            process = pid(self.lab)
            return set() if process is None else {process}

        processes.end(left)
        guest_files(self.lab).pid.unlink(missing_ok=True)


def problem(lab: str) -> str | None:
    """Return why the guest is not there at all; None while QEMU runs."""
    if pid(lab) is not None:
        return None
    return f"{BALANCER}: the guest does not run any more{last_lines(guest_files(lab).console)}"


def last_words(lab: str) -> list[str]:
    """Return the last lines of a guest's console that tell of a crash; none where it has none."""
    try:
        lines = guest_files(lab).console.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [inert(line) for line in lines if _CRASH.search(line)][-MOST_WORDS:]


def pid(lab: str) -> int | None:
    """Return QEMU's process, if it is the one that was started in this lab."""
    try:
        process = int(guest_files(lab).pid.read_text())
    except (OSError, ValueError):
        return None
    switch = processes.identity(network.NAMESPACE_FOLDER / network.namespace(lab, network.SWITCH))
    mine = processes.namespace_of(process)
    is_qemu = processes.command_name(process).startswith("qemu-system")
    return process if is_qemu and mine is not None and mine == switch else None
