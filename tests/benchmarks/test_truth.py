"""The rules of benchmarks/truth.py on made-up data: what they find, and what they make up."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from benchmarks import acting, published, screening_truth, truth, truth_table
from builders.testbeds import FakeTestbed, probe_of
from intop.config.study import load_study
from intop.domain.cluster import LabSpec
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.constraints import Order
from intop.domain.multi_arm import Contest, Contestant
from intop.domain.parameter import Component, Parameter
from intop.domain.probing import Probed
from intop.domain.space import Space, parameter_columns
from intop.domain.stats import Interval
from intop.domain.trial import PlannedTrial
from intop.resources import shipped
from intop.run.available_space import probed_of
from intop.run.context import Task
from intop.run.prospect import designed
from intop.store import Store, opened

if TYPE_CHECKING:
    from intop.run.testbed import Testbed

SD = 0.07
"""Of log P99 over a link with delay and loss."""


def measured(
    effects: Mapping[str, float], rounds: int, bases: int, rng: random.Random, sd: float = SD
) -> dict[str, dict[int, list[float]]]:
    """P99 of a part, where rounds drift and arms lower log P99 by their effects."""
    drifts = {n: rng.gauss(0, 0.2) for n in range(1, rounds + 1)}

    def p99(effect: float) -> dict[int, list[float]]:
        return {n: [100 * exp(drift - effect + rng.gauss(0, sd))] for n, drift in drifts.items()}

    result = {f"base {n}": p99(0.0) for n in range(1, bases + 1)}
    return result | {arm: p99(effect) for arm, effect in effects.items()}


def boolean(key: str) -> Parameter:
    return Parameter(
        key=key,
        kind="boolean",
        unit="",
        scope="namespace",
        risk="low",
        mechanism="none",
        document="none",
        choices=("0", "1"),
    )


def space_of(keys: list[str]) -> Space:
    return Space(tuple(map(boolean, keys)), (), dict.fromkeys(keys, "0"))


UNLIKELY = [f"net.ipv6.made.up_{n}" for n in range(40)]
LIKELY = [f"net.ipv4.tcp_made_{n}" for n in range(60)]
SPACE = space_of([*LIKELY, *UNLIKELY])
SINGLES = {f"{p.key}: 1": Configuration({p.key: "1"}) for p in SPACE.parameters}


# -- arms ------------------------------------------------------------------------------------------


def test_only_unlikely_keys_are_grouped_and_each_of_them_once() -> None:
    arms, groups = acting.grouped(SPACE, DEFAULT, SINGLES, seed=1)
    members = [name for group in groups.values() for name in group]
    assert sorted(members) == sorted(f"{key}: 1" for key in UNLIKELY * acting.GROUPINGS)
    assert {len(group) for group in groups.values()} == {acting.GROUP}
    assert len(arms) == len(LIKELY) + acting.GROUPINGS * len(UNLIKELY) / acting.GROUP
    for name, group in groups.items():
        assert set(arms[name].values) == {acting.key_of(member) for member in group}
    assert arms == acting.grouped(SPACE, DEFAULT, SINGLES, seed=1)[0]


def test_a_group_has_no_key_twice_and_breaks_no_constraint() -> None:
    keys = [f"net.ipv6.n_{letter}" for letter in "ab"]
    numbers = [
        Parameter(
            key=key,
            kind="integer",
            unit="",
            scope="namespace",
            risk="low",
            mechanism="none",
            document="none",
            components=(Component(name="", low=0, high=9),),
        )
        for key in keys
    ]
    space = Space(tuple(numbers), (Order(columns=tuple(keys)),), dict.fromkeys(keys, "5"))
    singles = {
        f"{keys[0]}: 6": Configuration({keys[0]: "6", keys[1]: "6"}),
        f"{keys[0]}: 0": Configuration({keys[0]: "0"}),
        f"{keys[1]}: 5": Configuration({keys[1]: "5"}),
    }
    for seed in range(5):
        arms, groups = acting.grouped(space, DEFAULT, singles, seed=seed)
        assert {m for g in groups.values() for m in g} | arms.keys() >= singles.keys()
        assert all(not space.broken(c) for c in arms.values())
        assert all(len({acting.key_of(m) for m in g}) == len(g) for g in groups.values())


def test_a_number_is_measured_at_its_ends_and_between_where_the_base_is_at_one() -> None:
    def of(key: str, base: float, *names: str) -> tuple[float, ...]:
        parts = tuple(Component(name=name, low=0, high=100) for name in names or ("",))
        kind = "vector" if names else "integer"
        made = replace(boolean(key), kind=kind, choices=(), components=parts)
        return tuple(acting.levels(parameter_columns(made)[0], base))

    assert of("net.core.n", 0.5) == (0, 1)
    assert of("net.core.n", 0.95) == (0, 0.5, 1)
    assert of("net.ipv6.n", 0.95) == (0, 1)
    assert of("net.core.v", 0.5, "min", "max") == (0, 0.5, 1)


def test_pairs_are_of_the_strongest_keys_gains_first() -> None:
    effects = [
        effect("net.a: 1", 3.0),
        effect("net.a: 2", 2.0),
        effect("net.b: 1", 1.3),
        effect("net.c: 1", 0.1),
        effect("net.d: 1", 0.5),
        effect("net.e: 1", 0.9),
        effect("net.f: 1", 1.1, acts=False),
    ]
    assert acting.strongest(effects) == ["net.a: 1", "net.b: 1", "net.c: 1", "net.d: 1"]
    space = space_of(["net.a", "net.b", "net.c", "net.d"])
    singles = {e.arm: Configuration({acting.key_of(e.arm): "1"}) for e in effects}
    arms = acting.pairs(space, DEFAULT, singles, effects)
    assert len(arms) == 4 + 6 + 1
    assert arms[acting.ALL_GAINS].values == {"net.a": "1", "net.b": "1"}
    assert arms["net.b: 1 & net.c: 1"].values == {"net.b": "1", "net.c": "1"}
    assert acting.pairs(space, DEFAULT, singles, [effects[-1]]) == {}


def effect(arm: str, ratio: float, *, acts: bool = True) -> acting.Effect:
    low, high = (ratio * 0.99, ratio * 1.01) if acts else (0.5, 2.0)
    return acting.Effect(arm=arm, rounds=8, ratio=ratio, p=0.0, low=low, high=high)


# -- scan ------------------------------------------------------------------------------------------


def test_few_inert_arms_go_on_and_all_that_act_strongly() -> None:
    rng = random.Random(1)
    effects = {f"inert {n}": 0.0 for n in range(400)} | {f"acts {n}": 0.25 for n in range(50)}
    p99 = measured(effects, 2, acting.bases_of_scan(len(effects)), rng)
    ahead = acting.goes_on(p99, acting.scanned(p99, p99))
    assert sum(name.startswith("inert") for name in ahead) / 400 < 0.05
    assert sum(name.startswith("acts") for name in ahead) == 50


def test_what_failed_goes_on() -> None:
    p99 = measured({"inert": 0.0}, 2, 5, random.Random(2), sd=0.001)
    result = acting.scanned(p99, p99)
    assert acting.goes_on(["base 1", "inert", "broken"], result)[0] == "broken"


def test_what_shows_in_the_tail_alone_goes_on() -> None:
    p99 = measured({"inert": 0.0, "tail": 0.0}, 2, 10, random.Random(3), sd=0.3)
    tails = measured({"inert": 0.0, "tail": 0.2}, 2, 10, random.Random(4), sd=0.02)
    result = {e.arm: e for e in acting.scanned(p99, tails)}
    assert acting.goes_on(result, list(result.values())) == ["tail"]
    assert abs(result["tail"].ratio - 1) > 0.01  # P99's own, which has noise


def test_of_a_key_the_best_arm_and_the_worst_are_tested() -> None:
    distances = {
        "net.a: 1": 3.0,
        "net.a: 2": 5.0,
        "net.a: 3": -4.0,
        "net.b: 1": 9.0,
        "net.c: 1": 1.0,
    }
    effects = [acting.Effect(arm=a, rounds=2, ratio=1.0, z=z) for a, z in distances.items()]
    wanted = ["net.d: 1", "net.b: 1", "net.a: 2", "net.a: 3"]
    assert acting.to_test([*distances, "net.d: 1"], effects) == wanted  # d has failed


def scan(effects: Mapping[str, float], seed: int, *, is_grouped: bool) -> tuple[list[str], int]:
    """What goes on, by groups or by every arm alone, and how many arms were measured."""
    rng = random.Random(seed)
    if not is_grouped:
        alone = measured(effects, 2, acting.bases_of_scan(len(effects)), rng)
        return acting.goes_on(effects, acting.scanned(alone, alone)), len(effects)
    arms, groups = acting.grouped(SPACE, DEFAULT, SINGLES, seed=seed)
    sums = {name: sum(effects[m] for m in groups.get(name, (name,))) for name in arms}
    p99 = measured(sums, 2, acting.bases_of_scan(len(sums)), rng)
    ahead = acting.goes_on(sums, acting.scanned(p99, p99))
    members = {m: effects[m] for name in ahead for m in groups.get(name, ())}
    ahead = [name for name in ahead if name not in groups]
    if members:
        p99 = measured(members, 2, acting.bases_of_scan(len(members)), rng)
        ahead += acting.goes_on(members, acting.scanned(p99, p99))
    return ahead, len(sums) + len(members)


def test_groups_find_what_one_at_a_time_finds() -> None:
    """Of unlikely keys that act all the same, some to the better and some to the worse."""
    result = {True: 0, False: 0}
    for seed in range(40):
        rng = random.Random(seed)
        acts = dict(zip(rng.sample(UNLIKELY, 3), (0.3, -0.4, 0.25), strict=True))
        effects = {name: acts.get(acting.key_of(name), 0.0) for name in SINGLES}
        for is_grouped in result:
            ahead, _ = scan(effects, seed, is_grouped=is_grouped)
            result[is_grouped] += sum(acting.key_of(name) in acts for name in ahead)
    assert result[False] >= 0.97 * 120
    assert result[True] >= 0.92 * result[False]  # in a group two may hide each other


def test_groups_save_arms_where_their_keys_do_not_act() -> None:
    effects = dict.fromkeys(SINGLES, 0.0)
    counts = [scan(effects, seed, is_grouped=True)[1] - len(LIKELY) for seed in range(20)]
    assert sum(counts) / 20 < 0.5 * len(UNLIKELY)


# -- test ------------------------------------------------------------------------------------------


def test_nothing_is_called_where_nothing_acts() -> None:
    """The whole rule on 100 inert arms: a scan that picks the lucky ones, and a test of those."""
    wrong, tested = 0, 0
    for seed in range(60):
        effects = dict.fromkeys(SINGLES, 0.0)
        ahead, _ = scan(effects, seed, is_grouped=True)
        p99 = measured(dict.fromkeys(ahead, 0.0), 8, acting.TEST_BASES, random.Random(seed + 1000))
        result, _ = acting.tested(p99)
        tested += len(result)
        wrong += any(e.acts for e in result)
    assert tested > 120
    assert wrong <= 7  # 3 expected; 8 or more have a chance of 1 %


def test_intervals_of_what_is_called_hold_the_truth_and_effects_are_found() -> None:
    missed, called, found_ones = 0, 0, 0
    truth = {f"acts {n}": value for n, value in enumerate((0.15, -0.2, 0.4, 0.2, -0.15))}
    truth |= {f"inert {n}": 0.0 for n in range(15)}
    for seed in range(60):
        effects, level = acting.tested(measured(truth, 8, acting.TEST_BASES, random.Random(seed)))
        assert 0.95 <= level < 1
        for one in effects:
            assert one.low is not None
            assert one.high is not None
            if one.acts:
                called += 1
                missed += not one.low <= exp(truth[one.arm]) <= one.high
                found_ones += one.arm.startswith("acts")
    assert found_ones >= 0.9 * 5 * 60
    assert missed / called <= 0.08


@pytest.mark.parametrize("rounds", [8, 32])
def test_the_least_effect_that_is_called_is_called_nine_times_of_ten(rounds: int) -> None:
    called = 0
    effects = {f"inert {n}": 0.0 for n in range(9)}
    effects["acts"] = log(acting.least_called(SD, arms=10, rounds=rounds))
    for seed in range(200):
        p99 = measured(effects, rounds, acting.TEST_BASES, random.Random(seed))
        called += any(e.arm == "acts" and e.acts > 0 for e in acting.tested(p99)[0])
    assert 0.85 <= called / 200 <= 0.96


def test_an_interval_excludes_one_exactly_where_the_procedure_calls() -> None:
    truth = {f"arm {n}": n * 0.01 for n in range(20)}
    effects, level = acting.tested(measured(truth, 6, 3, random.Random(3)))
    ps = sorted(e.p or 0.0 for e in effects)
    called = max((k for k, p in enumerate(ps, 1) if p <= k * acting.RATE / 20), default=0)
    assert 0 < called < 20
    assert called == sum(e.acts != 0 for e in effects)
    assert level == pytest.approx(1 - called * acting.RATE / 20)


def test_a_slow_round_is_nobodys_effect() -> None:
    rng = random.Random(4)
    p99 = measured({"arm": 0.2}, 8, 3, rng, sd=0.001)
    ((only,), _) = acting.tested(p99)
    assert only.ratio == pytest.approx(exp(0.2), rel=0.01)
    assert only.acts == 1
    del p99["arm"][3]
    ((only,), _) = acting.tested(p99)
    assert only.rounds == 7


def test_an_interaction_is_what_a_pair_does_beyond_both() -> None:
    truth = {"a": 0.3, "b": 0.2, "a & b": 0.4}
    (result,) = acting.interactions(measured(truth, 5, 3, random.Random(5), sd=0.001))
    assert (result.arm, result.rounds, result.acts) == ("a & b", 5, -1)
    assert result.ratio == pytest.approx(exp(-0.1), rel=0.02)


# -- tables ----------------------------------------------------------------------------------------


def test_a_table_becomes_a_summary(tmp_path: Path) -> None:
    common = {"scenario": "s", "arch": "x86", "workload": "slt", "base": "default", "p99_ms": "90"}
    empty = dict.fromkeys(("ratio", "low", "high", "state", "key", "arm", "beyond"), "")
    gain = {"key": "net.ipv4.tcp_sack", "arm": "net.ipv4.tcp_sack: 0", "state": "gain"}
    numbers = {"ratio": "1.5", "low": "1.4", "high": "1.6"}
    truth.write_rows(
        tmp_path / "s-x86-slt.csv.gz",
        [
            {**common, **empty, "part": "base", "arm": "base"},
            {**common, **empty, **gain, "part": "scan", "state": "not followed"},
            {**common, **empty, **gain, **numbers, "part": "test"},
        ],
    )
    text = truth_table.summary(tmp_path)
    assert (
        "| s x86 slt | default | 90 ms | - | `tcp_sack` | - | 1 of 1 tested | 1.50 (1.40 to 1.60)"
        in text
    )
    assert "| test | `net.ipv4.tcp_sack: 0` | 1.50 (1.40 to 1.60) |  |" in text
    assert "1 more arms stood out in the scan" in text


def test_a_table_has_the_columns_of_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    truth.write_rows(path, [{"a": 1}, {"a": 2, "b": 3}])
    assert truth_table.read(path) == [{"a": "1", "b": ""}, {"a": "2", "b": "3"}]


def test_an_effect_in_words() -> None:
    assert truth_table.in_words(effect("net.a: 1", 3.0)) == "3.00 (2.97 to 3.03) gain"
    assert truth_table.in_words(acting.Effect(arm="a", rounds=2, ratio=exp(log(0.5)))) == "0.50"


# -- a whole cell ----------------------------------------------------------------------------------

OWN = {
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_autocorking": "1",
    "net.ipv4.tcp_recovery": "1",
    "net.ipv4.tcp_keepalive_time": "7200",
    "net.ipv4.tcp_rfc1337": "0",
    "net.ipv4.tcp_orphan_retries": "0",
}
ACTS = {"net.ipv4.tcp_sack": -0.5, "net.ipv4.tcp_slow_start_after_idle": 0.4}


class Acting(FakeTestbed):
    """A testbed on which some keys act, which dies after so many trials."""

    @property
    def probed(self) -> Probed:
        return probed_of(self.task.context.study, PROBE)


PROBE = probe_of(OWN)


def cell_of(store: Store, *, dies_after: int | None = None) -> truth.Cell:
    rng = random.Random(7)

    def latency(planned: PlannedTrial) -> int:
        changed = planned.configuration.values
        effect = sum(ACTS.get(key, 0.0) for key in changed if changed[key] != OWN[key])
        return round(1_000_000 * exp(rng.gauss(0, 0.01) - effect))

    @contextmanager
    def testbeds(task: Task) -> Iterator[tuple["Testbed", ...]]:
        task.store.put(task.subject, PROBE)
        ready = Acting(task, latency=latency, dies_after=dies_after)
        yield (cast("Testbed", ready),)

    whole = load_study(shipped("configs") / "scenarios" / "static-wan.toml")
    study = replace(whole, clusters={"x86": (LabSpec(name="made-up"),)})
    return truth.Cell(scenario="made-up", study=study, store=store, testbeds=testbeds)


def test_a_cell_is_measured_from_scan_to_table(tmp_path: Path) -> None:
    with opened(str(tmp_path / "made-up.db")) as store:
        with pytest.raises(KeyboardInterrupt):
            truth.measure_cell(cell_of(store, dies_after=5), 4, None)
        result = truth.measure_cell(cell_of(store), 4, None)
        again = truth.measure_cell(cell_of(store, dies_after=0), 4, None)
        assert result.effects == again.effects  # all of it is stored

        cell = cell_of(store)
        good = truth.good_configuration(cell)
        rows = truth_table.rows(cell, result, commit="abc123")
        truth.write_rows(tmp_path / f"{cell.name}.csv.gz", rows)
        truth.write_trials(tmp_path / f"{cell.name}-trials.csv.gz", result)
    assert good.values == {"net.ipv4.tcp_slow_start_after_idle": "0"}
    states = {row["arm"]: row["state"] for row in rows if row["part"] == "test"}
    assert states["net.ipv4.tcp_slow_start_after_idle: 0"] == "gain"
    assert states["net.ipv4.tcp_sack: 0"] == "worse"
    assert "nothing" not in {states.get(f"{key}: 0") for key in ACTS}
    (pair,) = [row for row in rows if acting.TOGETHER in str(row["arm"])]
    assert pair["beyond"]
    text = truth_table.summary(tmp_path)
    assert "| made-up x86 slt | default | " in text
    assert " ms, sd 1% | 1.0" in text
    assert " | `tcp_slow_start_after_idle` | `tcp_sack` | " in text
    assert " | abc123, 20" in text


@pytest.mark.parametrize(("replicas", "shares"), [(1, 1), (2, 1), (4, 2)])
def test_a_scan_keeps_all_replicas_busy(tmp_path: Path, replicas: int, shares: int) -> None:
    with opened(str(tmp_path / "made-up.db")) as store:
        plan = truth.scan_plan(cell_of(store).task("scan"), DEFAULT, SINGLES, 2, replicas)
    assert [p.index for p in plan] == list(range(len(plan)))
    rounds: dict[int, list[str]] = {}
    for planned in plan:
        rounds.setdefault(planned.turn, []).append(planned.arm)
    assert 2 * shares == len(rounds)
    own = [{arm for arm in arms if not acting.is_base(arm)} for arms in rounds.values()]
    assert max(map(len, own)) - min(map(len, own)) <= 1
    for arms, mine in zip(rounds.values(), own, strict=True):
        assert len(arms) == len(mine) + acting.bases_of_scan(len(mine))
    assert all(sum(name in mine for mine in own) == 2 for name in SINGLES)


def test_a_test_has_the_most_suspicious_arms_that_fit_in_the_time(tmp_path: Path) -> None:
    with opened(str(tmp_path / "made-up.db")) as store:
        # Trials of 12 s: the scan takes 2 rounds of some 12, the test of two arms 4 rounds of 5.
        result = truth.measure_cell(cell_of(store), 4, 0.1)
        rows = truth_table.rows(cell_of(store), result)
    tested = [row["arm"] for row in rows if row["part"] == "test"]
    assert tested == ["net.ipv4.tcp_sack: 0"]
    left = [row["arm"] for row in rows if row["state"] == "not followed"]
    assert "net.ipv4.tcp_slow_start_after_idle: 0" in left


def test_published_sets_are_in_a_table_of_all_cells(tmp_path: Path) -> None:
    def contestant(name: str, ratio: Interval | None, **changes: Any) -> Contestant:
        made = Contestant(
            name=name,
            title=name,
            configuration=DEFAULT,
            keys=3,
            already=0,
            left_out={},
            ratio=ratio,
        )
        return replace(made, **changes)

    result = Contest(
        contestants=(
            contestant("default", None, is_reference=True),
            contestant("blog", Interval(1.5, 1.25, 1.8), failures=2),
            contestant("other", Interval(0.5, 0.25, 0.75)),
            contestant("same", None, same_as="default"),
        ),
        reference="default",
        rounds=10,
        level=0.95,
        ratio_level=0.983,
    )
    with opened(str(tmp_path / "made-up.db")) as store:
        cell = cell_of(store)
        published.write(tmp_path / f"{cell.name}.csv", cell, result)
    text = published.summary(tmp_path)
    assert "| scenario | blog | other | same |" in text
    line = "**1.50 (1.25 to 1.80)**, 2 failed | *0.50 (0.25 to 0.75)* | same as default |"
    assert f"| made-up x86 slt | {line}" in text


def test_a_screening_is_held_against_the_table() -> None:
    def row(part: str, key: str, state: str, ratio: float = 1.0) -> dict[str, str]:
        return {"part": part, "key": key, "state": state, "ratio": f"{ratio}"}

    truth_of_table = screening_truth.truth_of(
        [
            row("scan", "a", "tested", 1.4),
            row("test", "a", "gain", 1.3),
            row("test", "a", "worse", 0.5),
            row("test", "b", "nothing"),
            row("scan", "c", "not followed"),
        ]
    )
    assert (truth_of_table.acting, truth_of_table.unknown) == ({"a": 0.5}, {"c"})
    met = "\n".join(screening_truth.table("x", truth_of_table, [["a", "c"]] * 9 + [[]]))
    assert "| `a` | 0.50 | 9 of 10 |" in met
    assert "False: 0 of 9 chosen (0%). The claim is met." in met
    missed = "\n".join(screening_truth.table("x", truth_of_table, [["a"]] * 8 + [["b"]] * 2))
    assert "| `b` | false | 2 of 10 |" in missed
    assert "0 of 1. False: 2 of 10 chosen (20%). The claim is not met." in missed


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_screening_has_no_more_trials_than_it_may(replicas: int) -> None:
    count = screening_truth.most_configurations(8, replicas)
    assert screening_truth.TRIALS - 3 <= designed(count, 8, replicas) <= screening_truth.TRIALS
