"""A Dask cluster in place of processes of this machine. Only here is `distributed` known."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from joblib import parallel_config
from joblib.parallel import ParallelBackendBase

from intop.errors import IntopError, UsageError
from intop.learn.code_fingerprint import code_fingerprint

if TYPE_CHECKING:
    from distributed import Client

TIMEOUT_S = 10
"""Seconds until the scheduler answers, and then until the first worker is there, at most."""


@contextmanager
def fitting_on(address: str) -> Iterator[None]:
    """Tasks of joblib go to the Dask cluster whose scheduler is at `address`.

    What it is to compute is the same as here, to the last digit, where its workers have the same
    intop, libraries and kind of processor; the first two are checked. Raises UsageError where there
    is no such cluster, and IntopError when the scheduler is lost or a task kills one worker after
    the other.
    """
    with _connected(address) as client:
        from distributed import KilledWorker

        try:
            with parallel_config(_Backend(client)):
                yield
        except (CancelledError, KilledWorker) as error:
            reason = " ".join(str(error).split()) or "its scheduler is gone"
            raise IntopError(
                f"--fit-on dask={address}: the cluster was lost: {reason}\n"
                f"What had ended is in the store: the same command goes on from there"
            ) from error


class _Backend(ParallelBackendBase):  # type: ignore[misc]
    """Dask for joblib. With joblib's own, a task that no worker can read is waited for forever."""

    supports_retrieve_callback = True

    def __init__(self, client: "Client") -> None:
        super().__init__()
        self._client = client
        self._executor = client.get_executor(pure=False)

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of workers, whatever is asked for."""
        del n_jobs
        return max(1, len(self._client.nthreads()))

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Future[Any]], None]
    ) -> Future[Any]:
        """Have a worker do it. The callback hears of its end, whatever that is."""
        future: Future[Any] = self._executor.submit(func)
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """The result. Raises what the task raised, or why nobody did it."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Nothing more is begun. What is under way ends by itself."""
        del ensure_ready
        self._executor.shutdown(wait=False)


def check(address: str) -> None:
    """Raise UsageError where `fitting_on` would, before anything is measured or read."""
    with _connected(address):
        pass


@contextmanager
def _connected(address: str) -> Iterator["Client"]:
    """A client of a cluster whose workers compute what this process would."""
    where = f"--fit-on dask={address}"
    try:
        import dask
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError as error:
        raise UsageError(f"{where} needs Dask: pip install 'intop[dask]'") from error
    logger = logging.getLogger("distributed")
    before = logger.level
    # It writes tracebacks of what is raised here in one sentence.
    logger.setLevel(logging.CRITICAL + 1)
    try:
        try:
            # A client of a bad address is never closed. Where Python collects it while another one
            # starts, both want one lock, and wait for ever (distributed 2026.8).
            get_address_host_port(address)
            client = Client(address, timeout=TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise UsageError(
                f"{where}: no Dask scheduler answers there: {reason}\n"
                f"Start one with `dask scheduler`, which prints its address: "
                f"--fit-on dask=tcp://HOST:8786"
            ) from error
        # A table of some MB is meant to be sent.
        large = {"distributed.admin.large-graph-warning-threshold": "1TB"}
        with client, dask.config.set(large):
            _check_workers(client, address, where)
            yield client
    finally:
        logger.setLevel(before)


def _check_workers(client: "Client", address: str, where: str) -> None:
    """Raise UsageError for a cluster without workers, or with ones that would disturb each other.

    Limits of threads and libraries' switches are a process's: two fits in one would change each
    other's.
    """
    start = f"dask worker {address} --nworkers N --nthreads 1"
    try:
        client.wait_for_workers(1, timeout=TIMEOUT_S)
    except TimeoutError:
        raise UsageError(f"{where}: the cluster has no workers. Start some: {start}") from None
    for worker, threads in client.nthreads().items():
        if threads != 1:
            raise UsageError(
                f"{where}: the worker {worker} has {threads} threads, and models need a process "
                f"each. Start it again: {start}"
            )
    try:
        fingerprints = client.run(code_fingerprint)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"{where}: its workers can't fit intop's models: {reason}\n"
            f"Install this version there: pip install 'intop[dask]'"
        ) from error
    for worker, fingerprint in fingerprints.items():
        if fingerprint != code_fingerprint():
            raise UsageError(
                f"{where}: the worker {worker} has another version of intop or of its libraries, "
                f"so its models would not be the same. Install there what is installed here"
            )
