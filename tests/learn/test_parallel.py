import math
import time

import pytest

from intop.learn.parallel import each


def test_every_task_gives_its_result() -> None:
    assert [1, 2, 3] == sorted(each(math.sqrt, [(1,), (4,), (9,)], jobs=1))
    assert [] == list(each(math.sqrt, [], jobs=2))


def test_whoever_stops_taking_results_hears_nothing(
    recwarn: pytest.WarningsRecorder, capfd: pytest.CaptureFixture[str]
) -> None:
    results = each(time.sleep, [(0,), *[(0.2,)] * 3], jobs=2)
    assert next(results) is None
    results.close()
    assert [] == [str(w.message) for w in recwarn]
    assert ("", "") == capfd.readouterr()
