"""A client's link between two bare namespaces, and sockets in other namespaces than ours."""

import ctypes
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

from intop.domain.cluster import Link
from intop.lab import client_link, network
from intop.lab.commands import run
from intop.lab.network import NAMESPACE_FOLDER

SUBNET = IPv4Network("198.18.255.0/24")
SERVER = network.address(SUBNET, network.BALANCER)
CLIENT = client_link.address(SUBNET, "lg")

NEWNET = 0x40000000
"""CLONE_NEWNET of the kernel's include/uapi/linux/sched.h."""


@contextmanager
def linked(lab: str, link: Link, folder: Path) -> Iterator[tuple[str, str]]:
    """The namespaces of SERVER and CLIENT, joined by our own process as in a lab of that name."""
    server, client = (network.namespace(lab, part) for part in (network.SWITCH, "lg"))
    bridge = f"link add br0 type bridge\naddress add {SERVER}/24 dev br0\nlink set br0 up\n"
    try:
        for name in (server, client):
            run(["ip", "netns", "add", name])
        run(["ip", "-netns", server, "-batch", "-"], text_in=bridge)
        client_link.build(lab, SUBNET, "lg", link, "process", folder)
        yield server, client
    finally:
        if (pid := client_link.pid(lab, "lg", folder)) is not None:
            os.kill(pid, signal.SIGKILL)
        for name in (n for n in network.all_namespaces() if n in (server, client)):
            while run(["ip", "netns", "pids", name]).strip():
                time.sleep(0.01)
            run(["ip", "netns", "delete", name])


def socket_of(
    namespace: str, kind: socket.SocketKind = socket.SOCK_STREAM, timeout_s: float = 10
) -> socket.socket:
    """An IPv4 socket of the namespace; this thread itself stays where it is. Raises OSError."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _enter(NAMESPACE_FOLDER / namespace)
        try:
            made = socket.socket(socket.AF_INET, kind)
        finally:
            _set_namespace(home)
    finally:
        os.close(home)
    made.settimeout(timeout_s)
    return made


def _enter(path: Path) -> None:
    there = os.open(path, os.O_RDONLY)
    try:
        _set_namespace(there)
    finally:
        os.close(there)


def _set_namespace(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
