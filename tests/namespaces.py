"""Sockets in other network namespaces."""

import ctypes
import os
import socket
from pathlib import Path

from intop.lab.network import NAMESPACE_FOLDER

NEWNET = 0x40000000
"""CLONE_NEWNET of the kernel's include/uapi/linux/sched.h."""


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
