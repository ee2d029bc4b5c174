"""Hosts that nobody can reach."""

from intop.domain.cluster import HostAddress
from intop.errors import UnreachableError
from intop.hosts.host import Host


def address(name: str) -> HostAddress:
    return HostAddress(name=name, role="load-balancer", hostname=name)


def refuse(address: HostAddress) -> Host:
    raise UnreachableError(address.name, "the network is gone")
