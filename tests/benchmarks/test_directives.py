"""Beds of directives: they are of what there is, and what counts is what was said."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import directives
from benchmarks.directives import BEDS, FOLDER, Directives, Known, counted
from benchmarks.harness import ask
from builders.nginx_files import catalogue
from builders.results import VERDICT
from intop.config.catalogue import load_catalogue
from intop.config.study import load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import Configuration
from intop.domain.halves import Halves
from intop.domain.nginx.edits import accepts
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.stats import Interval
from intop.resources import shipped

PAIR, KEEPALIVE = BEDS[0], BEDS[1]
UP, NOTHING = Interval(2.0, 1.8, 2.2), Interval(1.0, 0.9, 1.1)
HALVES = Halves(kernel=NOTHING, nginx=UP, both=UP, together=NOTHING, rounds=5, level=0.95)
GAIN = replace(
    VERDICT,
    configuration=Configuration({**KEEPALIVE.remedies[0], "net.core.somaxconn": "9"}),
    halves=HALVES,
)


@pytest.mark.parametrize("known", BEDS, ids=lambda known: known.bed)
def test_beds_are_of_what_there_is(known: Known) -> None:
    study = load_study(FOLDER / f"{known.bed}.toml")
    (spec,) = study.clusters[native_arch()]
    assert isinstance(spec, LabSpec)
    assert known.bed == study.name == spec.name
    assert study.tunes == ("kernel", "nginx")
    offered, kernel = catalogue().by_key, load_catalogue(shipped("configs") / "parameters.toml")
    keys = {*offered, *(p.key for p in kernel.parameters)}
    for remedy in known.remedies:
        assert keys > remedy.keys()
        sysctls, set_in_nginx = split_by_kind(remedy)
        assert all(accepts(offered[key], value) for key, value in set_in_nginx.items())
        assert bool(sysctls and set_in_nginx) == (known.bed == "queues")


def test_every_bed_is_measured() -> None:
    assert {f"{known.bed}.toml" for known in BEDS} == {p.name for p in FOLDER.glob("*.toml")}


def test_what_counts_is_what_was_said() -> None:
    result = counted(KEEPALIVE, GAIN, None)
    assert (result.found, result.right_half, result.changes, result.is_right) == (
        True,
        True,
        2,
        True,
    )
    # The other half, or none of it.
    other = replace(GAIN, halves=replace(HALVES, kernel=UP, nginx=NOTHING))
    assert not counted(KEEPALIVE, other, None).right_half
    assert not counted(KEEPALIVE, replace(GAIN, halves=None), None).right_half
    alone = replace(GAIN, configuration=Configuration({**KEEPALIVE.remedies[0]}), halves=None)
    assert counted(KEEPALIVE, alone, None).is_right
    # Another directive, no gain, too many.
    assert not counted(BEDS[2], GAIN, None).found
    none = replace(GAIN, ratio=1.0, ratio_low=0.9, ratio_high=1.1)
    assert not counted(KEEPALIVE, none, None).is_right
    many = {f"net.core.k{n}": "1" for n in range(5)}
    crowded = replace(GAIN, configuration=Configuration({**KEEPALIVE.remedies[0], **many}))
    assert (
        counted(KEEPALIVE, crowded, None).found,
        counted(KEEPALIVE, crowded, None).is_few,
    ) == (True, False)


def test_a_sysctl_that_is_known_belongs_to_the_kernels_half() -> None:
    bed = next(known for known in BEDS if known.bed == "buffers")
    kernel = replace(HALVES, kernel=UP, nginx=NOTHING)
    sysctl = {"net.ipv4.tcp_rmem": "4096 8192 8192"}
    both = Configuration({**sysctl, "nginx:http.sendfile": "on"})
    assert counted(bed, replace(GAIN, configuration=both, halves=kernel), None).is_right
    assert not counted(bed, replace(GAIN, configuration=both), None).right_half
    alone = replace(GAIN, configuration=Configuration(sysctl), halves=None)
    assert counted(bed, alone, None).is_right
    directive = replace(GAIN, configuration=Configuration({**bed.remedies[0]}), halves=kernel)
    assert not counted(bed, directive, None).right_half


def test_of_the_pair_both_together_have_to_be_more() -> None:
    both = replace(GAIN, configuration=Configuration({**PAIR.remedies[0]}))
    assert not counted(PAIR, both, None).right_half
    more = replace(both, halves=replace(HALVES, together=UP))
    assert counted(PAIR, more, None).is_right
    assert not counted(PAIR, GAIN, None).found


def test_all_beds_have_as_many_seeds_and_nine_of_ten_are_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, int]] = []

    def run(known: Known, seed: int, folder: Path) -> directives.Run:
        asked.append((known.bed, seed))
        return counted(known, GAIN, None)

    monkeypatch.setattr(directives, "run", run)
    options = ["upstreams", "log", "--seeds=2", f"--results={tmp_path / 'results.json'}"]
    options.append(f"--store={tmp_path}")
    assert ask("directives", Directives, options) == "not as it should be: log: 0 of 2 runs"
    assert asked == [("upstreams", 1), ("log", 1), ("upstreams", 2), ("log", 2)]
    printed = capsys.readouterr().out
    assert "| upstreams | 1 | 3.10 (2.20 to 4.40) | 1.00, 2.00 | 2 | yes | yes | yes |" in printed
    assert "log: 0 of 2 runs are all three." in printed
    assert ask("directives", Directives, options) == "not as it should be: log: 0 of 2 runs"
    assert printed == capsys.readouterr().out
    assert len(asked) == 4


def test_after_its_minutes_no_run_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(directives, "run", None)
    options = ["--minutes=0", f"--results={tmp_path / 'results.json'}", f"--store={tmp_path}"]
    assert ask("directives", Directives, options) is None
    assert "upstreams: 0 of 0 runs are all three." in capsys.readouterr().out
