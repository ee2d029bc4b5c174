"""The state of labs on this machine: their folders, `lab.json` in each, and the lock on all."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from pathlib import Path

from pydantic import TypeAdapter

from intop.domain.cluster import LabSpec, lab_name_problem
from intop.errors import LabError
from intop.lab import client_link, network, own_folders, processes, qemu

STATE_FOLDER = Path("/run/intop/lab")
DISKS_FOLDER = Path("/var/lib/intop-lab")
"""A folder for each lab that writes to a disk. /run is in memory, where no write waits for it."""
LOCK_LIMIT_S = 60.0


@dataclass(frozen=True)
class Folders:
    """The files and folders of a lab."""

    root: Path

    @property
    def keys(self) -> Path:
        """The client's key, the hosts' keys, and who is known by them."""
        return self.root / "keys"

    @property
    def client_key(self) -> Path:
        """The key that opens every host of the lab."""
        return self.keys / "client"

    @property
    def known_hosts(self) -> Path:
        """The hosts' keys, for the client."""
        return self.keys / "known_hosts"

    @property
    def sudo_password(self) -> Path:
        """The password for sudo on a machine, in one line."""
        return self.keys / "sudo-password"

    @property
    def content(self) -> Path:
        """The static files, which the backends share."""
        return self.root / "content"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The lab's hosts: each has a folder."""
        return tuple(host for host in network.NUMBERS if self.host(host).is_dir())

    def host(self, host: str) -> Path:
        """Configurations, logs and sockets of one host's servers."""
        return self.root / f"host-{host}"

    def host_state(self, host: str) -> Path:
        """A host's own state; the namespaces share the machine's file system."""
        return self.host(host) / "state"

    def config_root(self, host: str) -> Path:
        """The place of / for a host's persistent configuration: never the machine's own."""
        return self.host(host) / "root"

    @property
    def slow_disk(self) -> Path:
        """A folder on a disk, outside of the state directory. With disk_iops writes wait for it."""
        return DISKS_FOLDER / self.root.name

    def restart_script(self, host: str) -> Path:
        """The program that (re)starts a host's nginx, or the server in its place."""
        return self.host(host) / "server-restart"


@dataclass(frozen=True)
class Lab:
    """A lab with its addresses: the content of `lab.json`."""

    spec: LabSpec
    subnet: IPv4Network
    emulation: str = ""
    """The emulator that carries its guest out; empty without one."""
    media: tuple[client_link.Medium | None, ...] = (None,)
    """The media of its clients' links, None for a bare one."""

    @property
    def guests(self) -> tuple[str, ...]:
        """The hosts that are virtual machines."""
        return network.guests_of(self.spec)


_LAB = TypeAdapter(Lab)


def to_json(lab: Lab) -> str:
    """Return the text of `lab.json`. Addresses are for people: they follow from the subnet."""
    hosts = network.hosts(len(lab.spec.client_links))
    state = {
        "spec": asdict(lab.spec),
        "subnet": str(lab.subnet),
        "emulation": lab.emulation,
        "media": lab.media,
        "addresses": {host: network.address(lab.subnet, host) for host in hosts},
    }
    return json.dumps(state, indent=2) + "\n"


def from_json(text: str) -> Lab:
    """Return the lab of a `lab.json`. Raises ValueError for a text of another version."""
    lab = _LAB.validate_json(text)
    if lab.subnet.prefixlen != network.PREFIX or json.loads(to_json(lab)) != json.loads(text):
        raise ValueError("another version of intop wrote it")
    return lab


def folders_of(name: str) -> Folders:
    """Return the folders of a lab, which may not be there."""
    return Folders(STATE_FOLDER / name)


def guest_files(name: str) -> qemu.Files:
    """Return the files of a lab's virtual machine."""
    return qemu.Files(folders_of(name).host(network.BALANCER))


def state_file(name: str) -> Path:
    """Return the path of `lab.json`."""
    return folders_of(name).root / "lab.json"


def write(lab: Lab) -> None:
    """Write `lab.json`: from now on the lab is complete."""
    file = state_file(lab.spec.name)
    draft = file.with_suffix(".draft")
    own_folders.write(draft, to_json(lab))
    draft.replace(file)


def read(name: str) -> Lab | None:
    """Return a lab, None when it is not complete, or another version of intop made it.

    A folder that somebody else may change has no lab, whatever is in it.
    """
    if own_folders.problem(folders_of(name).root):
        return None
    try:
        return from_json(state_file(name).read_text())
    except (OSError, ValueError):
        return None


def names() -> list[str]:
    """Return all labs of which there is anything on this machine, half-made ones too."""
    traces = {network.lab_of_namespace(entry) for entry in network.all_namespaces()}
    traces |= set(network.labs_with_links())
    if STATE_FOLDER.is_dir():
        traces |= {entry.name for entry in STATE_FOLDER.iterdir()}
    return sorted(name for name in traces if name and lab_name_problem(name) is None)


@contextmanager
def locked() -> Iterator[None]:
    """Let one `up` or `down` at a time work on this machine, so that no two choose the same subnet.

    The lock is on the folder of all labs. `down` removes that folder when it is empty, so
    whoever waited looks again whether it still holds the folder that is there.
    """
    deadline = time.monotonic() + LOCK_LIMIT_S
    while True:
        own_folders.make(STATE_FOLDER, 0o711)
        try:
            descriptor = os.open(STATE_FOLDER, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if processes.identity(STATE_FOLDER) == _identity(descriptor):
                yield
                return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LabError(
                    f"another intop lab command has been at work for {LOCK_LIMIT_S:g} s "
                    f"(it holds {STATE_FOLDER}): wait for it, or end it"
                ) from None
            time.sleep(0.05)
        finally:
            os.close(descriptor)


def _identity(descriptor: int) -> processes.Identity:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
