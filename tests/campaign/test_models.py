"""Models that are saved by one command and searched by another."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from builders.campaigns import LAB
from builders.testbeds import probe_of
from builders.trials import CONDITIONS, model_error, trial
from intop import __version__, artefacts
from intop.cli import cli
from intop.domain.artefact import Origin
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.search import Search
from intop.domain.training import FittedFamily
from intop.domain.trial import Trial
from intop.errors import ArtefactError, IncomparableError, IntopError, UsageError
from intop.learn import tuning
from intop.learn.families import FAMILIES
from intop.store import Store, Subject, opened
from kit.golden import Golden

STUDY = (
    LAB
    + """\
[budget]
population = 20
generations = 3
patience = 2
"""
)
WAIT, QUEUE = "net.ipv4.tcp_fin_timeout", "net.core.somaxconn"
TREES = ("RFR", "LightGBM")


def measured(conditions: Any = CONDITIONS) -> list[Trial]:
    """The default and eleven configurations of two parameters."""
    configurations = [
        Configuration({WAIT: str(10 + 4 * n), QUEUE: str(64 << n % 6)}) for n in range(11)
    ]
    return [
        trial(one, 500 + 90 * n % 700, index=n, conditions=conditions)
        for n, one in enumerate([DEFAULT, *configurations])
    ]


class Campaign:
    """A study's folder with a campaign that has collected, and intop at work in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        (folder / "study.toml").write_text(STUDY.format(folder=folder))
        self.models = folder / "models"
        self.path = self.models / "x86-slt.zip"
        with self.store() as store:
            subject = self.subject(store.begin("mine", seed=1, tool_version=__version__))
            store.put(subject, probe_of({WAIT: "60", QUEUE: "4096"}))
            self.add(store, subject, measured())

    def store(self) -> Any:
        return opened(str(self.folder / "mine.db"))

    def subject(self, campaign: Any) -> Subject:
        return Subject(campaign=campaign, arch="x86", workload="slt")

    def add(self, store: Store, subject: Subject, trials: list[Trial]) -> None:
        store.write_plan(subject, "collect", [one.planned for one in trials])
        for one in trials:
            store.add(subject, one)

    def run(self, *words: object) -> tuple[str, str]:
        """What a command says on stdout and stderr."""
        cli([*map(str, words), "--config", str(self.folder / "study.toml")], standalone_mode=False)
        return self._capsys.readouterr()

    def search(self) -> str:
        """What a search of the saved models says on stderr."""
        return self.run("search", "--models", self.models)[1]

    def result(self) -> Any:
        """What the last search has stored, but for the time it took."""
        with self.store() as store:
            result = store.get(self.subject(store.latest("mine")), Search)
        runs = [replace(run, seconds=0.0) for run in result.convergences]
        return result.candidates, runs

    def changed(self, **changes: Any) -> None:
        """Save the same models once more, as if they had come from elsewhere."""
        artefact = artefacts.read(self.path)
        origin = replace(artefact.manifest.origin, **changes)
        (message,) = [m for m in artefact.manifest.models if m.family == "RFR"]
        fitted = FittedFamily(
            family="RFR", hyperparameters=message.hyperparameters, inner_score=0.0
        )
        artefacts.save(self.path, origin, [(fitted, message.error, artefact.model("RFR"))])

    @property
    def origin(self) -> Origin:
        return artefacts.read(self.path).manifest.origin


@pytest.fixture(name="campaign")
def _campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Campaign:
    """One whose models need no tuning, and are small."""

    def train_all(*_: object, **__: object) -> Any:
        for name in ("SVR", *TREES):
            hyperparameters: dict[str, Any] = dict(FAMILIES[name].defaults)
            if "trees" in hyperparameters:
                hyperparameters["trees"] = 5
            error = model_error(name)
            yield (
                FittedFamily(family=name, hyperparameters=hyperparameters, inner_score=0.0),
                error,
            )

    monkeypatch.setattr(tuning, "train_all", lambda *a, **k: list(train_all(*a, **k)))
    made = Campaign(tmp_path, capsys)
    _, err = made.run("train", "--models", made.models)
    assert f"x86 slt: SVR, RFR, LightGBM are saved in {made.path}" in err
    return made


def test_saved_models_find_what_models_fitted_anew_find(campaign: Campaign) -> None:
    campaign.run("search")
    anew = campaign.result()
    output = campaign.search()
    assert anew == campaign.result()
    assert [run.model for run in anew[1]] == ["RFR", "LightGBM", "ensemble"]
    assert str(campaign.path) not in output


def test_an_artefact_says_what_it_is(campaign: Campaign) -> None:
    origin = campaign.origin
    assert (
        origin.study, origin.arch, origin.workload, origin.target, origin.unit
    ) == ("mine", "x86", "slt", "P99", "ms")  # fmt: skip
    assert sorted((v.name for v in origin.variables), reverse=True) == [WAIT, QUEUE]
    assert {WAIT: "60", QUEUE: "4096"}.items() <= origin.defaults.items()
    assert (origin.conditions, origin.configurations, origin.trials) == (CONDITIONS, 12, 12)


def test_the_models_of_a_folder_are_listed(campaign: Campaign, capsys: Any) -> None:
    (campaign.models / "arm-slt.zip").write_bytes(campaign.path.read_bytes()[:-1])
    with pytest.raises(SystemExit, match="1"):
        cli(["models", str(campaign.models)], standalone_mode=False)
    out, err = (" ".join(output.split()) for output in capsys.readouterr())
    assert "x86-slt.zip: models of x86 slt" in out
    assert "predict log P99 in ms from 2 variables" in out
    assert "fitted to 12 trials of 12 configurations" in out
    assert "lightgbm 4." in out
    assert "arm-slt.zip: this is no artefact of intop, or its end is missing" in err
    (campaign.models / "arm-slt.zip").unlink()
    cli(["models", str(campaign.models), "--json"], standalone_mode=False)
    result = json.loads(capsys.readouterr().out)["x86-slt.zip"]
    assert (result["format"], result["origin"]["target"]) == (1, "P99")


def test_a_search_needs_no_training_of_its_own(campaign: Campaign) -> None:
    with campaign.store() as store:
        other = campaign.subject(store.begin("mine", seed=2, tool_version=__version__))
        store.put(other, probe_of({WAIT: "30", QUEUE: "4096"}))
        slower = replace(CONDITIONS, cpu="Xeon")
        campaign.add(store, other, [replace(t, conditions=slower) for t in measured()][:9])
    output = " ".join(campaign.search().split())
    assert "they are of other trials: 12 of 12 configurations on" in output
    assert (
        "they were measured elsewhere (theirs against this one's): cpu: EPYC against Xeon" in output
    )
    assert (
        f"the hosts' defaults differ (theirs against this one's): {WAIT}: 60 against 30" in output
    )


def test_trials_that_came_later_are_told(campaign: Campaign) -> None:
    with campaign.store() as store:
        later = [trial(Configuration({WAIT: "33"}), 700, index=12)]
        campaign.add(store, campaign.subject(store.latest("mine")), later)
    assert "fitted to 12 trials, and the campaign has 13 by now" in campaign.search()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: {"arch": "arm"}, "architecture: arm against x86"),
        (
            lambda o: {"variables": tuple(replace(v, high=9e9) for v in o.variables)},
            "to 9000000000 (",
        ),
    ],
)
def test_models_of_something_else_are_refused(
    campaign: Campaign, change: Callable[[Origin], dict[str, Any]], message: str, golden: Golden
) -> None:
    campaign.changed(**change(campaign.origin))
    with pytest.raises(IncomparableError) as refused:
        campaign.search()
    golden(str(refused.value))
    assert str(refused.value).startswith(f"{campaign.path}: these models are of something else")


def test_a_search_needs_a_tree(campaign: Campaign) -> None:
    artefact = artefacts.read(campaign.path)
    artefacts.save(campaign.path, artefact.manifest.origin, [])
    with pytest.raises(ArtefactError, match="no tree family among no models"):
        campaign.search()


def test_what_is_missing_or_damaged_is_named(campaign: Campaign, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"x86-slt\.zip' is a file"):
        campaign.run("train", "--models", campaign.path)
    with pytest.raises(UsageError, match=r"nowhere/x86-slt\.zip: no such file"):
        campaign.run("search", "--models", tmp_path / "nowhere")
    campaign.path.write_bytes(campaign.path.read_bytes().replace(b'"x86"', b'"arm"'))
    with pytest.raises(IntopError, match="the file is damaged: its SHA-256 is"):
        campaign.search()
