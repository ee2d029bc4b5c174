"""QEMU's command lines."""

from pathlib import Path

import pytest

from intop.lab import qemu
from intop.lab.image import Image
from kit.golden import Golden

FILES = qemu.Files(Path("/run/intop/lab/t/host-lb"))
IMAGE = Image(Path("/cache/arm-1"))


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU is here for both architectures."""
    monkeypatch.setattr(qemu, "find_program", lambda name: f"/usr/bin/{name}")


def line(arch: str, accelerator: qemu.Accelerator) -> str:
    return " ".join(qemu.command(arch, accelerator, IMAGE, FILES, "lb"))


def test_an_emulated_arm_machine(golden: Golden) -> None:
    result = line("arm", "tcg")
    golden(result)


def test_a_machine_by_kvm_has_the_processor_of_this_one(golden: Golden) -> None:
    assert "-machine virt,gic-version=host -accel kvm -cpu host" in line("arm", "kvm")
    result = line("x86", "kvm")
    golden(result)


def test_a_guest_that_panics_or_restarts_takes_qemu_with_it() -> None:
    for arch in qemu.MACHINES:
        assert "-no-reboot" in line(arch, "tcg")
        assert "panic=-1" in line(arch, "tcg")


def test_kvm_is_tried_for_the_machines_own_architecture_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "kvm"
    monkeypatch.setattr(qemu, "KVM_DEVICE", device)
    monkeypatch.setattr(qemu, "native_arch", lambda: "arm")
    assert qemu.accelerators("arm") == ("tcg",)
    device.touch()
    assert qemu.accelerators("arm") == ("kvm", "tcg")
    assert qemu.accelerators("x86") == ("tcg",)


def test_what_carries_the_guest_out_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu.platform, "machine", lambda: "x86_64")
    assert [qemu.emulation("kvm"), qemu.emulation("tcg")] == ["KVM", "TCG on x86_64"]
