"""A machine: the lab's load balancer as users have theirs, with systemd, sudo, a unit and a disk.

QEMU runs it as it does a guest. What a lab gives it is a shell script, too, but it runs only at the
first start, and writes to the disk. The disk is in the cache folder, since /run may be memory. A
machine keeps its kernel beside it, which fits the modules on the disk.
"""

import secrets
import shutil
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path

from intop.domain.cluster import LabSpec, native_arch
from intop.errors import LabError
from intop.lab import guest, image, machine_image, network, own_folders, texts
from intop.lab.commands import run
from intop.lab.image import Image
from intop.lab.machine_image import USER
from intop.lab.network import BALANCER
from intop.lab.state import folders_of, guest_files

NGINX_RESTART = "systemctl restart nginx"
SYSCTLS = "/etc/sysctl.d/50-lab.conf"
"""The machine's file of what it starts with, at every boot."""
KVM_LIMIT_S, TCG_LIMIT_S = 90.0, 600.0
"""Seconds until it answers, by KVM and emulated, at most. Emulated it takes about a minute on a
quiet machine."""
SERVERS_LIMIT_S = 120.0
"""Seconds for its servers once sshd has answered, at most."""
COPY_LIMIT_S = 300.0


# -- texts ---------------------------------------------------------------------------------------


def prepare(spec: LabSpec, subnet: IPv4Network) -> None:
    """Write the password for sudo, and the script of a machine's first start."""
    password = secrets.token_urlsafe(12)  # one word everywhere
    own_folders.write(folders_of(spec.name).sudo_password, f"{password}\n")
    own_folders.write(guest_files(spec.name).script, first_start(spec, subnet, password))


def first_start(spec: LabSpec, subnet: IPv4Network, password: str) -> str:
    """Return what runs at a machine's first start, as root, before its network and servers do."""
    address, keys = network.address(subnet, BALANCER), folders_of(spec.name).keys
    device, home = network.INTERFACE, f"/home/{USER}"
    shape = "".join(f"{' '.join(command)}\n" for command in network.shaping(spec.link))
    site = texts.balancer_site(network.addresses(subnet), spec.balancing)
    sysctls = "".join(f"{key} = {value}\n" for key, value in spec.balancing.sysctls)
    parts = [
        "set -eu",
        "umask 077",
        f"mkdir -p {home}/.ssh",
        guest.written("/etc/ssh/ssh_host_ed25519_key", (keys / f"host-{BALANCER}").read_text()),
        guest.written(f"{home}/.ssh/authorized_keys", (keys / "authorized_keys").read_text()),
        f"chown -R {USER}: {home}/.ssh",
        f"chpasswd <<'END'\n{USER}:{password}\nEND",
        "umask 022",
        guest.written(
            "/etc/systemd/network/lab.network",
            f"[Match]\nName={device}\n\n[Network]\nAddress={address}/{subnet.prefixlen}\n"
            "LinkLocalAddressing=no\nIPv6AcceptRA=no\n",
        ),
        guest.written("/etc/nginx/conf.d/balancer.conf", site),
        guest.written(machine_image.LINK_SCRIPT, f"set -e\n{shape}"),
        *([guest.written(SYSCTLS, sysctls), f"sysctl -q -p {SYSCTLS}"] if sysctls else []),
    ]
    return "\n".join(parts) + "\n"


# -- its disk ------------------------------------------------------------------------------------


def own(template: Image, lab: str) -> Image:
    """Return the image of a new machine: a copy that only takes the room of what is in it."""
    discard(lab)
    mine = _folder(lab)
    mine.mkdir(parents=True, mode=0o700)
    copying = ["cp", "--sparse=always", "--reflink=auto"]
    files = [str(template.kernel), str(template.file_system), str(template.disk)]
    run([*copying, *files, str(mine)], timeout_s=COPY_LIMIT_S)
    return Image(mine)


def owned(lab: str) -> Image | None:
    """Return the image of a lab's machine that was made before; None when there is none."""
    mine = Image(_folder(lab))
    return mine if mine.disk.is_file() else None


def discard(lab: str) -> None:
    """Remove a machine's disk, if there is one."""
    if _folder(lab).is_dir():
        shutil.rmtree(_folder(lab))
    try:
        _folder(lab).parent.rmdir()
    except OSError:
        return  # another lab's is there, or there was none


def _folder(lab: str) -> Path:
    return image.CACHE_FOLDER / "machines" / lab


# -- a machine at work ---------------------------------------------------------------------------


def require(arch: str) -> None:
    """Raise LabError for what is missing here for a machine of an architecture."""
    if arch != native_arch():
        raise LabError(
            "kind = \"machine\" is of this machine's own architecture, since its packages' scripts "
            f'run here: {native_arch()}, not {arch}. kind = "vm" can be any'
        )
    guest.require(arch)


def launch(spec: LabSpec, subnet: IPv4Network, say: Callable[[str], None]) -> str:
    """Start the machine from its disk; return what carries it out, when sshd answers.

    Raises LabError where its disk is gone.
    """
    mine = owned(spec.name)
    if mine is None:
        raise LabError(f"lab {spec.name}: the machine's disk is gone")
    say(f"lab {spec.name}: its machine starts, which takes a minute where it is emulated")
    machine = guest.Guest(
        lab=spec.name,
        arch=spec.arch,
        address=network.address(subnet, BALANCER),
        image=mine,
        has_disk=True,
        kvm_limit_s=KVM_LIMIT_S,
        tcg_limit_s=TCG_LIMIT_S,
    )
    return machine.launch(say)
