import math
import subprocess
import sys
import time

import pytest

from intop.learn.parallel import each


def test_every_task_gives_its_result() -> None:
    assert sorted(each(math.sqrt, [(1,), (4,), (9,)], jobs=1)) == [1, 2, 3]
    assert list(each(math.sqrt, [], jobs=2)) == []


def test_whoever_stops_taking_results_hears_nothing(
    recwarn: pytest.WarningsRecorder, capfd: pytest.CaptureFixture[str]
) -> None:
    results = each(time.sleep, [(0,), *[(0.2,)] * 3], jobs=2)
    assert next(results) is None
    results.close()
    assert [str(w.message) for w in recwarn] == []
    assert capfd.readouterr() == ("", "")


def test_one_thread_limits_libraries_that_are_not_loaded_yet() -> None:
    script = (
        "from intop.learn.parallel import one_thread\n"
        "with one_thread():\n"
        "    import sklearn.neural_network, threadpoolctl\n"
        "    print({pool['num_threads'] for pool in threadpoolctl.threadpool_info()})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("{1}", "")
