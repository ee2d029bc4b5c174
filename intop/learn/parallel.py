"""Parallelism of the models: tasks of joblib, here or on Dask, with one thread for each."""

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

Result = TypeVar("Result")


def processes() -> int:
    """Return how many processors this process may run on.

    joblib knows a container's share of them, too, but light commands do without joblib.
    """
    return len(os.sched_getaffinity(0))


def each(
    work: Callable[..., Result],
    tasks: Iterable[tuple[object, ...]],
    *,
    jobs: int | None = None,
    dask: str | None = None,
) -> Generator[Result, None, None]:
    """Yield the result of `work(*task)` for every task, as they end.

    In `jobs` processes (None: as many as this process may use processors), or on all workers of the
    Dask cluster whose scheduler is at `dask`. A task is asked for when one of them is about to need
    it. What is handed out ends by itself: at most one task a process is under way when it is
    killed. Raises what `fitting_on` does.
    """
    from joblib import Parallel, delayed

    with _place(dask):
        count = jobs if dask is None else None
        run = Parallel(n_jobs=count or -1, batch_size=1, return_as="generator_unordered")
        results = run(delayed(work)(*task) for task in tasks)
        try:
            for result in results:  # noqa: UP028  `yield from` would close them with a warning
                yield result
        finally:
            with warnings.catch_warnings():
                # That work was thrown away is no news to whoever stopped taking it.
                warnings.simplefilter("ignore")
                results.close()


def _place(dask: str | None) -> AbstractContextManager[None]:
    if dask is None:
        return nullcontext()
    from intop.learn.dask_cluster import fitting_on

    return fitting_on(dask)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra and OpenMP to one thread as long as it lasts.

    Matrices are small here: more threads only wait for each other. Entering costs milliseconds.
    """
    # Only libraries that are loaded can be limited: scipy brings a BLAS, scikit-learn an OpenMP.
    import scipy.linalg  # noqa: F401
    import sklearn.tree  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
