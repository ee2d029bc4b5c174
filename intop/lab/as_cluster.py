"""A running lab as a cluster, as studies know it."""

from pathlib import Path

from intop.domain.cluster import Cluster, HostAddress, Link, Role
from intop.domain.server import NGINX
from intop.lab import (
    app,
    client_link,
    content,
    guest,
    machine,
    machine_image,
    network,
    qemu,
    servers,
    texts,
)
from intop.lab.network import BALANCER
from intop.lab.state import Lab, folders_of

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


def as_cluster(lab: Lab) -> Cluster:
    """Return its hosts with addresses and keys, and how its server is asked and restarted."""
    folders = folders_of(lab.spec.name)
    restart = {
        "namespaces": f"sh {folders.restart_script(BALANCER)}",
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
            load_cpus="" if part in ROLES and part != "lg" else lab.spec.load_cpus,
        )

    is_nginx = lab.spec.server == NGINX
    first, *rest = network.clients(len(lab.media))
    return Cluster(
        arch=lab.spec.arch,
        load_generator=host(first),
        more_generators=tuple(host(part) for part in rest),
        load_balancer=host(BALANCER),
        backends=tuple(host(part) for part in servers.backends_of(lab.spec.balancing)),
        url=url_of(lab),
        server_restart=restart,
        static_paths=content.static_paths(),
        dynamic_path=app.PATH,
        link=_link_in_words(lab),
        machines=lab.spec.machines,
        emulation=lab.emulation,
        programs=_programs(lab),
        stub_status=f"http://127.0.0.1:{texts.STATUS_PORT}{texts.STATUS_PATH}" if is_nginx else "",
        server=lab.spec.server,
    )


def url_of(lab: Lab) -> str:
    """Return the address that clients ask."""
    scheme = "https" if lab.spec.balancing.tls_key_bits else "http"
    return f"{scheme}://{network.address(lab.subnet, BALANCER)}"


def _link_in_words(lab: Lab) -> str:
    """Describe the load balancer's link, and each class of clients with its share of the load."""

    def words(link: Link | None, by: client_link.Medium | None) -> str:
        return str(link or "unshaped") if by is None else f"{link}; by {MEDIA[by]}"

    if not lab.spec.clients:
        return words(lab.spec.link, *lab.media)
    parts = [
        f"{clients.name} ({clients.share:.4g} of the load): {words(clients.link, by)}"
        for clients, by in zip(lab.spec.clients, lab.media, strict=True)
    ]
    balancer = [] if lab.spec.link is None else [f"load balancer: {lab.spec.link}"]
    return " | ".join([*balancer, *parts])


def _programs(lab: Lab) -> tuple[str, ...]:
    """Return the programs that carry the load beside nginx: hosts see all the machine's processes.

    So they see the load generators of other labs, which may be replicas that are measured on at
    once. Whether those disturb each other is seen by their agreement.
    """
    guest_program = [Path(qemu.program(lab.spec.arch)).name] if lab.guests else []
    link = [client_link.PROGRAM] if "process" in lab.media else []
    return (app.PROGRAM, LOAD_GENERATOR, *guest_program, *link)
