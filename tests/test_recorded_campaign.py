"""A campaign that an intop without stage objects measured, killed twice, is finished the same.

tests/data/campaign/README.md says how it was recorded. Its trials answer in place of hosts.
"""

import lzma
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from intop.campaign.collect.stage import collect
from intop.campaign.tune import tune
from intop.config.study import Study, load_study
from intop.document.progress import LineProgress
from intop.domain import further
from intop.domain.agreement import Agreement
from intop.domain.explanation import Promised
from intop.domain.probing import Probe, Probed
from intop.domain.trial import PlannedTrial, Trial
from intop.explain import stage as explain
from intop.features import result_types, stage_places
from intop.run.attempt import load_words
from intop.run.available_space import stored_probed
from intop.run.context import Context, Task
from intop.store import Store, opened

DATA = Path(__file__).parent / "data" / "campaign"
LEFT_OUT = {"seconds", "fingerprint"}
"""Another run takes another time, and other code has another fingerprint."""
TAKES = {"P50": 20, "P90": 100, "P99": 1000, "P99.9": 10_000}
"""Requests without which ten would not be slower."""


class Recorded:
    """A replica that answers with the trial that was recorded of it."""

    def __init__(self, name: str, task: Task, recorded: dict[tuple[str, int, int], Trial]) -> None:
        self.name = name
        self._task = task
        self._recorded = recorded

    @property
    def probed(self) -> Probed:
        probed = stored_probed(self._task)
        assert probed is not None
        return probed

    def trial(self, planned: PlannedTrial, stage: str, attempt: int, _limit: Any) -> Trial:
        results = self._recorded[stage, planned.index, attempt]
        assert planned == results.planned
        assert self.name == results.replica
        assert self._task.seed(stage, load_words(planned), attempt) == results.seed
        return results

    def refusal(self, _configuration: Any) -> None:
        return None

    def check_connections(self) -> None: ...

    def wait_until_quiet(self) -> None: ...

    def abort(self) -> None: ...


def unpacked(name: str, folder: Path) -> Path:
    path = folder / f"{name}.db"
    with lzma.open(DATA / f"{name}.db.xz") as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return path


@contextmanager
def campaigns(study: Study, killed: str, folder: Path) -> Iterator[tuple[Context, Context]]:
    """The campaign as it was killed, and as it was finished then."""
    with ExitStack() as stack:
        stores = [
            stack.enter_context(opened(str(unpacked(name, folder))))
            for name in (killed, "finished")
        ]
        now, then = (context_of(study, store) for store in stores)

        def testbeds(task: Task) -> Any:
            subject = replace(task.subject, campaign=then.campaign)
            if task.store.get(task.subject, Probe) is None:
                probe = then.store.get(subject, Probe)
                assert probe is not None
                task.store.put(task.subject, probe)
            recorded = {
                (t.stage, t.planned.index, t.attempt): t for t in then.store.trials(subject)
            }
            agreed = task.store.get(task.subject, Agreement)
            names = sorted({t.replica for t in recorded.values()})
            used = names if agreed is None else [agreed.replicas[n].name for n in agreed.in_use]
            return nullcontext(tuple(Recorded(name, task, recorded) for name in used))

        yield replace(now, testbeds=testbeds), then


def context_of(study: Study, store: Store) -> Context:
    campaign = store.latest(study.name)
    assert campaign is not None
    return Context(
        study=study,
        store=store,
        campaign=campaign,
        connect=lambda address: pytest.fail(f"connects to {address}"),
        progress=LineProgress(StringIO()),
        archs=tuple(study.clusters),
        workloads=(study.workloads["slt"],),
    )


def by_index(trials: list[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda t: t.planned.index)


def decisions(task: Task) -> dict[str, Any]:
    """All results, without the times that they took."""
    kinds = [(kind, name) for name, kind in result_types().items() if kind is not Promised]
    stored = {name: task.store.get(task.subject, kind) for kind, name in kinds}
    results = {name: as_told(plain(asdict(one))) for name, one in stored.items() if one is not None}
    # These are in the order in which replicas finished.
    for curve in results.get("explanation", {}).get("curves", ()):
        curve["measured"].sort(key=str)
    return results


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items() if k not in LEFT_OUT}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


LATER = (
    *("fewest_requests", "mean_ms", "received_mb_s", "memory_mib"),
    *("context_switches_per_s", "power_w"),
)
"""What both sides of a verdict have since then."""


def as_told(value: Any) -> Any:
    """Without what an intop of that time told of too few requests, did not count or look at."""
    if isinstance(value, list):
        return [as_told(one) for one in value]
    if not isinstance(value, dict):
        return value
    unknown = LATER if "latencies_ms" in value else ("was_seen", "earlier", "further")
    message = {k: as_told(v) for k, v in value.items() if k not in unknown}
    if message.get("missed"):  # it was by the rounds up to a decision, and at the level of that
        message["missed"] = "known"
    if "latencies_ms" in message:
        message["latencies_ms"] = then_told(message["latencies_ms"])
    for name, needed in TAKES.items() if "latencies_ms" in message else ():
        latency = message["latencies_ms"][name]
        few = [message["requests"][side] < needed for side in ("default", "tuned")]
        for side, too_few in zip(("default", "tuned"), few, strict=True):
            if too_few:
                latency[side] = None
        if any(few) and name != "P99":
            latency["ratio"] = None
    return message


def then_told(latencies: dict[str, Any]) -> dict[str, Any]:
    """Without percentiles of later, and intervals that did not hold with the others'."""
    told = {name: dict(latencies[name]) for name in (*TAKES, "max")}
    for name, latency in told.items():
        if name != "P99" and latency["ratio"]:
            latency["ratio"] = latency["ratio"]["value"]
    return told


def about(value: Any) -> Any:
    """Numbers may differ in their last digits from one processor to another."""
    if isinstance(value, dict):
        return {k: about(v) for k, v in value.items()}
    if isinstance(value, list):
        return [about(one) for one in value]
    return pytest.approx(value, rel=1e-6, nan_ok=True) if isinstance(value, float) else value


def test_killed_while_it_collects_it_has_the_same_plans_and_decisions(tmp_path: Path) -> None:
    """Of the architecture that it had begun, as far as it collects.

    Today's refinement learns from the screening, too, and measures other configurations. That the
    models of then are fitted to what they had, the next test shows.
    """
    study = load_study(DATA / "intop.toml")
    with campaigns(study, "killed-collect", tmp_path) as (now, then):
        mine, theirs = next(now.subjects()), next(then.subjects())
        assert len(mine.trials("collect")) < len(theirs.trials("collect"))
        collect(mine)
        check_same(mine, theirs, ("screen", "collect"), set(decisions(mine)))


def test_killed_while_it_judges_it_has_the_same_plans_and_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its explanation looked at each change, as today's do where models promise nothing.

    Its verdict kept nothing of the error rate for further pairs.
    """
    monkeypatch.setattr(explain, "promised", lambda *_: ())
    monkeypatch.setattr(further, "RESERVE", 0.0)
    study = load_study(DATA / "intop.toml")
    with campaigns(study, "killed-judge", tmp_path) as (now, then):
        tune(replace(now, archs=("x86",)), lambda _: None)
        mine, theirs = next(now.subjects()), next(then.subjects())
        later = ("contest", "transfer")
        kinds = set(result_types()) - {"compromise", "contest", "crosswise"}
        check_same(mine, theirs, [name for name in stage_places() if name not in later], kinds)


def check_same(mine: Task, theirs: Task, stages: Iterable[str], kinds: Collection[str]) -> None:
    for stage in stages:
        planned, plan = (one.store.plan(one.subject, stage) for one in (mine, theirs))
        assert plan == planned, f"{mine.title} {stage}"
        # Replicas answer in another order now.
        assert by_index(theirs.trials(stage)) == by_index(mine.trials(stage))
    expected, results = decisions(theirs), decisions(mine)
    assert [name for name in expected if name in kinds] == list(results)
    for name, result in results.items():
        assert about(expected[name]) == result, f"{mine.title} {name}"
