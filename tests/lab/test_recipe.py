"""What an image is made of."""

import re
import stat
import subprocess

import pytest

from intop.lab import cpio, recipe
from intop.lab.packages import Package

DEPENDENCIES = """\
kernel/net/core/failover.ko:
kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko
kernel/drivers/net/virtio_net.ko.xz: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko
kernel/drivers/char/hw_random/virtio-rng.ko:
kernel/fs/xfs/xfs.ko: kernel/lib/libcrc32c.ko
"""


def package(name: str, version: str = "1") -> Package:
    return Package(name, version, "arm64")


@pytest.mark.parametrize(
    ("member", "place"),
    [
        ("./bin/cat", "usr/bin/cat"),
        ("./usr/bin/env", "usr/bin/env"),
        ("./lib/aarch64-linux-gnu/libc.so.6", "usr/lib/aarch64-linux-gnu/libc.so.6"),
        ("./lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"),
        ("./etc/nginx/mime.types", "etc/nginx/mime.types"),
        ("./boot/vmlinuz-6.1", "boot/vmlinuz-6.1"),
        ("./", None),
        (".", None),
        ("./bin", None),  # a link of ours
        ("./usr/share/doc/nginx/copyright", None),
        ("./lib/systemd/system/nginx.service", None),
        ("./usr/lib/aarch64-linux-gnu/gconv/UTF-16.so", None),
    ],
)
def test_where_a_packages_file_goes(member: str, place: str | None) -> None:
    assert recipe.place(member) == place


def test_what_only_serves_the_installation_is_left_out() -> None:
    names = ["libc6", "perl-base", "nginx", "libtext-glob-perl", "udev", "linux-image-6.1-cloud"]
    names += ["linux-image-cloud-arm64", "initramfs-tools-core", "libpam0g", "libpam-modules"]
    chosen = [p.name for p in recipe.needed(map(package, names))]
    assert chosen == ["libc6", "nginx", "linux-image-6.1-cloud", "libpam0g"]


def test_the_kernels_release_is_in_its_packages_name() -> None:
    named = [package("libc6"), package("linux-image-6.1.0-56-cloud-arm64")]
    assert recipe.kernel_release(named) == "6.1.0-56-cloud-arm64"
    unsigned = [package("linux-image-6.12.1-cloud-arm64-unsigned")]
    assert recipe.kernel_release(unsigned) == "6.12.1-cloud-arm64"
    assert recipe.kernel_release([package("linux-image-cloud-arm64")]) is None


def test_modules_come_with_what_they_need() -> None:
    assert recipe.module_files(DEPENDENCIES, ["virtio_net", "virtio_rng", "sch_fq"]) == {
        "kernel/net/core/failover.ko",
        "kernel/drivers/net/net_failover.ko",
        "kernel/drivers/net/virtio_net.ko.xz",
        "kernel/drivers/char/hw_random/virtio-rng.ko",
    }


def test_another_ingredient_is_another_image() -> None:
    before = recipe.fingerprint("arm", "libc6=1")
    assert re.fullmatch("[0-9a-f]{16}", before)
    assert recipe.fingerprint("arm", "libc6=1") == before
    assert before not in {recipe.fingerprint("arm", "libc6=2"), recipe.fingerprint("armlibc6=1")}


def test_the_first_process_is_a_valid_script_that_loads_what_is_packed() -> None:
    subprocess.run(["sh", "-n"], input=recipe.INIT, check=True, text=True)
    for module in (*recipe.DEVICE_MODULES, *recipe.CHOICE_MODULES):
        assert module in recipe.INIT
    files = recipe.own_files()
    assert files["."].mode == stat.S_IFDIR | 0o755
    assert files["init"].mode == stat.S_IFREG | 0o755
    assert files["dev/console"] == cpio.character_device(5, 1)


def test_the_image_has_accounts_and_no_secret() -> None:
    files = recipe.own_files()
    assert b"root:x:0:0:root:/root:/bin/sh\n" in files["etc/passwd"].data
    assert b"www-data:x:33:33:" in files["etc/passwd"].data
    assert files["etc/shadow"].mode & 0o777 == 0o600
    assert b"root:*:" in files["etc/shadow"].data
    assert not [path for path in files if "key" in path]
