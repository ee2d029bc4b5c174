"""The cache of images, with a stand-in for apt and for the building itself."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from intop.errors import LabError
from intop.lab import image, packages
from intop.lab.packages import Package

KERNEL = Package("linux-image-6.1.0-1-cloud-arm64", "6.1", "arm64")


class Apt:
    """What there is to be had; counts how often it is asked, and how often an image is built."""

    def __init__(self) -> None:
        self.offered = [KERNEL, Package("nginx", "1", "arm64")]
        self.fails = ""
        self.looks = 0
        self.builds = 0

    def resolve(self, folder: Path, names: Sequence[str]) -> list[Package]:
        self.looks += 1
        if self.fails:
            raise LabError(self.fails)
        return self.offered

    def build(self, apt: Path, chosen: Sequence[Package], release: str, made: image.Image) -> None:
        self.builds += 1
        made.folder.mkdir()
        made.kernel.write_text(release)
        then = time.time() - 1000 + self.builds
        os.utime(made.folder, (then, then))


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    stand_in = Apt()
    monkeypatch.setattr(image, "CACHE_FOLDER", tmp_path)
    monkeypatch.setattr(image, "_build", stand_in.build)
    monkeypatch.setattr(packages, "update", lambda folder: None)
    monkeypatch.setattr(packages, "resolve", stand_in.resolve)
    monkeypatch.setattr(packages, "sources", lambda: "a source")
    return stand_in


def ready() -> tuple[image.Image, list[str]]:
    output: list[str] = []
    return image.ready("arm", output.append), output


def outdate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "FRESH_S", -1.0)


def test_an_image_is_built_once(apt: Apt) -> None:
    made, output = ready()
    assert made.kernel.read_text() == "6.1.0-1-cloud-arm64"
    assert "building the image of an arm guest: 2 packages" in output[-1]
    assert ready() == (made, [])
    assert (apt.looks, apt.builds) == (1, 1)


def test_after_a_while_newer_packages_are_looked_for(
    apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = ready()
    outdate(tmp_path, monkeypatch)
    assert ready()[0] == first
    assert (apt.looks, apt.builds) == (2, 1)

    made = [first]
    for version in ("2", "3"):
        apt.offered = [KERNEL, Package("nginx", version, "arm64")]
        made.append(ready()[0])
    assert apt.builds == 3
    assert len(set(made)) == 3
    assert [one.folder.is_dir() for one in made] == [False, True, True]


def test_other_sources_or_another_recipe_make_an_image_outdated(
    apt: Apt, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready()
    monkeypatch.setattr(packages, "sources", lambda: "another source")
    ready()
    assert (apt.looks, apt.builds) == (2, 1)
    monkeypatch.setattr(image, "_how", lambda: ["another recipe"])
    ready()
    assert (apt.looks, apt.builds) == (3, 2)


def test_without_network_the_last_image_serves(
    apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = ready()
    outdate(tmp_path, monkeypatch)
    apt.fails = "E: Unable to fetch"
    made, output = ready()
    assert made == first
    assert "the guest's last image serves" in output[-1]


def test_without_an_image_it_says_what_is_missing(apt: Apt) -> None:
    apt.fails = "apt-get: exit code 100: E: Unable to locate package linux-image-cloud-arm64"
    with pytest.raises(LabError, match=r"E: Unable to locate .*Debian packages for arm64, so this"):
        ready()
    apt.fails, apt.offered = "", [Package("nginx", "1", "arm64")]
    with pytest.raises(LabError, match="brings no kernel"):
        ready()


def test_a_removed_image_is_built_anew(apt: Apt) -> None:
    made, _ = ready()
    made.kernel.unlink()
    made.folder.rmdir()
    assert ready()[0] == made
    assert apt.builds == 2


def test_one_builder_at_a_time(apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "LOCK_LIMIT_S", 0.1)
    with (
        image._locked(tmp_path / "arm.lock"),
        pytest.raises(LabError, match=r"another intop has been building .*arm\.lock"),
    ):
        ready()


def test_two_labs_could_build_for_two_architectures_at_once(apt: Apt, tmp_path: Path) -> None:
    with image._locked(tmp_path / "x86.lock"):
        assert ready()[0].folder.is_dir()
