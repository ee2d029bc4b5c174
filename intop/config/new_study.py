"""A new study's file as text, with comments that say what each value rests on."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from intop.domain.cluster import HostAddress


@dataclass(frozen=True, kw_only=True)
class NewStudy:
    """The answers that a new study is made of."""

    name: str
    arch: str
    url: str
    restart: str
    balancer: HostAddress
    generator: HostAddress
    backends: Sequence[HostAddress]
    static_paths: Sequence[str]
    dynamic_path: str
    rate_rps: int

    def text(self) -> str:
        """Return the file."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        cluster = f"cluster.{self.arch}"
        yield "# Written by intop init. Every key of this file: docs/study.md"
        yield ""
        yield "[study]"
        yield f"name = {_quoted(self.name)}"
        yield f"store = {_quoted(self.name + '.db')}        # all trials, models and verdicts"
        yield ""
        yield f"[{cluster}]"
        yield f"url = {_quoted(self.url)}        # the load balancer, as the load generator sees it"
        yield f"nginx_restart = {_quoted(self.restart)}    # opens the listening sockets anew"
        yield f"static_paths = {_listed(self.static_paths)}"
        path = self.dynamic_path or self.static_paths[0]
        yield f"dynamic_path = {_quoted(path)}    # of workload dlt, asked as PATH?r=<a number>"
        yield ""
        yield f"[{cluster}.load_generator]        # sends the load; needs no root"
        yield from self._host(self.generator)
        yield ""
        yield f"[{cluster}.load_balancer]         # the only host whose parameters change"
        yield from self._host(self.balancer)
        for backend in self.backends:
            yield ""
            yield f"[[{cluster}.backends]]            # is only read"
            yield from self._host(backend)
        for name, comment in self._workloads():
            yield ""
            yield f"[workload.{name}]        # {comment}"
            yield f"rate_rps = {self.rate_rps}        # what the load balancer should carry easily"
            yield "connections = 64"
            yield "warmup_s = 1"

    def _workloads(self) -> Iterator[tuple[str, str]]:
        yield "slt", "static files"
        if self.dynamic_path:
            yield "dlt", "pages made on request"

    def _host(self, host: HostAddress) -> Iterator[str]:
        hostnames = [each.hostname for each in (self.generator, self.balancer, *self.backends)]
        if hostnames.count(host.hostname) > 1:
            yield f"name = {_quoted(host.name)}"
        yield f"hostname = {_quoted(host.hostname)}"
        if host.user is not None:
            yield f"user = {_quoted(host.user)}"
        if host.port is not None:
            yield f"port = {host.port}"
        if host.key_file is not None:
            yield f"key_file = {_quoted(host.key_file)}"
        if host.known_hosts is not None:
            yield f"known_hosts = {_quoted(host.known_hosts)}"
        if host.sudo:
            yield f"sudo = {'true' if host.sudo is True else _quoted(host.sudo)}"


def _quoted(text: str) -> str:
    """Return a string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"
