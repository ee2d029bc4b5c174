"""The benchmark of tuners: rounds, what its tuners are told, and its claim."""

import importlib.util
import json
import math

import numpy as np
import pytest

from benchmarks import beds, contenders, tuners
from benchmarks.contenders import Arm, Shot
from benchmarks.tuners import Race, Schedule
from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT, Configuration

SPACE = beds.tables_space(beds.read(beds.TABLE))


def p99_ms(configuration: Configuration) -> float:
    """Lower with more of one of them."""
    (row,) = SPACE.encode(SPACE.values([configuration]))
    return float(50 * math.exp(-row[3]))


def shot(configuration: Configuration) -> Shot:
    """Its tail is half of its P99."""
    return Shot(configuration, p99_ms(configuration), p99_ms(configuration) / 2)


class Bed:
    """Measures without noise."""

    space = SPACE

    def race(self, following):
        so_far = {}
        self.rounds = []
        while places := following(SPACE, so_far):
            self.rounds.append([arm for arm, _ in places])
            for arm, configuration in places:
                shots = so_far.setdefault(arm, [])
                shots.append(shot(configuration))
        return so_far

    def pick(self, finalists, rounds):
        assert len({c.digest for c in finalists}) == len(finalists)
        return {c.digest: [p99_ms(c)] * rounds for c in finalists}

    def verify(self, winners, rounds):
        arms = {HOST: 100.0} | {c.digest: p99_ms(c) for c in winners}
        return {arm: {(1, n): v for n in range(rounds)} for arm, v in arms.items()}


def test_all_tuners_get_their_trials_in_rounds_and_their_winners_are_judged(monkeypatch) -> None:
    monkeypatch.setattr(tuners, "EVERYBODYS", (8,))
    begun = {"offline": ("ours", None), "p99": ("ours", None), "tpe": ("random", 4)}
    monkeypatch.setattr(tuners, "BEGUN", begun)
    monkeypatch.setattr(contenders, "TREES", ("LightGBM",))
    monkeypatch.setattr(contenders, "TRIES", 1)
    # Optuna's GP needs torch, which CI has not.
    methods = [name for name in contenders.TUNERS if name != "gp"]
    arms = tuple(Arm(method, 1) for method in methods)
    bed, race = Bed(), Race(arms, 8, jobs=1, schedule=Schedule(4, (4, 8)))
    outcome = tuners.run(bed, race, 2)
    measured, winners = outcome.measured, outcome.winners

    beginners = [a.name for a in (Arm("ours", 1), Arm("random", 1)) for _ in range(4)]
    everybody = sorted(a.name for a in arms for _ in range(4))
    assert [beginners, everybody] == [sorted(a.name for a in placed) for placed in bed.rounds]
    began = race.shots(Arm("offline", 1), measured)
    assert 8 == len(began)
    assert measured[Arm("ours", 1)][:4] == began[:4]
    # What differs is where they look, never whether that is feasible.
    for shots in measured.values():
        values = SPACE.values([s.configuration for s in shots])
        assert np.array_equal(values, SPACE.decode(SPACE.genes(values)))

    assert (
        min(race.shots(Arm("tpe", 1), measured), key=lambda s: s.p99_ms).configuration
        == winners[Arm("tpe", 1), 8]
    )
    for place, those in outcome.finalists.items():
        assert 2 <= len(those) <= 3
        assert min(map(p99_ms, those)) == p99_ms(winners[place])
    # The best that was measured is among them, whatever a search promises.
    for method, n in (("ours", 4), ("offline", 8)):
        best = min(race.shots(Arm(method, 1), measured)[:n], key=lambda s: s.p99_ms)
        assert best.configuration in outcome.finalists[Arm(method, 1), n]
    gains = tuners.gains_of(winners, outcome.verified)
    expected_gain = math.log(100 / p99_ms(winners[Arm("offline", 1), 4]))
    assert pytest.approx(expected_gain) == gains["offline", 4][1]
    assert {("ours", 4), ("ours", 8), ("offline", 4), ("random", 8)} <= set(gains)
    assert set(methods) == {w["method"] for w in tuners.as_json(race, outcome)["winners"]}


def test_a_tuner_goes_on_as_it_would_have() -> None:
    shots = [shot(c) for c in contenders.at_random(SPACE, (), 12, 3, 4)]
    for ask in (contenders.at_random, contenders.tpe, contenders.offline):
        assert ask(SPACE, shots, 2, 1, 4) == ask(SPACE, shots, 2, 1, 4)
        assert ask(SPACE, shots, 2, 1, 4) != ask(SPACE, shots[:8], 2, 1, 4)


def test_the_claim_is_of_half_of_the_trials() -> None:
    def gains(ours: tuple[float, ...], offline: tuple[float, ...]) -> tuners.Gains:
        both = {"ours": ours, "offline": offline}
        found = {
            (method, n): {1: gain, 2: gain}
            for method, values in both.items()
            for n, gain in zip(Schedule.checkpoints, values, strict=True)
        }
        return found | {("gp", 100): {1: 1.0, 2: 1.0}}

    for ours, offline, holds in (
        ((0.5, 0.96, 1, 1), (0.5, 0.6, 0.7, 0.96), True),
        ((0.5, 0.6, 0.96, 1), (0.5, 0.6, 0.7, 0.8), True),
        ((0.5, 0.6, 0.8, 1), (0.5, 0.6, 0.7, 0.8), False),
        ((0.5, 0.96, 1, 1), (0.5, 0.7, 0.96, 0.96), False),
        ((0.5, 0.6, 0.7, 0.8), (0.5, 0.6, 0.7, 0.8), False),
    ):
        told = tuners.claim(gains(ours, offline), "here")
        assert holds == told.endswith("the claim holds.")


def test_races_with_other_seeds_are_put_together(tmp_path, capsys) -> None:
    paths = [tmp_path / name for name in ("one.json", "other.json")]
    for seed, (path, ours, offline) in enumerate(zip(paths, (4, 9), (2, 2), strict=True)):
        gains = {"ours": ours, "offline": offline, "random": None}
        winners = [
            {"method": m, "seed": seed, "after": 40, "gain": gain and [gain, gain, gain]}
            for m, gain in gains.items()
        ]
        path.write_text(json.dumps({"winners": winners}))
    tuners.main(["--pool", *map(str, paths)])
    told = capsys.readouterr().out
    assert "| ours | 6.00 (4.00 to 9.00) |" in told
    assert "| offline | 2.00 (2.00 to 2.00) |" in told
    assert "random" not in told
    assert "The best gain in these races is that of ours after 40 trials, 6.00" in told


def test_the_emulator_draws_the_tables_trials() -> None:
    emulator = beds.Emulator(beds.TABLE)
    measured = {float(row["p99_ms"]) for row in beds.read(beds.TABLE)}
    rng = np.random.default_rng(1)
    for configuration in (DEFAULT, *contenders.at_random(emulator.space, (), 3, 1, 4)):
        drawn = [math.log(emulator.trial(configuration, rng).p99_ms) for _ in range(60)]
        assert all(min(abs(math.exp(v) - m) for m in measured) < 1e-9 for v in drawn)
        error = np.std(drawn) / math.sqrt(len(drawn))
        assert abs(np.mean(drawn) - emulator.truth([configuration])[0]) < 4 * error


def test_what_is_missing_is_said(monkeypatch, capsys) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        tuners.parsed(["--dry"])
    assert "pip install torch" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        tuners.parsed(["--dry", "--tuners", "ours", "--buffer", "20"])
    assert "only for --buffer 40, --buffer 30 or none" in capsys.readouterr().err
    assert 40 == tuners.parsed(["--tuners", "ours", "--trials", "40"]).trials
