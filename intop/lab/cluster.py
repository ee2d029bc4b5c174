"""The embedded cluster as a whole: up, found again, looked at, and down without a trace.

A lab is complete when its `lab.json` is there, which is written last. Whatever else is found of
a lab (a namespace, an interface, a folder) is half-made: `up` clears it and begins anew.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Literal

from intop.domain.cluster import (
    Balancing,
    Cluster,
    Direction,
    HostAddress,
    LabClients,
    LabSpec,
    Link,
    Role,
    lab_name_problem,
)
from intop.errors import LabDownError, LabError, UsageError
from intop.lab import (
    app,
    client_link,
    content,
    defaults,
    guest,
    image,
    machine,
    machine_image,
    network,
    processes,
    qemu,
    servers,
    texts,
)
from intop.lab.commands import require_programs, require_root, wait_until

STATE_FOLDER = Path("/run/intop/lab")
PRIVILEGE_MARKER = STATE_FOLDER.parent / "made-run-sshd"
ALLOWED_RECORD = STATE_FOLDER.parent / "allowed-cubic"
LOCK_LIMIT_S = 60.0
RECOVERY_LIMIT_S = 8.0
"""How long a complete lab may stay silent (nginx being restarted) before `up` builds it anew. A
machine may be starting again, and has that long."""

LOAD_GENERATOR = "luajit"
"""The program that sends the load."""

MEDIA: dict[client_link.Medium, str] = {"netem": "netem", "process": "intop's own process"}
ROLES: dict[str, Role] = {
    "lg": "load-generator",
    "lb": "load-balancer",
    "b1": "backend",
    "b2": "backend",
    "b3": "backend",
}


@dataclass(frozen=True, kw_only=True)
class LabStatus:
    """`problems` says what is wrong with a damaged lab, `network` where the lab lives.

    `emulation` says by what its guest is carried out, and is empty when it has none.
    """

    name: str
    state: Literal["up", "damaged", "down"]
    spec: LabSpec | None = None
    network: str | None = None
    url: str | None = None
    emulation: str = ""
    processes: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What `down` found and removed; false when there was nothing."""

    name: str
    namespaces: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    processes: int = 0
    state: bool = False

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.links or self.processes or self.state)


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
        return _guests(self.spec)


# -- what a user asks for ------------------------------------------------------------------------


def up(spec: LabSpec, say: Callable[[str], None] = lambda _: None) -> Cluster:
    """Bring the lab up, or find it up already. It is complete, or nothing of it stays.

    `say` hears what takes long.
    """
    require_root()
    require_programs()
    made = None
    # Before the lock: it may take minutes, and is nothing that other labs must wait for.
    if spec.kind == "vm":
        guest.require(spec.arch)
        made = image.ready(spec.arch, say)
    elif spec.kind == "machine":
        machine.require(spec.arch)
        made = machine_image.ready(spec.arch, say)
    with _locked():
        if (found := _switched_off(spec)) is not None:
            _switch_on(found, say)
            return _cluster(found)
        if (found := _found_up(spec)) is not None:
            return _cluster(found)
        try:
            _remove(spec.name)
            lab = _made(spec, made, say)
            _write(lab)
        except BaseException:  # Ctrl-C too: half a lab is of no use to anybody
            _remove(spec.name)
            _tidy()
            raise
        return _cluster(lab)


def _found_up(spec: LabSpec) -> Lab | None:
    """The lab, if it is up and whole. Raises LabError when it was made to another wish."""
    found = _read(spec.name)
    if found is None or not _answers(found):
        return None
    if found.spec != spec:
        raise LabError(
            f"lab {spec.name} is up with {_described(found.spec)}, "
            f"asked for is {_described(spec)}: take it down first (intop lab down)"
        )
    return found


def _switched_off(spec: LabSpec) -> Lab | None:
    """The lab, if nothing is wrong with it but that its machine is off: that one has a disk."""
    found = _read(spec.name)
    if found is None or found.spec != spec or spec.kind != "machine":
        return None
    is_off = guest.problem(spec.name, _guest_files(spec.name)) is not None
    is_whole = not _missing_namespaces(found) and network.has_machine_link(spec.name)
    return found if is_off and is_whole and machine.owned(spec.name) is not None else None


def _switch_on(lab: Lab, say: Callable[[str], None]) -> None:
    """Start a machine again. It stays off when that fails: what it has done is on its disk."""
    name, mine = lab.spec.name, machine.owned(lab.spec.name)
    if mine is None:
        raise LabError(f"lab {name}: the machine's disk is gone")
    _launch_machine(name, lab.spec.arch, lab.subnet, mine, say)
    servers.wait_for_all(_folders(name), lab.subnet, limit_s=machine.SERVERS_LIMIT_S)


def _launch_machine(
    name: str, arch: str, subnet: IPv4Network, mine: image.Image, say: Callable[[str], None]
) -> str:
    address = network.address(subnet, servers.BALANCER)
    files = _guest_files(name)
    return machine.launch(name, arch, mine, files, lambda: servers.ssh_problem(address), say)


def _made(spec: LabSpec, made: image.Image | None, say: Callable[[str], None]) -> Lab:
    subnet = network.choose_subnet(_taken_subnets())
    folders, guests, emulation = _folders(spec.name), _guests(spec), ""
    servers.make_privilege_folder(PRIVILEGE_MARKER)
    count = len(spec.client_links)
    servers.prepare(spec.name, folders, subnet, guests, count, spec.balancing)
    network.build(spec.name, subnet, spec.link, guests, count)
    problem = defaults.allow(ALLOWED_RECORD)
    inheriting = [host for host in folders.hosts if host not in guests]
    if problem := problem or defaults.set_on(spec.name, inheriting):
        say(f"lab {spec.name}: its hosts keep the machine's congestion control: {problem}")
    if not guests:
        network.start_with(spec.name, spec.balancing.sysctls)
    media = tuple(None if link is None else client_link.medium(link) for link in spec.client_links)
    for host, link, by in _client_links(spec, media):
        client_link.build(spec.name, subnet, host, link, by, folders.host(host))
    servers.start_all(spec.name, folders, guests)
    limit_s = servers.LIMIT_S
    if made is not None and spec.kind == "machine":
        password = machine.new_password()
        servers.write(folders.sudo_password, f"{password}\n")
        script = machine.prepared(
            subnet, servers.BACKENDS, spec.link, folders.keys, password, spec.balancing
        )
        servers.write(_guest_files(spec.name).script, script)
        mine = machine.own(made, spec.name)
        emulation = _launch_machine(spec.name, spec.arch, subnet, mine, say)
        limit_s = machine.SERVERS_LIMIT_S
    elif made is not None:
        files = _guest_files(spec.name)
        told = guest.prepared(subnet, servers.BACKENDS, spec.link, folders.keys, spec.balancing)
        servers.write(files.script, told)
        address = network.address(subnet, servers.BALANCER)
        emulation = guest.launch(
            spec.name, spec.arch, made, files, lambda: servers.ssh_problem(address), say
        )
    servers.wait_for_all(folders, subnet, limit_s=limit_s)
    return Lab(spec, subnet, emulation, media)


def _client_links(
    spec: LabSpec, media: Sequence[client_link.Medium | None]
) -> list[tuple[str, Link, client_link.Medium]]:
    """The load generators that have a link to the load balancer, with what it is made by."""
    found = zip(network.clients(len(media)), spec.client_links, media, strict=True)
    return [(host, link, by) for host, link, by in found if link is not None and by is not None]


def cluster(name: str) -> Cluster:
    """The running lab as a cluster."""
    require_root()
    _check_name(name)
    lab = _read(name)
    if lab is None or _missing_namespaces(lab):
        raise LabDownError(f"lab {name} is not up: start it with intop lab up")
    if lab.guests and (gone := guest.problem(name, _guest_files(name))):
        raise LabDownError(f"lab {name} is damaged: start it again with intop lab up. {gone}")
    if gone := _link_problem(lab):
        raise LabDownError(f"lab {name} is damaged: start it again with intop lab up. {gone}")
    return _cluster(lab)


def status(name: str) -> LabStatus:
    """Ask every part of the lab; changes nothing."""
    require_root()
    _check_name(name)
    if not _traces(name):
        return LabStatus(name=name, state="down")
    count = len(processes.members(name, str(_folders(name).root)))
    lab = _read(name)
    if lab is None:
        problem = "it was not finished: intop lab up builds it anew, intop lab down removes it"
        return LabStatus(name=name, state="damaged", processes=count, problems=(problem,))
    problems = _problems(lab)
    return LabStatus(
        name=name,
        state="damaged" if problems else "up",
        spec=lab.spec,
        network=str(lab.subnet),
        url=_url(lab),
        emulation=lab.emulation,
        processes=count,
        problems=tuple(problems),
    )


def sudo_password(name: str) -> Path:
    """The file with the password that sudo asks for on the lab's machine."""
    return _folders(name).sudo_password


def running() -> list[str]:
    """The names of all labs that exist on this machine, half-made ones included."""
    require_root()
    return _names()


def down(name: str) -> Removed:
    """Remove all that is left of the lab, whatever state it is in."""
    require_root()
    _check_name(name)
    with _locked():
        removed = _remove(name)
        _tidy()
    return removed


# -- the state on disk ---------------------------------------------------------------------------


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


def _folders(name: str) -> servers.Folders:
    return servers.Folders(STATE_FOLDER / name)


def _state_file(name: str) -> Path:
    return _folders(name).root / "lab.json"


def _write(lab: Lab) -> None:
    file = _state_file(lab.spec.name)
    draft = file.with_suffix(".draft")
    servers.write(draft, to_json(lab))
    draft.replace(file)


def _read(name: str) -> Lab | None:
    """None when the lab is not complete, or another version of intop made it."""
    try:
        return from_json(_state_file(name).read_text())
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _check_name(name: str) -> None:
    if problem := lab_name_problem(name):
        raise UsageError(problem)


def _names() -> list[str]:
    names = {network.lab_of_namespace(entry) for entry in network.all_namespaces()}
    names |= set(network.labs_with_links())
    if STATE_FOLDER.is_dir():
        names |= {entry.name for entry in STATE_FOLDER.iterdir() if entry.is_dir()}
    return sorted(name for name in names if name and lab_name_problem(name) is None)


@contextmanager
def _locked() -> Iterator[None]:
    """One `up` or `down` at a time on this machine, so that no two choose the same subnet.

    The lock is on the folder of all labs. `down` removes that folder when it is empty, so
    whoever waited looks again whether it still holds the folder that is there.
    """
    deadline = time.monotonic() + LOCK_LIMIT_S
    while True:
        servers.make_folder(STATE_FOLDER, 0o711)
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


# -- looking -------------------------------------------------------------------------------------


def _traces(name: str) -> bool:
    return bool(
        network.existing_namespaces(name)
        or network.has_machine_link(name)
        or _folders(name).root.exists()
    )


def _taken_subnets() -> list[IPv4Network]:
    labs = (_read(name) for name in _names())
    return [*network.machine_routes(), *(lab.subnet for lab in labs if lab is not None)]


def _missing_namespaces(lab: Lab) -> list[str]:
    present = network.existing_namespaces(lab.spec.name)
    count = len(lab.spec.client_links)
    wanted = network.namespaces(lab.spec.name, lab.guests, count)
    return [n for n in wanted if n not in present]


def _broken(lab: Lab) -> list[str]:
    """What is gone for good, and does not come back by waiting."""
    name = lab.spec.name
    problems = [f"namespace {n} is missing" for n in _missing_namespaces(lab)]
    if not network.has_machine_link(name):
        problems.append(f"interface {network.machine_link(name)} is missing")
    if not problems and lab.guests and (gone := guest.problem(name, _guest_files(name))):
        problems.append(gone)
    if not problems and (gone := _link_problem(lab)):
        problems.append(gone)
    return problems


def _link_problem(lab: Lab) -> str | None:
    """Why a client's link is no more; None while all work."""
    name, folders = lab.spec.name, _folders(lab.spec.name)
    found = (
        client_link.problem(name, host, by, folders.host(host))
        for host, _, by in _client_links(lab.spec, lab.media)
    )
    return next((problem for problem in found if problem), None)


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
    return problems + servers.problems(_folders(lab.spec.name), lab.subnet)


def _answers(lab: Lab) -> bool:
    """Whether the lab is whole, now or within moments."""
    if _broken(lab):
        return False

    def problem() -> str | None:
        return next(iter(_problems(lab)), None)

    is_machine = lab.spec.kind == "machine"
    try:
        wait_until(problem, limit_s=machine.PATIENCE.tcg_s if is_machine else RECOVERY_LIMIT_S)
    except LabError:
        return False
    return True


def _described(spec: LabSpec) -> str:
    balancer = {"namespaces": "", "vm": " with a guest", "machine": " with a machine"}[spec.kind]
    kinds = [f"{clients.share:.4g} {clients.link}" for clients in spec.clients]
    told = f"{', '.join([str(spec.link or 'an unshaped link'), *kinds])} as {spec.arch}{balancer}"
    return told if spec.balancing == Balancing() else f"{told}, {spec.balancing}"


def _guests(spec: LabSpec) -> tuple[str, ...]:
    return () if spec.kind == "namespaces" else (servers.BALANCER,)


def _guest_files(name: str) -> qemu.Files:
    return qemu.Files(_folders(name).host(servers.BALANCER))


def _cluster(lab: Lab) -> Cluster:
    folders = _folders(lab.spec.name)
    restart = {
        "namespaces": f"sh {folders.restart_script(servers.BALANCER)}",
        "vm": f"sh {guest.RESTART_SCRIPT}",
        "machine": machine.NGINX_RESTART,
    }[lab.spec.kind]

    classes = dict(zip(network.clients(len(lab.media)), lab.spec.clients, strict=False))

    def host(part: str) -> HostAddress:
        clients = classes.get(part)
        is_machine = lab.spec.kind == "machine" and part in lab.guests
        return HostAddress(
            name=f"{lab.spec.name}-{clients.name if clients else part}",
            role=ROLES.get(part, "load-generator"),
            hostname=network.address(lab.subnet, part),
            user=machine_image.USER if is_machine else "root",
            sudo="ask" if is_machine else False,
            key_file=str(folders.client_key),
            known_hosts=str(folders.known_hosts),
            ssh_config="none",
            state_dir=guest.STATE_FOLDER if part in lab.guests else str(folders.host_state(part)),
            lease_s=15.0,
            config_root="/" if part in lab.guests else str(folders.config_root(part)),
            share=clients.share if clients else None,
        )

    first, *others = network.clients(len(lab.media))
    return Cluster(
        arch=lab.spec.arch,
        load_generator=host(first),
        more_generators=tuple(host(other) for other in others),
        load_balancer=host(servers.BALANCER),
        backends=tuple(host(part) for part in servers.BACKENDS),
        url=_url(lab),
        nginx_restart=restart,
        static_paths=content.static_paths(),
        dynamic_path=app.PATH,
        link=_link_in_words(lab),
        machines=lab.spec.machines,
        emulation=lab.emulation,
        programs=_programs(lab),
        stub_status=f"http://127.0.0.1:{texts.STATUS_PORT}{texts.STATUS_PATH}",
    )


def _url(lab: Lab) -> str:
    scheme = "https" if lab.spec.balancing.tls_key_bits else "http"
    return f"{scheme}://{network.address(lab.subnet, servers.BALANCER)}"


def _link_in_words(lab: Lab) -> str:
    """Of the load balancer, and of each class of clients with its share of the load."""

    def one(link: Link | None, by: client_link.Medium | None) -> str:
        return str(link or "unshaped") if by is None else f"{link}; by {MEDIA[by]}"

    if not lab.spec.clients:
        return one(lab.spec.link, *lab.media)
    parts = [
        f"{clients.name} ({clients.share:.4g} of the load): {one(clients.link, by)}"
        for clients, by in zip(lab.spec.clients, lab.media, strict=True)
    ]
    balancer = [] if lab.spec.link is None else [f"load balancer: {lab.spec.link}"]
    return " | ".join([*balancer, *parts])


def _programs(lab: Lab) -> tuple[str, ...]:
    """What carries the load beside nginx: the hosts of a lab see all processes of the machine.

    So they see the load generators of other labs, which may be replicas that are measured on at
    once. Whether those disturb each other is seen by their agreement.
    """
    guest_program = [Path(qemu.program(lab.spec.arch)).name] if lab.guests else []
    link = [client_link.PROGRAM] if "process" in lab.media else []
    return (app.PROGRAM, LOAD_GENERATOR, *guest_program, *link)


# -- removing ------------------------------------------------------------------------------------


def _remove(name: str) -> Removed:
    """End processes, then delete namespaces and the link, then the state; look again after."""
    folders = _folders(name)
    folder = folders.root
    state = folder.exists()
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
    _state_file(name).unlink(missing_ok=True)
    wait_until(left, limit_s=10)
    machine.discard(name)
    servers.discard_disk(folders)
    if state:
        shutil.rmtree(folder)
    return Removed(
        name=name,
        namespaces=tuple(gone),
        links=tuple(links),
        processes=len(ended),
        state=state,
    )


def _tidy() -> None:
    """Remove what the labs share, once no lab is left."""
    if _names():
        return
    servers.remove_privilege_folder(PRIVILEGE_MARKER, sshd_runs=processes.runs("sshd"))
    defaults.disallow(ALLOWED_RECORD)
    for folder in (STATE_FOLDER, STATE_FOLDER.parent):
        try:
            folder.rmdir()
        except OSError:
            return  # somebody else's files are in it
