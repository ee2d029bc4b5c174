"""KVM that does not work is tried once, with a stand-in for QEMU."""

from collections.abc import Callable
from pathlib import Path

import pytest

from intop.errors import LabError
from intop.lab import guest, image, qemu, servers, state

REASON = "lb: the guest does not run any more\n  qemu.log: kvm: no such ioctl"


class Machine:
    """Where QEMU starts guests; by KVM it fails while `broken`, and emulated while `hopeless`."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.said: list[str] = []
        self.version = "QEMU emulator version 7.2.1\n"
        self.broken = True
        self.hopeless = False

    def start(self, arguments: list[str], **_: object) -> None:
        accelerator = "kvm" if "kvm" in arguments else "tcg"
        self.started.append(accelerator)
        if self.hopeless or (self.broken and accelerator == "kvm"):
            raise LabError(REASON)

    def launch(self, folder: Path, arch: str = "x86") -> str:
        self.started.clear()
        self.said.clear()
        vm = guest.Guest(lab="t", arch=arch, address="198.18.7.20", image=image.Image(folder))
        return vm.launch(self.said.append)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    (tmp_path / "kvm").touch()
    (tmp_path / "boot_id").write_text("first\n")
    monkeypatch.setattr(image, "CACHE_FOLDER", tmp_path)
    monkeypatch.setattr(qemu, "BOOT_ID", tmp_path / "boot_id")
    monkeypatch.setattr(qemu, "run", lambda arguments: made.version)
    monkeypatch.setattr(qemu, "KVM_DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(qemu, "native_arch", lambda: "x86")
    monkeypatch.setattr(guest, "start", made.start)
    monkeypatch.setattr(servers, "ssh_problem", lambda _: None)
    monkeypatch.setattr(state, "STATE_FOLDER", tmp_path)
    return made


def test_a_failure_is_remembered_and_says_how_to_try_again(
    machine: Machine, tmp_path: Path
) -> None:
    assert machine.launch(tmp_path).startswith("TCG")
    assert machine.started == ["kvm", "tcg"]
    assert machine.said == [
        "KVM does not work here, so the guest is emulated: qemu.log: kvm: no such ioctl"
    ]
    assert machine.launch(tmp_path).startswith("TCG")
    assert machine.started == ["tcg"]
    (output,) = machine.said
    assert (
        "KVM failed on this machine before, so the guest is emulated: qemu.log: kvm: no" in output
    )
    assert output.endswith(f"(to try it again: rm {tmp_path}/kvm-failed.json)")


def new_start(machine: Machine, folder: Path) -> None:
    (folder / "boot_id").write_text("second\n")


def new_qemu(machine: Machine, folder: Path) -> None:
    machine.version = "QEMU emulator version 8.0.0\n"


def removed(machine: Machine, folder: Path) -> None:
    (folder / "kvm-failed.json").unlink()


def damaged(machine: Machine, folder: Path) -> None:
    (folder / "kvm-failed.json").write_text("[1]")


@pytest.mark.parametrize("change", [new_start, new_qemu, removed, damaged])
def test_it_is_tried_again_after(
    machine: Machine, tmp_path: Path, change: Callable[[Machine, Path], None]
) -> None:
    machine.launch(tmp_path)
    change(machine, tmp_path)
    machine.broken = False
    assert machine.launch(tmp_path) == "KVM"
    assert machine.started == ["kvm"]


def test_a_guest_that_does_not_come_up_at_all_says_nothing_about_kvm(
    machine: Machine, tmp_path: Path
) -> None:
    machine.hopeless = True
    with pytest.raises(LabError, match="no such ioctl"):
        machine.launch(tmp_path)
    assert not qemu.kvm_record().exists()


def test_guests_of_another_architecture_are_emulated_without_a_word(
    machine: Machine, tmp_path: Path
) -> None:
    machine.launch(tmp_path)
    assert machine.launch(tmp_path, "arm").startswith("TCG")
    assert machine.started == ["tcg"]
    assert machine.said == []
