"""Packages that are installed on the machine as unattended-upgrades does it."""

import base64
import subprocess
from pathlib import Path

from intop.domain.cluster import native_arch
from intop.hosts.host import Host, output
from intop.lab import packages
from intop.lab.image import CACHE_FOLDER
from intop.lab.packages import DEBIAN_ARCH, Package

APT = CACHE_FOLDER / f"apt-machine-{DEBIAN_ARCH[native_arch()]}"
"""By which the machine's image was made; it knows the versions that are in it."""
THERE = "/var/tmp"
INSTALL_LIMIT_S = 300.0
# A unit, nobody to ask, changed files stay. `unattended-upgrades` itself is not in the image: it
# chooses packages and hands them to the same dpkg with these settings.
INSTALL = (
    "systemd-run --quiet --wait --collect --pipe --setenv=DEBIAN_FRONTEND=noninteractive "
    "apt-get -qq -y --reinstall -o Dpkg::Options::=--force-confdef "
    "-o Dpkg::Options::=--force-confold install"
)

VENDOR = "intop-test-vendor"
VENDOR_FILE = "/usr/lib/sysctl.d/60-vendor.conf"
CONTROL = f"""\
Package: {VENDOR}
Version: 1
Architecture: all
Maintainer: nobody <nobody@example.com>
Description: what ships a sysctl file, and has it take effect when it is configured
"""


def fetched(host: Host, name: str, folder: Path) -> Path:
    """The file of a package, in the version that the host has: its scripts are an upgrade's."""
    asked = f"dpkg-query --show --showformat='${{Version}} ${{Architecture}}' {name}"
    version, arch = output(host, asked).split()
    into = folder / name
    into.mkdir()
    (file,) = packages.download(APT, [Package(name, version, arch)], into)
    return file


def vendor(folder: Path, text: str, postinst: str) -> Path:
    """A package with VENDOR_FILE of a text, whose configuring runs a command."""
    root = folder / VENDOR
    shipped, script = root / VENDOR_FILE.lstrip("/"), root / "DEBIAN" / "postinst"
    for file, content in (
        (root / "DEBIAN" / "control", CONTROL),
        (shipped, text),
        (script, f"#!/bin/sh\nset -e\n{postinst}\n"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    script.chmod(0o755)
    made = folder / f"{VENDOR}.deb"
    words = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(made)]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    return made


def install(host: Host, *files: Path) -> None:
    """Install these packages there, whatever version of them it has. Raises HostError."""
    there = []
    for number, file in enumerate(files):
        there.append(f"{THERE}/{number}.deb")
        content = base64.b64encode(file.read_bytes()).decode()
        output(host, f"base64 -d >{there[-1]}", stdin=content, timeout_s=120)
    output(host, f"{INSTALL} {' '.join(there)} 2>&1", timeout_s=INSTALL_LIMIT_S)
    output(host, f"rm {' '.join(there)}")


def remove_vendor(host: Host) -> None:
    """As its owner does; no key changes by that."""
    output(host, f"dpkg --purge {VENDOR} 2>&1", timeout_s=INSTALL_LIMIT_S)
