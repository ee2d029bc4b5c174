import os
import platform
from dataclasses import replace
from pathlib import Path

import pytest

from builders.trials import FACTS
from intop.errors import CommandError
from intop.hosts.facts import facts, parse_facts
from kit.local_host import LocalHost

DATA = Path(__file__).parents[1] / "data" / "hosts"
X86 = (DATA / "facts-x86-namespace.txt").read_text()
ARM = (DATA / "facts-arm-by-hand.txt").read_text()


def test_a_real_namespace() -> None:
    memory = {"memory_bytes": 24684084 * 1024, "in_namespace": True}
    x86 = replace(FACTS, kernel="6.18.44-fc-v669", cpu="AMD EPYC", cpus=2, **memory)
    assert replace(x86, clock_s=1795245568.331600990) == parse_facts(X86)


def test_an_arm_machine_with_large_pages_and_without_root() -> None:
    memory = {"memory_bytes": 263812096 * 1024, "page_bytes": 65536}
    arm = replace(FACTS, machine="aarch64", cpu="0xd0c", cpus=64, is_root=False, **memory)
    arm = replace(arm, kernel="6.1.0-28-cloud-arm64", nginx="nginx/1.26.2")
    assert replace(arm, clock_s=1795245568.5) == parse_facts(ARM)


def test_a_host_without_nginx_or_a_name_for_its_cpu() -> None:
    result = parse_facts(X86.replace("nginx/1.22.1", "").replace("AMD EPYC", ""))
    assert (result.nginx, result.cpu) == ("", "unknown")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "sh: 1: uname: not found\n",
        X86.replace("machine=", "m="),
        X86.replace("cpus=2", "cpus="),
        X86.replace("memory_kib=24684084", "memory_kib=much"),
        X86.replace("clock=", "time="),
        X86[: len(X86) // 2],
    ],
)
def test_an_answer_that_makes_no_sense_names_the_host(answer: str) -> None:
    with pytest.raises(CommandError, match=r"^lb: its description can't be read"):
        facts(LocalHost(answer))


def test_this_machine() -> None:
    result = facts(LocalHost())
    assert (platform.machine(), platform.release()) == (result.machine, result.kernel)
    assert os.cpu_count() == result.cpus
    assert os.sysconf("SC_PAGE_SIZE") == result.page_bytes
    assert result.memory_bytes > 1 << 28
    assert result.cpu


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("", {}),
        ("/proc rwrw ", {"/proc": False}),
        ("/proc rwrw /proc/sys rorw", {"/proc": False, "/proc/sys": True}),
        ("/proc/sys rorw /proc/sys rwrw", {"/proc/sys": False}),
        ("/proc rwro", {"/proc": True}),
    ],
)
def test_where_proc_is_mounted_read_only(mounts: str, expected: dict[str, bool]) -> None:
    assert parse_facts(f"{X86}mounts={mounts}\n").mounts == expected


def test_mounts_that_make_no_sense_name_the_host() -> None:
    with pytest.raises(CommandError, match=r"^lb: its description can't be read"):
        facts(LocalHost(f"{X86}mounts=/proc\n"))


def test_another_user_namespace_than_the_machines() -> None:
    assert not parse_facts(f"{X86}uids=4294967295\n").in_user_namespace
    assert parse_facts(f"{X86}uids=65536\n").in_user_namespace


def test_namespaces_of_this_machine() -> None:
    read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"
    result = facts(LocalHost(setup=read_only))
    assert result.mounts == {"/proc": False, "/proc/sys": True}
    assert result.in_namespace
    assert not result.in_user_namespace
    assert facts(
        LocalHost(setup='exec unshare --user --map-root-user sh -c "$0"')
    ).in_user_namespace
