"""The embedded cluster as a whole: up, found again, looked at, and down without a trace.

A lab is complete when its `lab.json` is there, which is written last. Whatever else is found of
a lab (a namespace, an interface, a folder) is half-made: `up` clears it and begins anew.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Literal

from intop.domain.balancing import Balancing
from intop.domain.cluster import Cluster, CongestionControl, LabSpec, Link, lab_name_problem
from intop.errors import LabDownError, LabError, UsageError
from intop.lab import (
    client_link,
    defaults,
    guest,
    image,
    machine,
    machine_image,
    network,
    other_servers,
    own_folders,
    processes,
    servers,
    state,
)
from intop.lab.as_cluster import as_cluster, url_of
from intop.lab.commands import require_programs, require_root, wait_until
from intop.lab.image import Image
from intop.lab.state import Lab

PRIVILEGE_MARKER = state.STATE_FOLDER.parent / "made-run-sshd"
ALLOWED_RECORD = state.STATE_FOLDER.parent / "allowed-congestion-control"
RECOVERY_LIMIT_S = 8.0
"""Seconds for which a complete lab may stay silent (nginx being restarted) before `up` rebuilds it.
A machine may be starting again, and has that long."""


@dataclass(frozen=True, kw_only=True)
class LabStatus:
    """A lab as it is now."""

    name: str
    state: Literal["up", "damaged", "down"]
    spec: LabSpec | None = None
    network: str | None = None
    """The lab's subnet."""
    url: str | None = None
    emulation: str = ""
    """The emulator that carries its guest out; empty without one."""
    processes: int = 0
    problems: tuple[str, ...] = ()
    """Faults of a damaged lab."""


@dataclass(frozen=True, kw_only=True)
class Removed:
    """The list of what `down` removed; false when there was nothing."""

    name: str
    namespaces: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    processes: int = 0
    state: bool = False

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.links or self.processes or self.state)


# -- what a user asks for ------------------------------------------------------------------------


def up(spec: LabSpec, say: Callable[[str], None] = lambda _: None) -> Cluster:
    """Bring the lab up, or find it up already. It is complete, or nothing of it stays.

    `say` hears what takes long.
    """
    require_root()
    require_programs()
    if (recipe := other_servers.RECIPES.get(spec.server.name)) is not None:
        require_programs({(recipe.program,): recipe.package}, f"a lab with {spec.server.title}")
    template = None
    # Before the lock: it may take minutes, and is nothing that other labs must wait for.
    if spec.kind == "vm":
        guest.require(spec.arch)
        template = image.ready(spec.arch, say)
    elif spec.kind == "machine":
        machine.require(spec.arch)
        template = machine_image.ready(spec.arch, say)
    with state.locked():
        if (lab := _switched_off(spec)) is not None:
            _switch_on(lab, say)
            return as_cluster(lab)
        if (lab := _whole(spec)) is not None:
            return as_cluster(lab)
        try:
            _remove(spec.name)
            lab = _built(spec, template, say)
            state.write(lab)
        except BaseException:  # Ctrl-C too: half a lab is of no use to anybody
            _remove(spec.name)
            _tidy()
            raise
        return as_cluster(lab)


def _whole(spec: LabSpec) -> Lab | None:
    """Return the lab, if it is up and whole. Raises LabError when it was made to another wish."""
    lab = state.read(spec.name)
    if lab is None or not _answers(lab):
        return None
    if lab.spec != spec:
        raise LabError(
            f"lab {spec.name} is up with {_described(lab.spec)}, "
            f"asked for is {_described(spec)}: take it down first (intop lab down)"
        )
    return lab


def _switched_off(spec: LabSpec) -> Lab | None:
    """Return the lab, if nothing is wrong with it but that its machine is off, which has a disk."""
    lab = state.read(spec.name)
    if lab is None or lab.spec != spec or spec.kind != "machine":
        return None
    is_off = guest.problem(spec.name) is not None
    is_whole = not _missing_namespaces(lab) and network.has_machine_link(spec.name)
    return lab if is_off and is_whole and machine.owned(spec.name) is not None else None


def _switch_on(lab: Lab, say: Callable[[str], None]) -> None:
    """Start a machine again. It stays off when that fails: what it has done is on its disk."""
    machine.launch(lab.spec, lab.subnet, say)
    servers.wait_for_all(lab.spec.name, lab.subnet, limit_s=machine.SERVERS_LIMIT_S)


def _built(spec: LabSpec, template: Image | None, say: Callable[[str], None]) -> Lab:
    """Build a lab, with a guest from a template where it has one, and wait until it answers."""
    subnet = network.choose_subnet(_taken_subnets())
    servers.make_privilege_folder(PRIVILEGE_MARKER)
    servers.prepare(spec, subnet)
    network.build(spec, subnet)
    _set_defaults(spec, say)
    media = tuple(None if link is None else client_link.medium(link) for link in spec.client_links)
    folders = state.folders_of(spec.name)
    for host, link, by in _client_links(spec, media):
        client_link.build(spec.name, subnet, host, link, by, folders.host(host))
    servers.start_all(spec)
    emulation, limit_s = "", servers.LIMIT_S
    if template is not None and spec.kind == "machine":
        machine.prepare(spec, subnet)
        machine.own(template, spec.name)
        emulation = machine.launch(spec, subnet, say)
        limit_s = machine.SERVERS_LIMIT_S
    elif template is not None:
        own_folders.write(state.guest_files(spec.name).script, guest.prepared(spec, subnet))
        address = network.address(subnet, network.BALANCER)
        vm = guest.Guest(lab=spec.name, arch=spec.arch, address=address, image=template)
        emulation = vm.launch(say)
    servers.wait_for_all(spec.name, subnet, limit_s=limit_s)
    return Lab(spec, subnet, emulation, media)


def _set_defaults(spec: LabSpec, say: Callable[[str], None]) -> None:
    """Give the hosts what they start with, unless a guest has its own.

    Raises LabError where this machine has no congestion control that the lab's file names.
    """
    algorithms = defaults.choices(spec)
    problem = defaults.allow(ALLOWED_RECORD, set(algorithms.values()))
    if problem := problem or defaults.set_on(spec.name, algorithms):
        if spec.congestion_control != CongestionControl():
            raise LabError(f"lab {spec.name}: congestion_control: {problem}")
        say(f"lab {spec.name}: its hosts keep the machine's congestion control: {problem}")
    if not network.guests_of(spec):
        network.start_with(spec.name, spec.balancing.sysctls)


def _client_links(
    spec: LabSpec, media: Sequence[client_link.Medium | None]
) -> list[tuple[str, Link, client_link.Medium]]:
    """Return the load generators with a link to the load balancer, and what it is made by."""
    links = zip(network.clients(len(media)), spec.client_links, media, strict=True)
    return [(host, link, by) for host, link, by in links if link is not None and by is not None]


def cluster(name: str) -> Cluster:
    """Return the running lab as a cluster."""
    require_root()
    _check_name(name)
    lab = state.read(name)
    if lab is None or _missing_namespaces(lab):
        raise LabDownError(f"lab {name} is not up: start it with intop lab up")
    if lab.guests and (gone := guest.problem(name)):
        raise LabDownError(f"lab {name} is damaged: start it again with intop lab up. {gone}")
    if gone := _link_problem(lab):
        raise LabDownError(f"lab {name} is damaged: start it again with intop lab up. {gone}")
    return as_cluster(lab)


def status(name: str) -> LabStatus:
    """Ask every part of the lab; changes nothing."""
    require_root()
    _check_name(name)
    if not _traces(name):
        return LabStatus(name=name, state="down")
    count = len(processes.members(name, str(state.folders_of(name).root)))
    lab = state.read(name)
    if lab is None:
        problem = "it was not finished. Run: intop lab up, or intop lab down"
        return LabStatus(name=name, state="damaged", processes=count, problems=(problem,))
    problems = _problems(lab)
    return LabStatus(
        name=name,
        state="damaged" if problems else "up",
        spec=lab.spec,
        network=str(lab.subnet),
        url=url_of(lab),
        emulation=lab.emulation,
        processes=count,
        problems=tuple(problems),
    )


def sudo_password(name: str) -> Path:
    """Return the file with the password that sudo asks for on the lab's machine."""
    return state.folders_of(name).sudo_password


def running() -> list[str]:
    """Return the names of all labs that exist on this machine, half-made ones included."""
    require_root()
    return state.names()


def down(name: str) -> Removed:
    """Remove all that is left of the lab, whatever state it is in."""
    require_root()
    _check_name(name)
    with state.locked():
        removed = _remove(name)
        _tidy()
    return removed


# -- looking -------------------------------------------------------------------------------------


def _check_name(name: str) -> None:
    if problem := lab_name_problem(name):
        raise UsageError(problem)


def _traces(name: str) -> bool:
    return bool(
        network.existing_namespaces(name)
        or network.has_machine_link(name)
        or os.path.lexists(state.folders_of(name).root)
    )


def _taken_subnets() -> list[IPv4Network]:
    labs = (state.read(name) for name in state.names())
    return [*network.machine_routes(), *(lab.subnet for lab in labs if lab is not None)]


def _missing_namespaces(lab: Lab) -> list[str]:
    present = network.existing_namespaces(lab.spec.name)
    count = len(lab.spec.client_links)
    wanted = network.namespaces(lab.spec.name, lab.guests, count)
    return [n for n in wanted if n not in present]


def _broken(lab: Lab) -> list[str]:
    """Return what is gone for good, and does not come back by waiting."""
    name = lab.spec.name
    problems = [f"namespace {n} is missing" for n in _missing_namespaces(lab)]
    if not network.has_machine_link(name):
        problems.append(f"interface {network.machine_link(name)} is missing")
    if not problems and lab.guests and (gone := guest.problem(name)):
        problems.append(gone)
    if not problems and (gone := _link_problem(lab)):
        problems.append(gone)
    return problems


def _link_problem(lab: Lab) -> str | None:
    """Return why a client's link is no more; None while all work."""
    name, folders = lab.spec.name, state.folders_of(lab.spec.name)
    problems = (
        client_link.problem(name, host, by, folders.host(host))
        for host, _, by in _client_links(lab.spec, lab.media)
    )
    return next(filter(None, problems), None)


def _problems(lab: Lab) -> list[str]:
    if problems := _broken(lab):
        return problems
    if not lab.guests:
        try:
            shape = network.queueing(lab.spec.name)
        except LabError as error:
            return [str(error)]
        if problem := network.shape_problem(lab.spec.link, shape):
            problems.append(f"lb: {problem}")
    return [*problems, *servers.problems(lab.spec.name, lab.subnet)]


def _answers(lab: Lab) -> bool:
    """Whether the lab is whole, now or within moments."""
    if _broken(lab):
        return False

    def problem() -> str | None:
        return next(iter(_problems(lab)), None)

    is_machine = lab.spec.kind == "machine"
    try:
        wait_until(problem, limit_s=machine.TCG_LIMIT_S if is_machine else RECOVERY_LIMIT_S)
    except LabError:
        return False
    return True


def _described(spec: LabSpec) -> str:
    balancer = {"namespaces": "", "vm": " with a guest", "machine": " with a machine"}[spec.kind]
    kinds = [f"{clients.share:.4g} {clients.link}" for clients in spec.clients]
    text = f"{', '.join([str(spec.link or 'an unshaped link'), *kinds])} as {spec.arch}{balancer}"
    return text if spec.balancing == Balancing() else f"{text}, {spec.balancing}"


# -- removing ------------------------------------------------------------------------------------


def _remove(name: str) -> Removed:
    """End processes, then delete namespaces and the link, then the state; look again after."""
    folder = state.folders_of(name).root
    is_there = os.path.lexists(folder)
    if folder.is_symlink() or not folder.is_dir():
        own_folders.remove(folder)  # nothing is removed through it
    ended: set[int] = set()
    links: list[str] = []
    gone: list[str] = []

    def members() -> set[int]:
        return processes.members(name, str(folder))

    def left() -> str | None:
        ended.update(processes.end(members))
        try:
            links.extend(network.remove_machine_link(name))
            gone.extend(network.remove_namespaces(name))
        except LabError as error:  # busy for a moment: somebody enters a namespace just now
            return str(error)
        # A command of a killed `up` may have been under way: only a second look is proof.
        if network.existing_namespaces(name) or network.has_machine_link(name) or members():
            return f"lab {name} does not go away: something makes it anew"
        return None

    # Without lab.json nobody takes what is being removed for a complete lab.
    own_folders.remove(state.state_file(name))
    wait_until(left, limit_s=10)
    machine.discard(name)
    servers.discard_disk(name)
    own_folders.remove(folder)
    return Removed(
        name=name,
        namespaces=tuple(gone),
        links=tuple(links),
        processes=len(ended),
        state=is_there,
    )


def _tidy() -> None:
    """Remove what the labs share, once no lab is left."""
    if state.names():
        return
    servers.remove_privilege_folder(PRIVILEGE_MARKER, sshd_runs=processes.runs("sshd"))
    defaults.disallow(ALLOWED_RECORD)
    for folder in (state.STATE_FOLDER, state.STATE_FOLDER.parent):
        try:
            folder.rmdir()
        except OSError:
            return  # somebody else's files are in it
