"""The contents of a guest's image, decided without touching anything.

The image is the kernel of a Debian package and a first file system that stays the only one:
no disk, no systemd, no maintainer scripts. Nothing of a lab is in it, so that one image serves
all labs of an architecture; what is a lab's own comes in through the firmware at each start.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from intop.lab import cpio
from intop.lab.packages import DEBIAN_ARCH, Package

LAB_FILE = "opt/intop/lab"
"""The name of the lab's script to QEMU's firmware interface."""
GUEST_FOLDER = "/run/intop"
"""The folder in which a guest keeps what its lab gave it."""

PROGRAMS = (
    *("openssh-server", "nginx", "iproute2", "procps", "kmod", "mount"),
    *("dash", "bash", "coreutils", "grep", "sed", "libc-bin", "base-files", "luajit"),
)

LEFT_OUT = re.compile(
    r"adduser|cpio|debconf|debianutils|dpkg|initramfs-tools.*|init-system-helpers|klibc-utils|"
    r".*-perl|libdb5.*|libgdbm.*|libklibc|libpam-modules.*|libpam-runtime|libperl5.*|"
    r"libsemanage.*|libsepol.*|linux-base|linux-image-cloud-.*|login.*|logsave|lsb-base|"
    r"mawk|gawk|openssh-client|openssh-sftp-server|passwd|perl.*|runit-helper|sensible-utils|"
    r"sysvinit-utils|tar|ucf|udev|usrmerge|util-linux.*"
)
"""Packages that others depend on for their installation, or for what a guest doesn't do."""

KEPT = re.compile(r"(?!usr/share/|usr/include/|usr/lib/[^/]+/gconv/|usr/lib/(systemd|udev)/).*")
"""The files of the other packages that are of use."""

DEVICE_MODULES = ("virtio_mmio", "virtio_pci", "virtio_net", "virtio_rng", "qemu_fw_cfg")
CHOICE_MODULES = (
    *("tcp_bbr", "tcp_htcp", "tcp_westwood", "tcp_vegas", "tcp_bic", "tcp_hybla"),
    *("tcp_illinois", "tcp_veno", "tcp_yeah", "tcp_dctcp"),
    *("sch_fq", "sch_netem", "sch_tbf", "sch_cake", "sch_sfq", "sch_codel"),
    "tcp_diag",
)
"""Modules that are loaded, so that the catalogue's choices exist: TCP's algorithms and disciplines,
and the module that `ss` asks for the length of a socket's queue."""

TOP_LEVEL = ("bin", "sbin", "lib", "lib64")
"""Folders that packages may still name, and that are links into usr."""

ACCOUNTS = (
    "root:0:/root:/bin/sh",
    "sshd:101:/run/sshd:/bin/false",
    "www-data:33:/var/www:/bin/false",
)

INIT = f"""\
#!/bin/sh
# The first process of a guest. When it ends, the kernel panics, and QEMU ends with it.
export PATH=/usr/sbin:/usr/bin HOME=/root
umask 022
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm

modprobe -a -q {" ".join(DEVICE_MODULES)}
for module in {" ".join(CHOICE_MODULES)}; do modprobe -q "$module"; done
ulimit -n 65536

lab=/sys/firmware/qemu_fw_cfg/by_name/{LAB_FILE}/raw
(umask 077 && mkdir -p {GUEST_FOLDER} && cat "$lab" > {GUEST_FOLDER}/start) || exit 1
chmod 711 {GUEST_FOLDER}
sh {GUEST_FOLDER}/start || exit 1
echo "guest: ready"
# Whoever loses its parent becomes our child, and is buried by us.
while :; do
    sleep 86400 &
    wait $!
done
"""


def wanted(arch: str) -> list[str]:
    """The packages to ask apt for."""
    return [*PROGRAMS, kernel_package(arch)]


def kernel_package(arch: str) -> str:
    """The package that depends on the newest kernel for virtual machines."""
    return f"linux-image-cloud-{DEBIAN_ARCH[arch]}"


def needed(packages: Iterable[Package]) -> list[Package]:
    """Return the packages for a guest, of all that apt would install."""
    return [package for package in packages if not LEFT_OUT.fullmatch(package.name)]


def kernel_release(packages: Iterable[Package]) -> str | None:
    """The release, such as 6.1.0-1-cloud-arm64, of the kernel among the packages."""
    prefix = "linux-image-"
    names = (package.name for package in packages if package.name.startswith(prefix))
    releases = (name.removeprefix(prefix).removesuffix("-unsigned") for name in names)
    return next((release for release in releases if release[0].isdigit()), None)


def fingerprint(*parts: str) -> str:
    """Return the name of an image: another one in any part means another image."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def place(path: str) -> str | None:
    """Return a file's place in the image; None for one left out, or a folder that we make."""
    clean = path.removeprefix(".").strip("/")
    top, _, rest = clean.partition("/")
    if top in TOP_LEVEL:
        if not rest:
            return None
        clean = f"usr/{clean}"
    return clean if clean and KEPT.fullmatch(clean) else None


def own_files() -> dict[str, cpio.Entry]:
    """Return the files of the image that are in no package."""
    passwd, group, shadow = _accounts()
    return {
        ".": cpio.folder(),  # the root itself: without it anybody could write there
        **{top: cpio.link(f"usr/{top}") for top in TOP_LEVEL},
        **{path: cpio.folder() for path in ("proc", "sys", "dev", "run", "run/sshd", "var/www")},
        **{path: cpio.folder(0o700) for path in ("root", "var/lib/intop")},
        "usr/lib64": cpio.folder(),
        "tmp": cpio.folder(0o1777),
        "dev/console": cpio.character_device(5, 1),
        "dev/null": cpio.character_device(1, 3, 0o666),
        "usr/bin/sh": cpio.link("dash"),
        "init": cpio.file(INIT.encode(), 0o755),
        "etc/passwd": cpio.file(passwd.encode()),
        "etc/group": cpio.file(group.encode()),
        "etc/shadow": cpio.file(shadow.encode(), 0o600),
        "etc/nsswitch.conf": cpio.file(
            b"passwd: files\ngroup: files\nshadow: files\nhosts: files\n"
        ),
        "etc/hosts": cpio.file(b"127.0.0.1 localhost\n"),
    }


def _accounts() -> tuple[str, str, str]:
    fields = [account.split(":") for account in ACCOUNTS]
    passwd = "".join(f"{n}:x:{i}:{i}:{n}:{home}:{shell}\n" for n, i, home, shell in fields)
    group = "".join(f"{n}:x:{i}:\n" for n, i, *_ in fields)
    # A star is no password, and does not lock the account as an exclamation mark would.
    return passwd, group, "".join(f"{n}:*:19000::::::\n" for n, *_ in fields)


def module_files(dependencies: str, names: Sequence[str]) -> set[str]:
    """The files, below the kernel's module folder, of modules and all that they need.

    `dependencies` is the text of modules.dep. A module that is not there is built in, or unknown.
    """
    needs: Mapping[str, list[str]] = {
        file: rest.split()
        for file, _, rest in (line.partition(":") for line in dependencies.splitlines())
    }
    files: set[str] = set()
    for file, required_files in needs.items():
        if module_name(file) in names:
            files |= {file, *required_files}
    return files


def module_name(file: str) -> str:
    """`virtio_net` for kernel/drivers/net/virtio_net.ko.xz; hyphens are underscores to modprobe."""
    return file.rpartition("/")[2].partition(".ko")[0].replace("-", "_")
