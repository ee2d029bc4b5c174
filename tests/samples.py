"""What several tests need an example of."""

import subprocess
from collections.abc import Mapping

from intop.domain.cluster import HostAddress
from intop.domain.trial import Conditions, HostMetrics
from intop.hosts.host import Completed

CONDITIONS = Conditions(
    arch="x86",
    machine="x86_64",
    kernel="6.18.0-28-cloud-amd64",
    cpu="EPYC",
    nginx="nginx/1.22.1",
    load_tool="wrk 4.1.0",
    workload="slt",
    script="0123456789abcdef",
    rate_rps=100.0,
    connections=8,
    threads=2,
    duration_s=10,
    timeout_s=2,
    link="tbf",
)

METRICS = HostMetrics(
    cpu=0.25,
    steal=0.01,
    memory_mib=100.5,
    time_wait=3,
    listen_overflows=1,
    listen_drops=2,
    retransmits=4,
    cpu_pressure=0.125,
)


class LocalHost:
    """A host that runs commands here, or gives a text for an answer."""

    def __init__(self, answer: str | None = None) -> None:
        self.address = HostAddress(name="lb", role="load-balancer", hostname="192.0.2.1")
        self._answer = answer

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        if self._answer is not None:
            return Completed(0, self._answer, "")
        done = subprocess.run(
            ["sh", "-c", command], input=stdin, capture_output=True, text=True, timeout=timeout_s
        )
        return Completed(done.returncode, done.stdout, done.stderr)

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass
