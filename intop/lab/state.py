"""What is kept of a lab on this machine: its folder, `lab.json` in it, and the lock on all labs."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from intop.domain.balancing import Balancing
from intop.domain.cluster import Direction, LabClients, LabSpec, Link, lab_name_problem
from intop.errors import LabError
from intop.lab import client_link, network, own_folders, processes, qemu, servers

STATE_FOLDER = Path("/run/intop/lab")
LOCK_LIMIT_S = 60.0


@dataclass(frozen=True)
class Lab:
    """A lab with its addresses: what `lab.json` holds.

    `emulation` says by what its guest is carried out, and is empty when it has none. `media` are
    what its clients' links are made by, None for a bare one.
    """

    spec: LabSpec
    subnet: IPv4Network
    emulation: str = ""
    media: tuple[client_link.Medium | None, ...] = (None,)

    @property
    def guests(self) -> tuple[str, ...]:
        """The hosts that are virtual machines."""
        return guests_of(self.spec)


def to_json(lab: Lab) -> str:
    """The text of `lab.json`; addresses are there for people, they follow from the subnet."""
    state = {
        "spec": asdict(lab.spec),
        "subnet": str(lab.subnet),
        "emulation": lab.emulation,
        "media": lab.media,
        "addresses": {
            host: network.address(lab.subnet, host)
            for host in network.hosts(len(lab.spec.client_links))
        },
    }
    return json.dumps(state, indent=2) + "\n"


def from_json(text: str) -> Lab:
    """Raises ValueError, KeyError or TypeError for a text of another version."""
    state: dict[str, Any] = json.loads(text)
    spec = state["spec"]
    link = _link_from(spec["link"])
    return Lab(
        LabSpec(
            **{
                **spec,
                "link": link,
                "machines": tuple(spec["machines"]),
                "balancing": _balancing_from(spec["balancing"]),
                "clients": tuple(
                    LabClients(**{**one, "link": _link_from(one["link"])})
                    for one in spec["clients"]
                ),
            }
        ),
        IPv4Network(state["subnet"]),
        state["emulation"],
        tuple(state["media"]),
    )


def _balancing_from(state: dict[str, Any]) -> Balancing:
    return Balancing(**{**state, "sysctls": tuple((k, v) for k, v in state["sysctls"])})


def _link_from(state: dict[str, Any] | None) -> Link | None:
    if state is None:
        return None
    up = None if state["up"] is None else Direction(**state["up"])
    return Link(**{**state, "up": up})


def folders_of(name: str) -> servers.Folders:
    """The folders of a lab, which may not be there."""
    return servers.Folders(STATE_FOLDER / name)


def guests_of(spec: LabSpec) -> tuple[str, ...]:
    """The hosts that are virtual machines."""
    return () if spec.kind == "namespaces" else (servers.BALANCER,)


def guest_files(name: str) -> qemu.Files:
    """The files of a lab's virtual machine."""
    return qemu.Files(folders_of(name).host(servers.BALANCER))


def state_file(name: str) -> Path:
    """`lab.json`."""
    return folders_of(name).root / "lab.json"


def write(lab: Lab) -> None:
    """Write `lab.json`: from now on the lab is complete."""
    file = state_file(lab.spec.name)
    draft = file.with_suffix(".draft")
    servers.write(draft, to_json(lab))
    draft.replace(file)


def read(name: str) -> Lab | None:
    """None when the lab is not complete, or another version of intop made it.

    A folder that somebody else may change has no lab, whatever is in it.
    """
    if own_folders.problem(folders_of(name).root):
        return None
    try:
        return from_json(state_file(name).read_text())
    except (OSError, ValueError, KeyError, TypeError):
        return None


def names() -> list[str]:
    """All labs of which there is anything on this machine, half-made ones too."""
    found = {network.lab_of_namespace(entry) for entry in network.all_namespaces()}
    found |= set(network.labs_with_links())
    if STATE_FOLDER.is_dir():
        found |= {entry.name for entry in STATE_FOLDER.iterdir()}
    return sorted(name for name in found if name and lab_name_problem(name) is None)


@contextmanager
def locked() -> Iterator[None]:
    """One `up` or `down` at a time on this machine, so that no two choose the same subnet.

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
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino
