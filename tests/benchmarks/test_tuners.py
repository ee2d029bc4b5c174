"""The benchmark of tuners: rounds, what its tuners are told, and its claim."""

import importlib.util
import json
import math

import numpy as np
import pytest

from benchmarks import beds, contenders, tuners
from benchmarks.contenders import Arm, Entry
from benchmarks.harness import ask
from benchmarks.recorded import Shot
from benchmarks.tuners import Race, Schedule
from intop.campaign.train.stage import Train
from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.training import TREE_MODELS
from intop.domain.workload import Budget

OFFER = beds.tables_offer(beds.read(beds.TABLE)).with_budget(
    tuning_trials=1, population=20, generations=5
)
SPACE = OFFER.space


def p99_ms(configuration: Configuration) -> float:
    """Lower with more of one of them."""
    (row,) = SPACE.encode(SPACE.values([configuration]))
    return float(50 * math.exp(-row[3]))


def shot(configuration: Configuration) -> Shot:
    """Its tail is half of its P99."""
    return Shot(configuration, p99_ms(configuration), p99_ms(configuration) / 2)


class Bed:
    """Measures without noise."""

    offer = OFFER

    def race(self, following):
        so_far = {}
        self.rounds = []
        while places := following(OFFER, so_far):
            self.rounds.append([arm for arm, _ in places])
            for arm, configuration in places:
                shots = so_far.setdefault(arm, [])
                shots.append(shot(configuration))
        return so_far

    def pick(self, finalists, rounds):
        assert len({c.digest for c in finalists}) == len(finalists)
        return {c.digest: [shot(c)] * rounds for c in finalists}

    def verify(self, winners, rounds):
        arms = {HOST: 100.0} | {c.digest: p99_ms(c) for c in winners}
        return {arm: {(1, n): v for n in range(rounds)} for arm, v in arms.items()}


@pytest.mark.long
def test_all_tuners_get_their_trials_in_rounds_and_their_winners_are_judged(
    monkeypatch, tmp_path
) -> None:
    # Those that are searched, without which the others take most of the time.
    monkeypatch.setattr(Train, "families", TREE_MODELS)
    monkeypatch.setattr(tuners, "EVERYBODYS", (16,))
    after_four = dict.fromkeys(("tpe", "flash"), ("random", 4))
    monkeypatch.setattr(contenders, "BEGUN", {"p99": ("ours", None), **after_four})
    monkeypatch.setattr(tuners, "BEGUN", contenders.BEGUN)
    # CI has none of the packages that only benchmarks need.
    methods = [name for name in contenders.TUNERS if name not in tuners.NEEDS]
    schedule = Schedule(12, (12, 16))
    arms = tuners.arms_of(methods, [1], 16, schedule)
    assert {Arm("offline", 1, 12), Arm("offline", 1, 16)} < set(arms)
    bed, race = Bed(), Race(arms, 16, tmp_path, jobs=1, schedule=schedule)
    outcome = tuners.run(bed, race, 2)
    measured, winners = outcome.measured, outcome.winners

    for arm in arms:
        shots = race.shots(arm, measured)
        assert (arm.trials or 16) == contenders.counted(shots)
        # The trials of the default are the product's.
        is_rival = isinstance(contenders.TUNERS[arm.method], contenders.Rival)
        assert is_rival == (contenders.counted(shots) == len(shots))
    # Four a round for each; what begins alike begins once.
    beginners = {Arm("ours", 1), Arm("random", 1), *(a for a in arms if a.method == "offline")}
    assert beginners == set(bed.rounds[0])
    assert all(rounds.count(Arm("random", 1)) in (0, 4) for rounds in bed.rounds)
    ours, p99 = (contenders.upto(race.shots(Arm(m, 1), measured), 12) for m in ("ours", "p99"))
    assert ours == p99
    # What differs is where they look, never whether that is feasible.
    for shots in measured.values():
        values = SPACE.values([s.configuration for s in shots if not s.configuration.is_default])
        assert np.array_equal(values, SPACE.decode(SPACE.genes(values)))

    assert (
        min(race.shots(Arm("tpe", 1), measured), key=lambda s: s.p99_ms).configuration
        == winners[Arm("tpe", 1), 16]
    )
    for place, those in outcome.finalists.items():
        assert 2 <= len(those) < Budget().pick_arms  # of which one is the default
        assert min(map(p99_ms, those)) == p99_ms(winners[place])
    # The best that was measured is among them, whatever a search promises.
    best = min(ours, key=lambda s: p99_ms(s.configuration))
    assert best.configuration in outcome.finalists[Arm("ours", 1), 12]
    gains = tuners.gains_of(winners, outcome.verified)
    expected_gain = math.log(100 / p99_ms(winners[Arm("offline", 1, 12), 12]))
    assert gains["offline", 12][1] == pytest.approx(expected_gain)
    assert {("ours", 12), ("ours", 16), ("offline", 12), ("random", 16)} <= set(gains)
    assert set(methods) == {w["method"] for w in tuners.as_json(race, outcome)["winners"]}


def test_a_rival_goes_on_as_it_would_have() -> None:
    shots = [shot(c) for c in contenders.at_random(SPACE, (), 12, 3)]
    for choose in (contenders.at_random, contenders.tpe, contenders.flash):
        assert choose(SPACE, shots, 2, 1) == choose(SPACE, shots, 2, 1)
        assert choose(SPACE, shots, 2, 1) != choose(SPACE, shots[:8], 2, 1)


def test_a_campaign_whose_store_was_lost_asks_for_the_same(tmp_path) -> None:
    ours = contenders.TUNERS["ours"]
    arm, shots = Arm("ours", 1), []
    kept, lost = (Entry(arm, OFFER, 20, 8, tmp_path / name) for name in ("kept", "lost"))
    kept.folder.mkdir()
    lost.folder.mkdir()
    while contenders.counted(shots) < 12:
        # In another order than they were asked for, as in a round.
        shots += [shot(c) for c in reversed(ours.ask(kept, shots, 4))]
    asked = ours.ask(kept, shots, 4)
    assert len(asked) >= 4
    assert asked == ours.ask(lost, shots, 4)


def test_what_is_measured_for_an_arm_is_found_by_its_name() -> None:
    for arm in (Arm("ours", 3), Arm("offline", 3, 40)):
        assert arm == Arm.named(arm.name)


def test_the_claim_is_of_half_of_the_trials() -> None:
    def gains(ours: tuple[float, ...], offline: tuple[float, ...]) -> tuners.Gains:
        both = {"ours": ours, "offline": offline}
        result = {
            (method, n): {1: gain, 2: gain}
            for method, values in both.items()
            for n, gain in zip(Schedule.checkpoints, values, strict=True)
        }
        return result | {("gp", 100): {1: 1.0, 2: 1.0}}

    for ours, offline, holds in (
        ((0.5, 0.96, 1, 1), (0.5, 0.6, 0.7, 0.96), True),
        ((0.5, 0.6, 0.96, 1), (0.5, 0.6, 0.7, 0.8), True),
        ((0.5, 0.6, 0.8, 1), (0.5, 0.6, 0.7, 0.8), False),
        ((0.5, 0.96, 1, 1), (0.5, 0.7, 0.96, 0.96), False),
        ((0.5, 0.6, 0.7, 0.8), (0.5, 0.6, 0.7, 0.8), False),
    ):
        message = tuners.claim(gains(ours, offline), "here")
        assert holds == message.endswith("the claim holds.")


def test_races_with_other_seeds_are_put_together(tmp_path, capsys) -> None:
    paths = [tmp_path / name for name in ("one.json", "other.json")]
    for seed, (path, ours, offline) in enumerate(zip(paths, (4, 9), (2, 2), strict=True)):
        gains = {"ours": ours, "offline": offline, "random": None}
        winners = [
            {"method": m, "seed": seed, "after": 40, "gain": gain and [gain, gain, gain]}
            for m, gain in gains.items()
        ]
        path.write_text(json.dumps({"winners": winners}))
    assert ask("tuners-pool", tuners.Pool, list(map(str, paths))) is None
    message = capsys.readouterr().out
    assert "| ours | 6.00 (4.00 to 9.00) |" in message
    assert "| offline | 2.00 (2.00 to 2.00) |" in message
    assert "random" not in message
    assert "The best gain in these races is that of ours after 40 trials, 6.00" in message


def test_the_emulator_draws_the_tables_trials() -> None:
    emulator = beds.Emulator(beds.TABLE)
    measured = {float(row["p99_ms"]) for row in beds.read(beds.TABLE)}
    rng = np.random.default_rng(1)
    for configuration in (DEFAULT, *contenders.at_random(emulator.offer.space, (), 3, 1)):
        drawn = [math.log(emulator.trial(configuration, rng).p99_ms) for _ in range(60)]
        assert all(min(abs(math.exp(v) - m) for m in measured) < 1e-9 for v in drawn)
        error = np.std(drawn) / math.sqrt(len(drawn))
        assert abs(np.mean(drawn) - emulator.truth([configuration])[0]) < 4 * error


def test_what_is_missing_is_said(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    problem = ask("tuners", tuners.Tuners, ["--dry"])
    assert "gp, ezr, smac: pip install torch ezr smac, or leave these tuners out" in problem
    options = ["--dry", "--tuners", "ours", "--buffer", "20"]
    output = ask("tuners", tuners.Tuners, options)
    assert "only for --buffer 40, --buffer 30 or none" in output
    options = ["--tuners", "ours", "--trials", "39"]
    assert ask("tuners", tuners.Tuners, options) == "--trials must be from 40 to 100"
