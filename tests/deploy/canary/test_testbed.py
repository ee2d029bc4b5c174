"""Blocks on a host whose log grows while they last, with the real reader."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from builders.testbeds import FakeTestbed
from builders.trials import CONDITIONS
from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.quantities import delivery_ms_per_mb
from intop.deploy.canary.sources import Sources
from intop.deploy.canary.testbed import CanaryTestbed, Timing
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.nginx.access_logs import AccessLog
from intop.domain.probing import Probed
from intop.domain.space import Space
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import CommandError, UnreachableError
from intop.hosts.access_log import LogReader
from kit.local_host import LocalHost

VALUES = Configuration({"net.ipv4.tcp_fin_timeout": "30"})
TIMES = {"block_s": 1, "washout_s": 0}


@dataclass
class FakeGuard:
    """Notes what the host was given."""

    given: list[Configuration] = field(default_factory=lambda: [DEFAULT])

    def apply(self, configuration: Configuration) -> None:
        self.given.append(configuration)


@dataclass
class Traffic:
    """A log that gets 500 lines each 0.05 s, by what the host has at the time."""

    path: Path
    guard: FakeGuard
    line_of: Callable[[Configuration], str]

    def write(self) -> None:
        with self.path.open("a") as file:
            file.write(f"{self.line_of(self.guard.given[-1])}\n" * 500)


@contextmanager
def flowing(traffic: Traffic) -> Iterator[None]:
    ended = threading.Event()

    def flow() -> None:
        while not ended.wait(0.05):
            traffic.write()

    thread = threading.Thread(target=flow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def canary_on(tmp_path: Path, testbed: FakeTestbed, **settings: Any) -> CanaryTestbed:
    path = tmp_path / "a.log"
    path.touch()
    log = AccessLog(path=str(path), name="intop", text="$connection $status $request_time")
    times = {name: settings.pop(name, usual) for name, usual in TIMES.items()}
    sources = {name: settings.pop(name) for name in ("delivery", "ask") if name in settings}
    return CanaryTestbed(
        task=testbed.task,
        guard=FakeGuard(),  # type: ignore[arg-type]
        sources=Sources(
            log=LogReader(LocalHost(), log), only_new=settings.pop("only_new", False), **sources
        ),
        name="lb",
        probed=Probed(Space((), ()), {}),
        conditions=CONDITIONS,
        timing=Timing(**times, check_s=0.2),
        limits=BlockLimits(),
        **settings,
    )


def block(made: CanaryTestbed, configuration: Configuration = DEFAULT) -> Trial:
    planned = PlannedTrial(index=0, role="sentinel", configuration=configuration, arm="a")
    return made.trial(planned, "canary", 0)


def steady(time_s: float, *, status: int = 200) -> Callable[[Configuration], str]:
    return lambda _: f"1 {status} {time_s}"


def test_a_block_counts_the_requests_of_its_time(tmp_path: Path, testbed: FakeTestbed) -> None:
    made = canary_on(tmp_path, testbed)
    with flowing(Traffic(tmp_path / "a.log", made.guard, steady(0.02))):  # type: ignore[arg-type]
        trial = block(made)
    assert trial.status == "ok"
    assert round(trial.judged_ms) == 20
    assert trial.histogram is not None
    assert trial.histogram.total >= 500
    assert made.default is not None


def test_a_block_beyond_a_limit_ends_at_once_with_the_hosts_own_values(
    tmp_path: Path, testbed: FakeTestbed
) -> None:
    reader = FakeReader()
    made = canary_on(tmp_path, testbed, block_s=600, delivery=reader)

    def line_of(configuration: Configuration) -> str:
        return f"1 200 {0.01 if configuration.is_default else 0.5}"

    with flowing(Traffic(tmp_path / "a.log", made.guard, line_of)):  # type: ignore[arg-type]
        made.timing = replace(made.timing, block_s=1)
        block(made)
        made.timing = replace(made.timing, block_s=600)
        events: list[str] = []

        class Noted(BlockLimits):
            def broken_by(self, *of: Any) -> str:
                events.append("limit")
                return super().broken_by(*of)

        def alert() -> str:
            events.append("alert")
            return ""

        made.limits, made.before_block = Noted(), alert
        started_s = time.monotonic()
        trial = block(made, VALUES)
    assert time.monotonic() - started_s < 300
    assert (trial.status, trial.detail) == ("pruned", "P99 was 500 ms, with the default 10 ms")
    assert made.guard.given[-2:] == [VALUES, DEFAULT]  # type: ignore[attr-defined]
    # Neither the sockets nor the alert are asked before the host has its own values again.
    assert (reader.looks, events[-1]) == (2, "limit")
    assert trial.counters["lb"].unread == ("sockets",)


def test_a_block_without_answers_ends_at_once(tmp_path: Path, testbed: FakeTestbed) -> None:
    made = canary_on(tmp_path, testbed, block_s=2)
    traffic = Traffic(tmp_path / "a.log", made.guard, steady(0.01))  # type: ignore[arg-type]
    with flowing(traffic):
        block(made)
    trial = block(made, VALUES)  # nobody asks any more
    assert (trial.status, made.guard.given[-1]) == ("failed", DEFAULT)  # type: ignore[attr-defined]
    assert trial.detail.startswith("only 0 requests were logged, with the default ")


def test_a_log_that_is_away_spoils_a_block_and_no_more(
    tmp_path: Path, testbed: FakeTestbed
) -> None:
    made = canary_on(tmp_path, testbed)
    log = tmp_path / "a.log"
    threading.Timer(0.3, log.rename, [tmp_path / "b.log"]).start()
    trial = block(made)
    assert trial.status == "disturbed"
    assert "a.log" in trial.detail
    log.touch()
    with flowing(Traffic(log, made.guard, steady(0.02))):  # type: ignore[arg-type]
        block(made)  # finds that the log was moved
        assert block(made).status == "ok"


def test_a_canary_that_goes_on_looks_at_the_default_first(
    tmp_path: Path, testbed: FakeTestbed
) -> None:
    made = canary_on(tmp_path, testbed)
    with flowing(Traffic(tmp_path / "a.log", made.guard, steady(0.02))):  # type: ignore[arg-type]
        block(made, VALUES)
    assert made.guard.given[1:] == [DEFAULT, VALUES, DEFAULT]  # type: ignore[attr-defined]


def test_too_few_requests_are_no_block(tmp_path: Path, testbed: FakeTestbed) -> None:
    trial = block(canary_on(tmp_path, testbed))
    assert (trial.status, trial.detail) == ("disturbed", "only 0 requests were logged")
    made = canary_on(tmp_path, testbed, only_new=True)
    with flowing(Traffic(tmp_path / "a.log", made.guard, steady(0.02))):  # type: ignore[arg-type]
        block(made)
        trial = block(made)
    assert "on connections from before the block (--connections)" in trial.detail


def test_nothing_begins_while_something_is_in_the_way(tmp_path: Path, testbed: FakeTestbed) -> None:
    reasons = ["there is an alert"] * 3
    made = canary_on(tmp_path, testbed, before_block=lambda: reasons.pop() if reasons else "")
    with flowing(Traffic(tmp_path / "a.log", made.guard, steady(0.02))):  # type: ignore[arg-type]
        assert block(made).status == "ok"
    assert not reasons
    assert "lb has its own values meanwhile: there is an alert" in testbed.output.getvalue()


def test_an_alert_within_a_block_ends_it(tmp_path: Path, testbed: FakeTestbed) -> None:
    reasons = ["there is an alert", ""]
    made = canary_on(tmp_path, testbed, block_s=600, before_block=lambda: reasons.pop())
    with flowing(Traffic(tmp_path / "a.log", made.guard, steady(0.02))):  # type: ignore[arg-type]
        trial = block(made)
    assert (trial.status, trial.detail) == ("disturbed", "it was stopped: there is an alert")


def test_a_block_can_be_stopped_from_another_thread(tmp_path: Path, testbed: FakeTestbed) -> None:
    made = canary_on(tmp_path, testbed, block_s=600)
    threading.Timer(0.2, made.abort).start()
    with pytest.raises(UnreachableError, match="the block was stopped"):
        block(made)


# TCP_INFO, and metrics of the user's own ----------------------------------------------------------


@dataclass
class FakeReader:
    """Sums that grow by 3 MB and 300 ms at each look."""

    looks: int = 0
    fails: bool = False

    def begin(self) -> None:
        self.looks = 0

    def read(self, *, only_new: bool) -> dict[str, int]:
        if self.fails:
            raise CommandError("lb", "ss is gone")
        self.looks += 1
        grown = {"clients.busy_ms": 300 * self.looks, "clients.bytes_acked": 3_000_000 * self.looks}
        return grown | {"Tcp.OutSegs": 2000 * self.looks, "Tcp.RetransSegs": 20 * self.looks}

    def close(self) -> None:
        pass


def test_a_block_has_what_was_delivered_after_the_washout(
    tmp_path: Path, testbed: FakeTestbed
) -> None:
    made = canary_on(tmp_path, testbed, delivery=FakeReader(), washout_s=1, needs_delivery=True)
    with flowing(Traffic(tmp_path / "a.log", made.guard, steady(0.02))):  # type: ignore[arg-type]
        trial = block(made)
    assert trial.status == "ok"
    assert delivery_ms_per_mb(trial) == 100
    assert trial.counters["lb"].total("clients.bytes_acked") == 3_000_000


def test_a_block_that_is_judged_by_tcp_info_needs_it(tmp_path: Path, testbed: FakeTestbed) -> None:
    made = canary_on(tmp_path, testbed, delivery=FakeReader(fails=True))
    with flowing(Traffic(tmp_path / "a.log", made.guard, steady(0.02))):  # type: ignore[arg-type]
        trial = block(made)
        assert (trial.status, trial.counters["lb"].unread) == ("ok", ("sockets",))
        made.needs_delivery = True
        trial = block(made)
    assert trial.status == "disturbed"
    assert trial.detail == "TCP_INFO could not be read, so there is no delivery time"


def test_a_metric_belongs_to_its_block_and_one_without_a_number_loses_it(
    tmp_path: Path, testbed: FakeTestbed
) -> None:
    asked: list[tuple[float, Configuration]] = []

    def ask(seconds: float, end_s: float) -> dict[str, float]:
        assert 0 <= time.time() - end_s < 60
        asked.append((seconds, made.guard.given[-1]))  # type: ignore[attr-defined]
        if len(asked) > 1:
            raise CommandError("lb", "[canary.metrics.orders]: '' is no number above 0")
        return {"orders": 7.5}

    made = canary_on(tmp_path, testbed, ask=ask)
    with flowing(Traffic(tmp_path / "a.log", made.guard, steady(0.02))):  # type: ignore[arg-type]
        assert block(made, DEFAULT).counters["lb"].levels == {"own.orders": (7.5,)}
        trial = block(made, VALUES)
    assert (trial.status, trial.detail) == (
        "disturbed",
        "lb: [canary.metrics.orders]: '' is no number above 0",
    )
    assert 1 <= asked[0][0] < 1.5
    # However long a command takes, the host has its own values meanwhile.
    assert asked[1][1] == DEFAULT
