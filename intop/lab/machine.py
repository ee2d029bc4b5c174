"""A machine: the lab's load balancer as users have theirs, with systemd, sudo, a unit and a disk.

QEMU runs it as it does a guest. What a lab gives it is a shell script, too, but it runs only at the
first start, and writes to the disk. The disk is in the cache folder, since /run may be memory. A
machine keeps its kernel beside it, which fits the modules on the disk.
"""

import secrets
import shutil
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network
from pathlib import Path

from intop.domain.balancing import Balancing
from intop.domain.cluster import Link, native_arch
from intop.errors import LabError
from intop.lab import guest, image, machine_image, network, texts
from intop.lab.commands import run
from intop.lab.guest import Patience
from intop.lab.image import Image
from intop.lab.machine_image import USER
from intop.lab.qemu import Files

NGINX_RESTART = "systemctl restart nginx"
SYSCTLS = "/etc/sysctl.d/50-lab.conf"
"""In the machine: what it starts with, at every boot."""
PATIENCE = Patience(kvm_s=90.0, tcg_s=600.0)
"""Emulated it takes about a minute on a quiet machine."""
SERVERS_LIMIT_S = 120.0
"""How long its servers may take when sshd has answered."""
COPY_LIMIT_S = 300.0


# -- texts ---------------------------------------------------------------------------------------


def prepared(
    subnet: IPv4Network,
    backends: Sequence[str],
    link: Link | None,
    keys: Path,
    password: str,
    balancing: Balancing = texts.USUAL,
) -> str:
    """What runs at a machine's first start, as root, before its network and servers do."""
    address = network.address(subnet, network.BALANCER)
    device, home = network.INTERFACE, f"/home/{USER}"
    shape = "".join(f"{' '.join(command)}\n" for command in network.shaping(link))
    site = texts.balancer_site(
        [network.address(subnet, backend) for backend in backends], balancing
    )
    sysctls = "".join(f"{key} = {value}\n" for key, value in balancing.sysctls)
    parts = [
        "set -eu",
        "umask 077",
        f"mkdir -p {home}/.ssh",
        guest.written(
            "/etc/ssh/ssh_host_ed25519_key", (keys / f"host-{network.BALANCER}").read_text()
        ),
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


def new_password() -> str:
    """For sudo; letters, digits and few others, so that it is a word everywhere."""
    return secrets.token_urlsafe(12)


# -- its disk ------------------------------------------------------------------------------------


def own(made: Image, lab: str) -> Image:
    """The image of a lab's machine, new: a copy that only takes the room of what is in it."""
    discard(lab)
    mine = _folder(lab)
    mine.mkdir(parents=True, mode=0o700)
    copying = ["cp", "--sparse=always", "--reflink=auto"]
    files = [str(made.kernel), str(made.file_system), str(made.disk)]
    run([*copying, *files, str(mine)], timeout_s=COPY_LIMIT_S)
    return Image(mine)


def owned(lab: str) -> Image | None:
    """The image of a lab's machine that was made before; None when there is none."""
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
    """Say what is missing on this machine for a machine of an architecture."""
    if arch != native_arch():
        raise LabError(
            "kind = \"machine\" is of this machine's own architecture, since its packages' scripts "
            f'run here: {native_arch()}, not {arch}. kind = "vm" can be any'
        )
    guest.require(arch)


def launch(
    lab: str,
    arch: str,
    mine: Image,
    files: Files,
    greeting_problem: Callable[[], str | None],
    say: Callable[[str], None],
) -> str:
    """Start the machine from its disk; returns by what it is carried out, when sshd answers."""
    say(f"lab {lab}: its machine starts, which takes a minute where it is emulated")
    return guest.launch(
        lab, arch, mine, files, greeting_problem, say, patience=PATIENCE, has_disk=True
    )
