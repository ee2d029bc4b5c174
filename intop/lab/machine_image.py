"""A machine's image: a Debian system on a disk, installed by mmdebstrap as a user would have it.

The private apt that finds guests' packages finds these, too, with the machine's own sources. They
become a source of their own in a folder, so the image's name says each version that is in it, and
mmdebstrap needs no network. Nothing of a lab is in it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from intop.errors import LabError
from intop.lab import image, packages, recipe
from intop.lab.commands import require_programs, run
from intop.lab.image import Image, Say
from intop.lab.packages import DEBIAN_ARCH, Package

BUILDERS = {
    **image.BUILDERS,
    ("mmdebstrap",): "mmdebstrap",
    ("mke2fs",): "e2fsprogs",
    ("unshare",): "util-linux",
}
INSTALL_LIMIT_S = 1200.0
DISK_SIZE = "2G"
"""The size of the file system; its empty part takes no room on this machine."""

USER = "admin"
"""The user who enters; root can't."""

PROGRAMS = (
    *("?essential", "usr-is-merged"),  # the first is a pattern of apt's
    *("systemd-sysv", "udev", "dbus", "libpam-systemd", "kmod", "apt", "e2fsprogs", "zstd"),
    *("openssh-server", "sudo", "nginx", "iproute2", "procps", "initramfs-tools"),
)
MODULES = ("qemu_fw_cfg", "tcp_bbr", "tcp_diag", "sch_fq")
"""Modules that are loaded at each start."""

DONE = "/var/lib/lab-done"
"""There once a machine has what its lab gives it."""

FIRST_START = f"""\
[Unit]
Description=What the lab gives this machine at its first start
ConditionPathExists=!{DONE}
DefaultDependencies=no
After=local-fs.target systemd-modules-load.service systemd-tmpfiles-setup.service
Before=sysinit.target systemd-networkd.service network-pre.target shutdown.target
Wants=network-pre.target
Conflicts=shutdown.target

[Service]
Type=oneshot
UMask=0077
ExecStart=/bin/sh -c 'cat /sys/firmware/qemu_fw_cfg/by_name/{recipe.LAB_FILE}/raw >/run/lab && \\
    sh /run/lab && rm /run/lab && sync && : >{DONE} && sync'
StandardOutput=journal+console

[Install]
WantedBy=sysinit.target
"""

LINK_SCRIPT = "/usr/local/sbin/lab-link"
LINK = f"""\
[Unit]
Description=The shape of the lab's link
Wants=network.target
After=network.target
Before=nginx.service ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh {LINK_SCRIPT}

[Install]
WantedBy=multi-user.target
"""

OWN_FILES = {
    "etc/fstab": "/dev/vda / ext4 errors=remount-ro 0 1\n",
    "etc/hostname": "machine\n",
    "etc/hosts": "127.0.0.1 localhost\n127.0.1.1 machine\n",
    "etc/modules-load.d/lab.conf": "".join(f"{module}\n" for module in MODULES),
    "etc/systemd/system/lab.service": FIRST_START,
    "etc/systemd/system/lab-link.service": LINK,
}

SETUP = f"""\
useradd --create-home --shell /bin/bash --groups sudo {USER}
systemctl --quiet enable systemd-networkd.service lab.service lab-link.service
# What runs by the clock would disturb measurements, and nobody sits at a terminal.
systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer \\
    e2scrub_all.timer e2scrub_reap.service getty.target
rm -f /etc/nginx/sites-enabled/default
# Keys are a lab's own, and sources this machine's.
rm -f /etc/ssh/ssh_host_* /etc/apt/sources.list /etc/apt/apt.conf.d/99mmdebstrap \\
    /etc/dpkg/dpkg.cfg.d/99mmdebstrap
"""


def ready(arch: str, say: Say) -> Image:
    """The image for machines of this machine's own architecture, rebuilt when it is outdated."""
    require_programs(BUILDERS, "building a machine's image")
    name = f"machine-{arch}"

    def build(apt: Path, chosen: Sequence[Package], release: str, made: Image) -> None:
        with image.workshop(name) as work:
            _build(work, arch, apt, chosen, release, made)

    return image.kept(
        image.Kind(
            name=name,
            arch=arch,
            what="machine",
            wanted=[*PROGRAMS, recipe.kernel_package(arch)],
            needed=list,
            how=[*image.sources_of(recipe, packages), Path(__file__).read_text()],
            build=build,
        ),
        say,
    )


def source_index(controls: Iterable[tuple[str, Path, bytes]]) -> str:
    """The file `Packages` of a folder of packages: their control texts, files and contents."""
    return "".join(
        f"{control.strip()}\nFilename: ./{file.name}\nSize: {len(data)}\n"
        f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n"
        for control, file, data in controls
    )


def installing(arch: str, source: Path, root: Path, names: Sequence[str]) -> list[str]:
    """The command that installs packages of a folder into another one.

    It has mounts and processes of its own: should it die, no mount of this machine's own /dev is
    left in a folder that is going to be removed.
    """
    apart = ["unshare", "--mount", "--propagation", "private"]
    apart += ["--pid", "--fork", "--kill-child", "--mount-proc"]
    options = ["--quiet", "--mode=root", "--format=directory", "--variant=essential"]
    options += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    options += [f"--architectures={DEBIAN_ARCH[arch]}", f"--include={','.join(names)}"]
    options += ['--aptopt=APT::Sandbox::User "root"', "--dpkgopt=force-unsafe-io"]
    options += [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale")]
    # Without a suite: the folder has none.
    return [*apart, "mmdebstrap", *options, "", str(root), f"deb [trusted=yes] copy:{source} ./"]


def _build(
    work: Path, arch: str, apt: Path, chosen: Sequence[Package], release: str, made: Image
) -> None:
    downloads, source, root = work / "downloads", work / "source", work / "root"
    result = Image(work / "result")
    for folder in (downloads, source, result.folder):
        folder.mkdir()
    controls = []
    for number, archive in enumerate(packages.download(apt, chosen, downloads)):
        # Their own names may have a percent sign, which apt would take for a code.
        file = archive.rename(source / f"{number}.deb")
        controls.append((run(["dpkg-deb", "--field", str(file)]), file, file.read_bytes()))
    (source / "Packages").write_text(source_index(controls))
    names = [package.name for package in chosen]
    run(installing(arch, source, root, names), timeout_s=INSTALL_LIMIT_S)
    for path, text in OWN_FILES.items():
        (root / path).write_text(text)
    run(["chroot", str(root), "sh", "-euc", SETUP], timeout_s=120)
    kernel, first = root / f"boot/vmlinuz-{release}", root / f"boot/initrd.img-{release}"
    if not (kernel.is_file() and first.is_file()):
        raise LabError(f"mmdebstrap has made no {kernel.name} or no {first.name}")
    kernel.replace(result.kernel)
    first.replace(result.file_system)
    filling = ["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(result.disk), DISK_SIZE]
    run(filling, timeout_s=INSTALL_LIMIT_S)
    run(["sync", str(result.disk)], timeout_s=INSTALL_LIMIT_S)
    (result.folder / "packages.txt").write_text("".join(f"{package}\n" for package in chosen))
    result.folder.rename(made.folder)
