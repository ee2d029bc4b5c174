"""Guests' images: built from Debian packages, and kept as long as nothing newer is to be had.

An image is a folder that is named after all that is in it. It appears by a rename, so one that
is there is whole; builders of the same kind wait for each other.
"""

import fcntl
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from intop.errors import LabError
from intop.lab import cpio, own_folders, packages, recipe
from intop.lab.commands import ENVIRONMENT, require_programs, run
from intop.lab.packages import DEBIAN_ARCH, Package

CACHE_FOLDER = Path("/var/cache/intop")
FRESH_S = 7 * 86400.0
"""Seconds for which an image is used without a look for newer packages."""
LOCK_LIMIT_S = 1200.0
KEPT_IMAGES = 2
"""Images of each kind: one that an earlier version of intop made may still be wanted."""

BUILDERS: Mapping[tuple[str, ...], str] = {
    ("depmod",): "kmod",
    ("dpkg-deb",): "dpkg",
    ("apt-get",): "apt",
}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Image:
    """The files that QEMU starts a guest from."""

    folder: Path

    @property
    def kernel(self) -> Path:
        """The kernel, as its package has it."""
        return self.folder / "vmlinuz"

    @property
    def file_system(self) -> Path:
        """The archive that the kernel unpacks into memory."""
        return self.folder / "initramfs"

    @property
    def disk(self) -> Path:
        """The disk of a machine, which a guest does without."""
        return self.folder / "disk"


Build = Callable[[Path, Sequence[Package], str, Image], None]
"""Makes an image: the folder of our apt, the packages, the kernel's release, what to make."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of image.

    `name` begins the names of all its files in the cache. `wanted` are the packages to ask apt for,
    `needed` picks from all that it would install. `how` is the code that makes such images, so that
    none that was made in another way is taken for one of these.
    """

    name: str
    arch: str
    what: str
    wanted: Sequence[str]
    needed: Callable[[Iterable[Package]], list[Package]]
    how: Sequence[str]
    build: Build


def ready(arch: str, say: Say) -> Image:
    """The image for guests of an architecture, rebuilt when it is missing or outdated."""
    require_programs(BUILDERS, "building a guest's image")
    guest = Kind(
        name=arch,
        arch=arch,
        what="guest",
        wanted=recipe.wanted(arch),
        needed=recipe.needed,
        how=_how(),
        build=_build,
    )
    return kept(guest, say)


def kept(kind: Kind, say: Say) -> Image:
    """The image of a kind, rebuilt when it is missing or outdated."""
    # The folder may be a link to a larger disk: images take hundreds of megabytes.
    own_folders.make(Path(os.path.realpath(CACHE_FOLDER)), 0o755)
    with _locked(CACHE_FOLDER / f"{kind.name}.lock"):
        inputs = recipe.fingerprint(kind.arch, packages.sources(), *kind.how)
        known = _known(kind.name, inputs)
        if known is not None and time.time() - known[1] < FRESH_S:
            return known[0]
        try:
            image = _current(kind, say)
        except LabError as error:
            if known is None:
                raise
            say(f"no newer packages could be had, so the {kind.what}'s last image serves: {error}")
            return known[0]
        _remember(kind.name, inputs, image)
        _remove_old_images(kind.name, image)
        return image


def _how() -> list[str]:
    return sources_of(recipe, cpio, packages)


def sources_of(*modules: ModuleType) -> list[str]:
    """The texts of these modules and of this one."""
    return [Path(str(file)).read_text() for file in (__file__, *(m.__file__ for m in modules))]


# -- what is there -------------------------------------------------------------------------------


def _index(name: str) -> Path:
    return CACHE_FOLDER / f"{name}.json"


def _known(name: str, inputs: str) -> tuple[Image, float] | None:
    """The image that was made last from these inputs, and when packages were looked for."""
    try:
        index = json.loads(_index(name).read_text())
        image, looked = Image(CACHE_FOLDER / index["image"]), float(index["looked"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if index.get("inputs") != inputs or not image.folder.is_dir() or looked > time.time():
        return None
    return image, looked


def _remember(name: str, inputs: str, image: Image) -> None:
    draft = _index(name).with_suffix(".draft")
    state = {"inputs": inputs, "image": image.folder.name, "looked": time.time()}
    draft.write_text(json.dumps(state) + "\n")
    draft.replace(_index(name))


def _remove_old_images(name: str, image: Image) -> None:
    """Keep the newest images. A running guest has its own in memory, and needs none of them."""
    old_images = [f for f in CACHE_FOLDER.glob(f"{name}-*") if f.is_dir() and f != image.folder]
    old_images.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in old_images[KEPT_IMAGES - 1 :]:
        shutil.rmtree(folder)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    deadline = time.monotonic() + LOCK_LIMIT_S
    with file.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LabError(
                        f"another intop has been building a guest's image for {LOCK_LIMIT_S:g} s "
                        f"(it holds {file}): wait for it, or end it"
                    ) from None
                time.sleep(0.2)
        yield


# -- building ------------------------------------------------------------------------------------


def _current(kind: Kind, say: Say) -> Image:
    """The image of the packages that apt would install today."""
    debian = DEBIAN_ARCH[kind.arch]
    folder = CACHE_FOLDER / f"apt-{kind.name.replace(kind.arch, debian)}"
    packages.prepare(kind.arch, folder)
    say(f"looking for the packages of an {kind.arch} {kind.what}")
    complaint = ""
    try:
        packages.update(folder)
    except LabError as error:
        complaint = f" (and apt-get update said: {packages.first_complaint(error)})"
    try:
        chosen = kind.needed(packages.resolve(folder, kind.wanted))
    except LabError as error:
        raise LabError(
            f"the packages of an {kind.arch} {kind.what} can't be had: "
            f"{packages.first_complaint(error)}{complaint}. A {kind.what} is made of Debian "
            f"packages for {debian}, so this machine's apt must know a source that has them"
        ) from error
    release = recipe.kernel_release(chosen)
    if release is None:
        raise LabError(
            f"{recipe.kernel_package(kind.arch)} brings no kernel: {', '.join(map(str, chosen))}"
        )
    name = f"{kind.name}-{recipe.fingerprint(*map(str, chosen), *kind.how)}"
    image = Image(CACHE_FOLDER / name)
    if not image.folder.is_dir():
        say(
            f"building the image of an {kind.arch} {kind.what}: {len(chosen)} packages, "
            f"Linux {release}"
        )
        kind.build(folder, chosen, release, image)
    return image


@contextmanager
def workshop(name: str) -> Iterator[Path]:
    """A folder for building an image of this kind, removed at the end. Clears older ones."""
    for left in CACHE_FOLDER.glob(f"building-{name}-*"):  # by a builder that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=f"building-{name}-", dir=CACHE_FOLDER) as made:
        yield Path(made)


def _build(apt: Path, chosen: Sequence[Package], release: str, image: Image) -> None:
    with workshop(image.folder.name.partition("-")[0]) as work:
        archives, root, result = work / "archives", work / "root", work / "result"
        for folder in (archives, root, result):
            folder.mkdir()
        entries: dict[str, cpio.Entry] = {}
        for archive in packages.download(apt, chosen, archives):
            if archive.name.startswith("linux-image-"):
                _unpack_kernel(archive, root)
            else:
                entries |= _contents(archive)
        entries |= _modules(root, release)
        entries |= recipe.own_files()
        shutil.copyfile(root / f"boot/vmlinuz-{release}", result / "vmlinuz")
        (result / "packages.txt").write_text("".join(f"{package}\n" for package in chosen))
        with (result / "initramfs").open("wb") as output:
            cpio.write(output, cpio.with_parents(entries))
            output.flush()
            os.fsync(output.fileno())
        result.rename(image.folder)


def _contents(archive: Path) -> dict[str, cpio.Entry]:
    """The files of a package that belong into the image."""
    entries: dict[str, cpio.Entry] = {}
    with _opened(archive) as files:
        for member in files:
            path = recipe.place(member.name)
            if path is None:
                continue
            if member.isdir():
                entries.setdefault(path, cpio.folder(member.mode & 0o755))
            elif member.issym():
                entries[path] = cpio.link(member.linkname)
            elif member.islnk():
                if (original := entries.get(recipe.place(member.linkname) or "")) is not None:
                    entries[path] = original
            elif (data := files.extractfile(member)) is not None:
                entries[path] = cpio.file(data.read(), member.mode & 0o755)
    return entries


def _unpack_kernel(archive: Path, root: Path) -> None:
    """The kernel and its modules, for depmod to look at."""
    with _opened(archive) as files:
        for member in files:
            path = recipe.place(member.name) or ""
            if path.startswith(("boot/vmlinuz", "usr/lib/modules/")) and member.isfile():
                data = files.extractfile(member)
                target = root / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data.read() if data else b"")


def _modules(root: Path, release: str) -> dict[str, cpio.Entry]:
    """The modules that a guest loads, and the indexes by which modprobe finds them."""
    (root / "lib").symlink_to("usr/lib")
    run(["depmod", "-b", str(root), release], timeout_s=120)
    folder = root / "usr/lib/modules" / release
    names = (*recipe.DEVICE_MODULES, *recipe.CHOICE_MODULES)
    files = recipe.module_files((folder / "modules.dep").read_text(), names)
    files |= {file.name for file in folder.glob("modules.*")}
    below = f"usr/lib/modules/{release}"
    return {f"{below}/{file}": cpio.file((folder / file).read_bytes()) for file in sorted(files)}


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    """The files of a package, to be read in their order."""
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as unpacking:
        try:
            with tarfile.open(fileobj=unpacking.stdout, mode="r|") as files:
                yield files
        except tarfile.TarError as error:
            raise LabError(f"{archive.name} can't be unpacked: {error}") from error
        finally:
            if unpacking.stdout is not None:
                unpacking.stdout.read()  # what follows the last file, so that dpkg-deb can end
    if unpacking.returncode != 0:
        raise LabError(f"{archive.name}: dpkg-deb ended with {unpacking.returncode}")
