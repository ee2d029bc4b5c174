"""What a worker tells Prometheus."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from intop.errors import UsageError
from intop.run.metrics_server import Server

if TYPE_CHECKING:
    from intop.run.worker import Worker


@dataclass(frozen=True, eq=False)  # a registry wants it hashable
class WorkerCollector(Collector):
    """The counts of a worker, read when Prometheus asks."""

    worker: "Worker"

    def collect(self) -> Iterator[Metric]:
        """Each metric with its present value."""
        counted, worker = self.worker.counted, self.worker
        trials = CounterMetricFamily(
            "intop_worker_trials", "Trials measured and stored, by status", labels=["status"]
        )
        for status, count in sorted(counted.trials.items()):
            trials.add_metric([status], count)
        yield trials
        yield CounterMetricFamily(
            "intop_worker_late_trials",
            "Trials that came after another worker had taken them over",
            value=counted.late,
        )
        yield CounterMetricFamily(
            "intop_worker_failures", "Trouble with replicas", value=counted.failures
        )
        yield GaugeMetricFamily(
            "intop_worker_leases", "Leases that the worker holds", value=worker.leases
        )
        replicas = GaugeMetricFamily(
            "intop_worker_replica_up",
            "1 where the worker serves the replica, 0 after trouble until it could open it again",
            labels=["study", "arch", "replica"],
        )
        served = set(worker.serves)
        for spot in worker.spots:
            labels = [spot.study, spot.arch, str(spot.replica + 1)]
            replicas.add_metric(labels, float(spot in served))
        yield replicas


def serve(worker: "Worker", address: str, port: int) -> None:
    """Answer Prometheus until the process ends. Raises UsageError for a port that can't be had."""
    registry = CollectorRegistry()
    registry.register(WorkerCollector(worker))
    try:
        Server(address, port, make_wsgi_app(registry)).start()
    except OSError as error:
        raise UsageError(
            f"--metrics-port {port} can't be had at {address}: {error.strerror or error}. "
            "Name another one"
        ) from error
