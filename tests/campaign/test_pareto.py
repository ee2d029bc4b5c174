"""search --objectives, on a campaign that has collected."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.campaigns import LAB
from builders.testbeds import probe_of
from builders.trials import METRICS, training, trial
from intop import __version__
from intop.campaign.search.tradeoff import Front
from intop.cli import cli
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.training import FittedFamily, Objective
from intop.domain.trial import Trial
from intop.errors import UsageError
from intop.learn.families import FAMILIES
from intop.store import Subject, opened

STUDY = (
    LAB
    + """\
[budget]
population = 20
generations = 4
patience = 2
folds = 2
"""
)
WAIT, QUEUE = "net.ipv4.tcp_fin_timeout", "net.core.somaxconn"


def measured(place: int, wait: int) -> Trial:
    """The longer the wait, the lower is P99, and the higher are CPU and throughput."""
    configuration = Configuration({WAIT: str(wait), QUEUE: str(64 << place % 6)})
    one = trial(configuration if place else DEFAULT, 2000 - 15 * wait, index=place)
    cpu = {"lg": METRICS, "lb": replace(METRICS, cpu=0.1 + 0.005 * wait), "b": METRICS}
    return replace(one, metrics=cpu, achieved_rps=90.0 + wait / 10)


TRIALS = [measured(place, wait) for place, wait in enumerate([60, *range(10, 110, 8)])]


class Campaign:
    """A study's folder with a campaign that is trained, and intop at work in it."""

    def __init__(
        self, folder: Path, capsys: Any, trials: list[Trial], objective: Objective = "p99"
    ) -> None:
        self.folder, self._capsys = folder, capsys
        study = STUDY.replace("[study]\n", f'[study]\nobjective = "{objective}"\n')
        (folder / "study.toml").write_text(study.format(folder=folder))
        hyperparameters = {**FAMILIES["RFR"].defaults, "trees": 10}
        fitted = FittedFamily(family="RFR", hyperparameters=hyperparameters, inner_score=0.0)
        trained = training(keys=(WAIT, QUEUE), fitted=(fitted,), objective=objective)
        with opened(str(folder / "mine.db")) as store:
            campaign = store.begin("mine", seed=1, tool_version=__version__)
            subject = Subject(campaign=campaign, arch="x86", workload="slt")
            store.put(subject, probe_of({WAIT: "60", QUEUE: "4096"}))
            store.write_plan(subject, "collect", [one.planned for one in trials])
            for one in trials:
                store.add(subject, one)
            store.put(subject, trained)

    def search(self, *words: object) -> str:
        asked = ["search", *map(str, words), "--config", str(self.folder / "study.toml")]
        cli(asked, standalone_mode=False)
        return str(self._capsys.readouterr().out)

    def stored(self) -> Front:
        with opened(str(self.folder / "mine.db")) as store:
            campaign = store.latest("mine")
            assert campaign is not None
            result = store.get(Subject(campaign=campaign, arch="x86", workload="slt"), Front)
        assert result is not None
        return result


def test_a_front_is_found_stored_and_drawn(tmp_path: Path, capsys: Any) -> None:
    # The first configuration has a replicate, which is no row of its own.
    again = replace(TRIALS[1], planned=replace(TRIALS[1].planned, index=len(TRIALS)))
    campaign = Campaign(tmp_path, capsys, [*TRIALS, again])
    figures = tmp_path / "figures"
    out = campaign.search("--objectives", "p99,cpu", "--json", "--figures", figures)
    message = json.loads(out)["x86 slt"]
    assert [one["name"] for one in message["front"]["objectives"]] == ["p99", "cpu"]
    assert (
        len(TRIALS)
        == len(message["measured"])
        == message["front"]["objectives"][0]["configurations"]
    )
    assert {one.name for one in campaign.stored().objectives} == {"p99", "cpu"}
    points = [tuple(point["predicted"]) for point in message["front"]["points"]]
    assert [point.predicted for point in campaign.stored().points] == points
    # What is good for one is bad for the other, so it has both ends, in order.
    p99, cpu = zip(*points, strict=True)
    assert list(p99) == sorted(p99)
    assert list(cpu) == sorted(cpu, reverse=True)
    assert p99[0] < 0.8 < 1.2 < p99[-1]
    assert pytest.approx(message["measured"][0]["measured"][0], abs=0.01) == 1.1
    assert [path.name for path in figures.iterdir()] == ["x86-slt-front-p99-cpu.svg"]


def test_p99_is_that_of_the_trials_whatever_the_models_learn(tmp_path: Path, capsys: Any) -> None:
    campaign = Campaign(tmp_path, capsys, TRIALS, "component")
    message = json.loads(campaign.search("--objectives", "p99,cpu", "--json"))["x86 slt"]
    assert pytest.approx(message["measured"][0]["measured"][0], abs=0.01) == 1.1


def test_throughput_is_to_be_high(tmp_path: Path, capsys: Any) -> None:
    """The longer wait is best for both, so there is nothing to choose."""
    out = Campaign(tmp_path, capsys, TRIALS).search("--objectives", "throughput,p99")
    assert "One configuration is predicted best in every objective" in out
    assert "predicted front of requests/s and P99" in out


def test_what_never_varies_is_refused(tmp_path: Path, capsys: Any) -> None:
    trials = [replace(one, achieved_rps=100.0) for one in TRIALS]
    with pytest.raises(UsageError, match=r"throughput is 100 in all .* --objectives p99,cpu"):
        Campaign(tmp_path, capsys, trials).search("--objectives", "p99,throughput")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--objectives", "p99,latency"], "'latency' is none; there are p99, cpu, throughput"),
        (["--objectives", "p99"], "name two or three different ones"),
        (["--objectives", "p99,p99"], "name two or three different ones"),
        (["--objectives", ""], "'' is none"),
        (["--objectives", "p99,cpu", "--models", "m"], "--models has models of latency only"),
    ],
)
def test_bad_objectives_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cli(["search", *words], standalone_mode=False)
