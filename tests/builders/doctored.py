"""Hosts that answer a doctor as texts."""

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from intop.domain.cluster import Cluster, HostAddress
from intop.domain.diagnosis import Diagnosis
from intop.errors import CommandError
from intop.hosts.connection_limits import LIMITS
from intop.hosts.facts import facts_script
from intop.hosts.host import Completed
from intop.hosts.load.tools import FIND_TOOL
from intop.hosts.nginx import RUNNING
from intop.hosts.nginx_conf import SHOW
from intop.hosts.reader import READER
from intop.hosts.readiness import READINESS
from intop.hosts.scripts import script
from intop.hosts.sockets import LISTENING
from intop.hosts.sysctl import PROBE

DATA = Path(__file__).parents[1] / "data"
MACHINE = (DATA / "hosts" / "facts-x86-namespace.txt").read_text()
MACHINE = MACHINE.replace("namespace=child", "namespace=first")
TOOLS = (DATA / "load" / "found-all.txt").read_text()
NGINX = 'LISTEN 0 511 0.0.0.0:80 0.0.0.0:* users:(("nginx",pid=811,fd=6))\n'
RUNS = """\
master 811
nofile 1024
worker 65536
worker 65536
unit nginx.service
unit_nofile 1024
version nginx version: nginx/1.22.1
build configure arguments: --with-threads
kernel 6.1.0-30-amd64
cpus 2
page 4096
"""
SHOWS = """\
nginx_conf
# configuration file /etc/nginx/nginx.conf:
events { worker_connections 16384; }
http { }
"""

WRITABLE = {
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "vm.swappiness": "60",
    "net.ipv4.tcp_adv_win_scale": "1",
}


@dataclass
class Answers:
    """A host as a text for each question; what `lost` names is asked in vain.

    `answers` are status, length and problem of the paths that do not answer with a page.
    """

    address: HostAddress
    facts: str = MACHINE
    has: str = "can_store\nfree 71582432\n"
    status: str = ""
    keys: Mapping[str, str] = field(default_factory=lambda: dict(WRITABLE))
    tools: str = TOOLS
    listens: str = NGINX
    nginx: str = RUNS
    shows: str = SHOWS
    page: str = ""
    answers: Mapping[str, tuple[int, int, str]] = field(default_factory=dict)
    us: int = 1500
    limits: str = "ports 32768 60999\nreuse 2\n"
    clock_s: float | None = None
    lost: str = ""
    files: str = "end\t\n"

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        if self.lost and self.lost == command:
            raise CommandError(self.address.name, "no answer within 30 s")
        if command == PROBE:
            message = (
                f"{path}\twritable\t{self.keys[path.replace('/', '.')]}\n"
                if path.replace("/", ".") in self.keys
                else f"{path}\tmissing\t\n"
                for path in stdin.split()
            )
            return Completed(0, "".join(message), "")
        if "engine.lua" in command:
            return Completed(0, self._fetched(stdin.split()), "")
        texts = {facts_script(): self.facts, READINESS: self.has, FIND_TOOL: self.tools}
        texts |= {LISTENING: self.listens, RUNNING: self.nginx, SHOW: self.shows}
        texts |= {LIMITS: self.limits}
        if command in texts:
            return Completed(0, texts[command], "")
        if command.endswith(script("persistent.sh")):
            return Completed(0, self.files, "")
        if command.startswith("date"):
            return Completed(0, f"{self.clock_s or time.time()}\n", "")
        if command == f"bash -c {shlex.quote(READER)}":
            mark = stdin.split("\n")[0]
            return Completed(0, f"{mark} host\n{mark} status\n{self.page}\n{mark}\n", "")
        if command.startswith("taskset"):
            return Completed(1, "", "taskset: failed to set pid 0's affinity: Invalid argument\n")
        assert "guard.sh" in command, command
        return Completed(0, f"{self.status}end\t0\n", "")

    def _fetched(self, paths: Sequence[str]) -> str:
        result = []
        for path in paths:
            status, length, problem = self.answers.get(path, (200, 512, ""))
            numbers = {"status": status, "length": length, "crc32": 7, "us": self.us}
            result.append(json.dumps({"path": path, "problem": problem, **numbers}))
        return "".join(f"{line}\n" for line in result)

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        """Nothing but the load scripts, where no campaign has its own."""
        assert self.address.role == "load-generator"
        assert directory == f"{self.address.state_dir}/doctor"
        assert {Path(name).suffix for name in files} == {".lua"}

    def close(self) -> None:
        pass


def cluster(letter: str = "a", **changes: Any) -> Cluster:
    lg, lb, b1 = (
        HostAddress(name=f"{letter}-{short}", role=role, hostname="192.0.2.1")
        for short, role in (("lg", "load-generator"), ("lb", "load-balancer"), ("b1", "backend"))
    )  # type: ignore[misc]
    made = Cluster(
        arch="x86",
        load_generator=lg,
        load_balancer=lb,
        backends=(b1,),
        url="http://192.0.2.1",
        server_restart="true",
        static_paths=("/a",),
        dynamic_path="/d",
    )
    return replace(made, **changes)


Examine = Callable[..., list[Diagnosis]]
