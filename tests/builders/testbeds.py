"""Stand-ins for what a unit test has no machine for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any

from builders.trials import trial
from intop.domain.configuration import Configuration
from intop.domain.probing import HostFacts, Probe, Reading
from intop.domain.trial import PlannedTrial, Status, Trial
from intop.errors import RefusedValueError, UnreachableError
from intop.run.context import Task


@dataclass
class FakeTestbed:
    """Answers with the statuses it was given, then with ok; P99 by configuration digest.

    `latency` says it for each place instead. After `dies_after` trials it is as if it were killed.
    `output` is what the progress display said; a key in `refuses` takes that value only.
    """

    task: Task
    statuses: list[Status] = field(default_factory=list)
    p99_us: dict[str, int] = field(default_factory=dict)
    connected: bool = True
    measured: list[int] = field(default_factory=list)
    limits_ms: list[float | None] = field(default_factory=list)
    output: StringIO = field(default_factory=StringIO)
    refuses: dict[str, str] = field(default_factory=dict)
    latency: Callable[[PlannedTrial], int] | None = None
    dies_after: int | None = None
    name: str = "lb"
    aborted: bool = False
    waited: int = 0
    applied: str = ""

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        for key, got in self.refuses.items():
            if (value := configuration.values.get(key, got)) != got:
                return RefusedValueError("lb", key, value, got)
        return None

    def trial(
        self, planned: PlannedTrial, stage: Any, attempt: int, prune_above_ms: float | None = None
    ) -> Trial:
        if len(self.measured) == self.dies_after:
            raise KeyboardInterrupt
        self.measured.append(planned.index)
        self.limits_ms.append(prune_above_ms)
        status = self.statuses.pop(0) if self.statuses else "ok"
        latency = (
            self.latency(planned)
            if self.latency
            else self.p99_us.get(planned.configuration.digest, 5_000)
        )
        made = trial(planned.configuration, latency, stage=stage, status=status)
        return replace(made, planned=planned, attempt=attempt, replica=self.name)

    def wait_until_quiet(self) -> None:
        self.waited += 1

    def abort(self) -> None:
        self.aborted = True

    def check_connections(self) -> None:
        if not self.connected:
            raise UnreachableError("lb", "gone")


def probe_of(values: Mapping[str, str]) -> Probe:
    """What a host says that has these keys, all of them writable, and no others."""
    facts = HostFacts(
        machine="x86_64",
        kernel="6.1.0",
        cpu="EPYC",
        cpus=4,
        memory_bytes=8 << 30,
        page_bytes=4096,
        in_namespace=False,
        is_root=True,
        nginx="nginx/1.22.1",
        clock_s=0.0,
    )
    readings = {key: Reading("writable", value) for key, value in values.items()}
    return Probe(facts=facts, readings=readings)
