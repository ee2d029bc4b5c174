"""Prometheus metrics of a worker, served so that no number of silent or slow clients fills it."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from intop.errors import UsageError

if TYPE_CHECKING:
    from intop.run.worker import Worker

MOST = 16
"""Connections at once, each with a thread. One more ends the oldest, so whoever comes is served."""
LIMIT_S = 10.0
"""Seconds for a whole connection, however its bytes come."""


@dataclass(frozen=True, eq=False)  # a registry wants it hashable
class WorkerCollector(Collector):
    """The counts of a worker, read when Prometheus asks."""

    worker: "Worker"

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its present value."""
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


class Handler(WSGIRequestHandler):
    """A handler of a connection's only request, without a log."""

    timeout = LIMIT_S

    def log_message(self, *_: object) -> None:
        """Do nothing: requests are no message of a worker."""


class Server(ThreadingMixIn, WSGIServer):
    """A server of at most MOST connections, each for LIMIT_S at most."""

    daemon_threads = True
    request_queue_size = 128  # of the kernel, for those that come at once

    def __init__(self, address: str, port: int, application: Callable[..., Any]) -> None:
        infos = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, *_, place = infos[0]
        self._begun: dict[socket.socket, float] = {}
        self._changing = threading.Lock()
        super().__init__((str(place[0]), port), Handler)
        self.set_app(application)

    def start(self) -> None:
        """Serve in the background until the process ends."""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Make room for a connection, and serve it in a thread."""
        with self._changing:
            self._begun[request] = time.monotonic()
            for oldest in list(self._begun)[:-MOST]:
                self._end(oldest)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End the connections that have lasted too long. The server calls it twice a second."""
        with self._changing:
            since = time.monotonic() - LIMIT_S
            for late in [request for request, begun in self._begun.items() if begun < since]:
                self._end(late)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that was served."""
        with self._changing:
            self._begun.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, *_: object) -> None:
        """Do nothing: a client that went away is no error."""

    def _end(self, request: socket.socket) -> None:
        """End a connection; its waiting thread then closes it."""
        del self._begun[request]
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)
