"""The metrics of a canary in a study's file."""

from pathlib import Path

import pytest

from builders.config_files import GOOD, edited, problems, study
from intop.domain.canary import OwnMetric


def with_metric(lines: str, name: str = "orders") -> str:
    return edited("[workload.slt]", f"[canary.metrics.{name}]\n{lines}\n[workload.slt]")


def test_a_metric_is_a_command_or_a_query(tmp_path: Path) -> None:
    assert study(tmp_path, GOOD).canary.metrics == {}
    text = with_metric('command = "/opt/orders"\nbetter = "higher"\nlimit_times = 1.5')
    metric = OwnMetric(better="higher", command="/opt/orders", limit_times=1.5)
    assert study(tmp_path, text).canary.metrics == {"orders": metric}
    text = with_metric('prometheus = "https://p:9090/x"\nquery = "up"\nbetter = "lower"', "a-1_b")
    metric = OwnMetric(better="lower", prometheus="https://p:9090/x", query="up")
    assert study(tmp_path, text).canary.metrics == {"a-1_b": metric}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('better = "lower"', "needs a command, or prometheus with a query, and not both"),
        ('better = "lower"\nquery = "x"', "needs a command, or prometheus with a query"),
        ('better = "lower"\ncommand = "x"\nquery = "x"', "prometheus and query belong together"),
        ('better = "lower"\nprometheus = "http://p"', "prometheus and query belong together"),
        (
            'better = "lower"\ncommand = "x"\nprometheus = "http://p"\nquery = "x"',
            "needs a command, or prometheus with a query, and not both",
        ),
        ('better = "faster"\ncommand = "x"', "better: input should be 'lower' or 'higher'"),
        ('command = "x"', "better: field required"),
        ('better = "lower"\ncommand = " "', "command: must be a command, not blanks"),
        (
            'better = "lower"\nprometheus = "http://me:secret@p"\nquery = "x"',
            "prometheus: must be http://HOST:PORT or https://HOST:PORT, without a user",
        ),
        (
            'better = "lower"\nprometheus = "http://p:99999/x"\nquery = "x"',
            "prometheus: port out of range 0-65535",
        ),
        (
            'better = "lower"\nprometheus = "http://[::1/x"\nquery = "x"',
            "prometheus: must be http://HOST:PORT",
        ),
        ('better = "lower"\ncommand = "x"\nlimit_times = 1', "limit_times: input should be"),
        ('better = "lower"\ncommand = "x"\nmargin = 1', "margin: extra inputs are not permitted"),
    ],
)
def test_a_mistake_has_its_place(tmp_path: Path, lines: str, expected: str) -> None:
    (line,) = problems(tmp_path, with_metric(lines))
    assert line.startswith("study.toml:")
    assert "canary.metrics.orders" in line
    assert expected in line
    assert "secret" not in line


@pytest.mark.parametrize("name", ["P99", '"a b"', "1st"])
def test_a_metric_has_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    (line,) = problems(tmp_path, with_metric('better = "lower"\ncommand = "x"', name))
    assert "none of P50, P90, P99" in line
