"""Parallelism of the models: processes by joblib, and one thread in each of them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


def each(
    work: Callable[..., Result], tasks: Iterable[tuple[object, ...]], *, jobs: int | None = None
) -> Iterator[Result]:
    """What `work(*task)` gives for every task, as they end.

    In `jobs` processes; None is as many as this process may use processors. What is handed out
    ends by itself: at most one task a process is under way when it is killed.
    """
    from joblib import Parallel, cpu_count, delayed

    run = Parallel(n_jobs=jobs or cpu_count(), batch_size=1, return_as="generator_unordered")
    yield from run(delayed(work)(*task) for task in tasks)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for linear algebra and OpenMP as long as it lasts.

    Matrices are small here: more threads only wait for each other. Entering costs milliseconds.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
