"""Fits on a Dask cluster: the same as here, to the last digit."""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from builders.trials import table
from intop.domain.training import FittedFamily, ModelError
from intop.errors import IntopError, UsageError
from intop.learn.dask_cluster import check
from intop.learn.parallel import each
from intop.learn.tuning import train_all
from intop.learn.tuning_effort import Effort
from kit.dask_cluster import DaskCluster, dask_cluster, slept_in
from kit.studies import wait_for


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask"), workers=2) as made:
        wait_for(lambda: made.log().count("Registered to") == 2, "two workers")
        yield made


@pytest.mark.long
def test_training_on_two_workers_gives_the_same_table_to_the_last_digit(
    cluster: DaskCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(3)
    samples = table(rng.random((24, 4)), rng.normal(4, 1, 24))

    def trained(dask: str | None) -> list[tuple[FittedFamily, ModelError]]:
        result = train_all(
            ["SVR", "RFR", "LightGBM"],
            samples,
            Effort(folds=2, trials=2, seed=1),
            jobs=1,
            dask=dask,
        )
        return [(fitted, replace(error, seconds=0.0)) for fitted, error in result]

    assert trained(None) == trained(cluster.address)
    assert capfd.readouterr() == ("", "")


def test_both_workers_are_at_work(cluster: DaskCluster) -> None:
    check(cluster.address)
    result = set(each(slept_in, [(0.2,)] * 8, dask=cluster.address))
    assert {p.pid for p in cluster.processes[1:]} == result


def test_what_fails_there_fails_here(cluster: DaskCluster) -> None:
    with pytest.raises(ZeroDivisionError):
        list(each(divmod, [(1, 1), (1, 0)], dask=cluster.address))
    with pytest.raises(RuntimeError, match="deserialization"):
        list(each(str, [(Unreadable(),)], dask=cluster.address))


class Unreadable:
    """What no worker can read, such as an object of a module that it lacks."""

    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("raise ImportError('no such module')",)


# What is no cluster -------------------------------------------------------------------------------


def test_an_address_where_nobody_answers_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intop.learn.dask_cluster.TIMEOUT_S", 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError, match=rf"--fit-on dask={address}: no Dask scheduler answer"):
            check(address)


def loops() -> set[threading.Thread]:
    """The threads of Dask's clients."""
    return {thread for thread in threading.enumerate() if thread.name == "IO loop"}


@pytest.mark.parametrize("address", ["nonsense", "smoke://signals:1", "tcp://:port", "tcp://"])
def test_what_is_no_address_is_one_sentence(
    address: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("intop.learn.dask_cluster.TIMEOUT_S", 1)
    message = f"--fit-on dask={address}: no Dask scheduler answers"
    before = loops()
    with pytest.raises(UsageError, match=message):
        check(address)
    assert capfd.readouterr() == ("", "")
    assert before == loops(), "Python would collect it when it likes, and another client may hang"


WITHOUT_INTOP = """
import sys
class Hidden:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "intop":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""
OTHER_VERSION = (
    "import intop.learn.code_fingerprint as code; code.LIBRARIES = (); "
    "code.code_fingerprint.cache_clear()"
)


@pytest.mark.parametrize(
    ("threads", "before", "message"),
    [
        (0, "", "the cluster has no workers. Start some: dask worker tcp:"),
        (2, "", "has 2 threads, and models need a process each. Start it again: dask worker tcp:"),
        (1, WITHOUT_INTOP, "its workers can't fit intop's models: .*intop"),
        (1, OTHER_VERSION, "has another version of intop or of its libraries"),
    ],
)
def test_a_cluster_that_would_not_compute_the_same_is_refused(
    threads: int, before: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not threads:
        monkeypatch.setattr("intop.learn.dask_cluster.TIMEOUT_S", 2)
    with dask_cluster(tmp_path, workers=0) as made:
        if threads:
            made.add_worker(threads, before)
            wait_for(lambda: "Registered to" in made.log(), "a worker")
        with pytest.raises(UsageError, match=message):
            check(made.address)


def lost_scheduler(cluster: DaskCluster) -> None:
    cluster.processes[0].send_signal(signal.SIGKILL)


def lost_worker(cluster: DaskCluster) -> None:
    cluster.processes[1].send_signal(signal.SIGKILL)


@pytest.mark.parametrize("lose", [lost_scheduler, lost_worker])
def test_a_cluster_that_is_lost_is_one_sentence_and_a_worker_is_replaced(
    lose: Callable[[DaskCluster], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with dask_cluster(tmp_path, workers=2) as made:
        wait_for(lambda: made.log().count("Registered to") == 2, "two workers")
        results = each(slept_in, [(0.1,), *[(2.0,)] * 3], dask=made.address)
        next(results)
        lose(made)
        if lose is lost_worker:
            assert [made.processes[2].pid] * 3 == list(results)
        else:
            with pytest.raises(IntopError, match=r"the cluster was lost.*\n.*goes on from there"):
                list(results)
        del results
    assert capfd.readouterr() == ("", "")
