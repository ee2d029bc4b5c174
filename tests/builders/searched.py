"""A campaign that is searched: it is ready to be verified."""

from benchmarks.campaign import measured
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import search
from intop.campaign.sentinels import with_sentinels
from intop.domain.configuration import Configuration
from intop.domain.probing import Probe
from intop.domain.search import Candidate

QUICK = Configuration({"net.core.somaxconn": "64"})


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def probe_with(fin_timeout: str, somaxconn: str = "4096") -> Probe:
    return probe_of({"net.ipv4.tcp_fin_timeout": fin_timeout, "net.core.somaxconn": somaxconn})


def searched(testbed: FakeTestbed) -> None:
    """A campaign that is ready to be verified; QUICK is five times as quick as the default."""
    task = testbed.task
    measured(task, "collect", with_sentinels(configurations(2), 2))
    result = Candidate(configuration=QUICK, predicted_ms=1.0, model="ensemble")
    task.store.put(task.subject, search(candidates=(result,)))
    task.store.put(task.subject, probe_with("60"))
    testbed.p99_us[QUICK.digest] = 1_000
