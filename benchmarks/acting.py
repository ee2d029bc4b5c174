"""Which arms act: rules that are fixed before anything is measured. No host, no store.

An arm is the base (the host's default, or a good configuration) with one key changed. Its effect
is the logarithm of base's P99 / arm's P99, so above 0 is better.

scan    All arms in a few rounds. Keys that hardly ever matter (UNLIKELY) are changed together, in
        groups of up to GROUP arms, GROUPINGS times by chance, so that two which cancel each other
        in one group are hardly together again. An arm or group goes on if the mean of its log P99
        or of its log tail (the slowest tenth, which scatters much less) is more than SUSPICION
        standard errors from the base's; by chance one inert arm of some 25 is. What failed goes on,
        too. The scatter is that of the base's own trials, which are about a tenth of all.
split   The arms of the groups that went on, one by one, by the same rule.
test    The MOST_TESTED that stand out most, of each key one to the better and one to the worse, in
        fresh rounds with several trials of the base in each: the fewer arms, the more rounds, up to
        MOST_ROUNDS. Here P99 alone is judged. Only these rounds count, so that nobody's luck in the
        scan is part of an effect, and m below is the number of arms tested: the others are never
        called. Student's t on the rounds' log ratios, and Benjamini and Hochberg's procedure over
        all m arms with a false discovery rate of RATE (JRSS B 57, 1995). Where R arms are called,
        every interval has the level 1 - max(R, 1) RATE / m, with which it excludes 1 exactly for
        those (Benjamini and Yekutieli, JASA 100, 2005).
pairs   The strongest arms of PAIRED keys, gains first, two by two, and all gains together; again in
        fresh rounds. Here Bonferroni's correction keeps all intervals together.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations
from statistics import fmean, variance

from intop.domain.configuration import Configuration
from intop.domain.space import Column, Space
from intop.domain.stats import bonferroni

UNLIKELY = (
    "fs.*",
    "kernel.*",
    "vm.*",
    "net.ipv6.*",
    "net.netfilter.*",
    "net.core.txrehash",
    "net.ipv4.fib_*",
    "net.ipv4.ip_autobind_reuse",
    "net.ipv4.ip_default_ttl",
    "net.ipv4.ip_early_demux",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.neigh.*",
    "net.ipv4.route.*",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_early_demux",
    "net.ipv4.tcp_ecn_fallback",
    "net.ipv4.tcp_invalid_ratelimit",
    "net.ipv4.tcp_keepalive_*",
    "net.ipv4.tcp_migrate_req",
    "net.ipv4.tcp_min_rtt_wlen",
    "net.ipv4.tcp_min_snd_mss",
    "net.ipv4.tcp_mtu_*",
    "net.ipv4.tcp_orphan_retries",
    "net.ipv4.tcp_probe_*",
    "net.ipv4.tcp_reflect_tos",
    "net.ipv4.tcp_retries*",
    "net.ipv4.tcp_rfc1337",
    "net.ipv4.tcp_syn_*",
    "net.ipv4.tcp_workaround_signed_windows",
)
"""Keys that are not expected to act in any of our scenarios. They are tested all the same."""

GROUP = 8
GROUPINGS = 2
SUSPICION = 2.3
MOST_TESTED = 10
RATE = 0.05
PAIRED = 4
BASES_EVERY, FEWEST_BASES = 10, 5
"""In a round of a scan the base is measured once for so many arms, and at least so often: the
scatter of a few trials is itself a guess."""
TEST_BASES = 3
"""Trials of the base in each round of a test."""
SCAN_ROUNDS = 2
TEST_ROUNDS = 8
"""Or more, where there is time."""
MOST_ROUNDS = 32
ENDS = (0.0, 1.0)
THREE = (0.0, 0.5, 1.0)
"""Places in a number's range, on its own scale."""
NEAR = 0.1
"""So near to an end of the range the base is at it."""

Arms = dict[str, Configuration]
Rounds = Mapping[str, Mapping[int, Sequence[float]]]
"""P99 or tail (ms) of an arm's usable trials, by arm and in it by round."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """An arm against the base: base's P99 / arm's P99, so above 1 is better.

    `low` and `high` hold at the level that the pass says; they and `p` are None in a scan, which
    has `z`, the distance from the base in standard errors. `rounds` is how many were usable.
    """

    arm: str
    rounds: int
    ratio: float
    z: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def acts(self) -> int:
        """1 where the interval is above 1, -1 below, 0 where it includes 1 or there is none."""
        if self.low is None or self.high is None:
            return 0
        return int(self.low > 1) - int(self.high < 1)


# -- which arms ----------------------------------------------------------------------------------


def key_of(arm: str) -> str:
    """The sysctl key of a single arm's name, `COLUMN: VALUE`."""
    return arm.partition(":")[0].partition("[")[0]


def is_unlikely(key: str) -> bool:
    """Whether a key is scanned in groups."""
    return any(fnmatchcase(key, pattern) for pattern in UNLIKELY)


def levels(column: Column, base: float) -> Sequence[float]:
    """The places of a number's range at which it is measured, `base` being where the base is.

    Its ends; the middle, too, where the base is at an end, and for the components of a vector. What
    a name is measured at are all its values.
    """
    is_vector = len(column.parameter.components) > 1
    is_at_end = base < NEAR or base > 1 - NEAR
    return THREE if is_vector or (is_at_end and not is_unlikely(column.parameter.key)) else ENDS


def grouped(
    space: Space, base: Configuration, singles: Mapping[str, Configuration], *, seed: int
) -> tuple[Arms, dict[str, tuple[str, ...]]]:
    """The arms of a scan, and the members of those that are groups.

    Each arm of an unlikely key is in GROUPINGS groups. A group has at most one arm of a key, and
    meets all constraints that the base meets.
    """
    rng = random.Random(seed)
    arms: Arms = {n: c for n, c in singles.items() if not is_unlikely(key_of(n))}
    waiting = [n for n in singles if n not in arms]
    found: dict[str, tuple[str, ...]] = {}
    for grouping in range(1, GROUPINGS + 1):
        rng.shuffle(waiting)
        for n, (members, together) in enumerate(_packed(space, base, singles, waiting), 1):
            name = members[0] if len(members) == 1 else f"group {grouping}.{n}"
            arms[name] = together
            if len(members) > 1:
                found[name] = tuple(members)
    return arms, found


def _packed(
    space: Space, base: Configuration, singles: Mapping[str, Configuration], names: Sequence[str]
) -> list[tuple[list[str], Configuration]]:
    """The names in groups, in this order, each in the first group where it fits."""
    accepted = set(space.broken(base))
    groups: list[tuple[list[str], Configuration]] = []
    for name in names:
        changed = _changes(singles[name], base)
        for n, (members, together) in enumerate(groups):
            joined = Configuration({**together.values, **changed})
            is_apart = not changed.keys() & _changes(together, base).keys()
            if len(members) < GROUP and is_apart and set(space.broken(joined)) <= accepted:
                groups[n] = ([*members, name], joined)
                break
        else:
            groups.append(([name], singles[name]))
    return groups


def _changes(configuration: Configuration, base: Configuration) -> dict[str, str]:
    return {k: v for k, v in configuration.values.items() if base.values.get(k) != v}


def with_bases(arms: Mapping[str, Configuration], base: Configuration, count: int) -> Arms:
    """Arms, and the base so many times: each is an arm of a round."""
    return {**{f"base {n}": base for n in range(1, count + 1)}, **arms}


def is_base(arm: str) -> bool:
    """Whether an arm is one of the base's."""
    return arm.startswith("base ")


def bases_of_scan(arms: int) -> int:
    """How many trials of the base a round of a scan has."""
    return max(FEWEST_BASES, math.ceil(arms / BASES_EVERY))


# -- scan ----------------------------------------------------------------------------------------


def scanned(p99: Rounds, tails: Rounds) -> list[Effect]:
    """The effects by a scan, without intervals: P99's ratio, and the `z` of what is further off.

    Raises ValueError without trials of the base.
    """
    by_tail = {e.arm: e.z or 0.0 for e in _scanned(tails)}
    return [replace(e, z=max(e.z or 0.0, by_tail[e.arm], key=abs)) for e in _scanned(p99)]


def _scanned(measured: Rounds) -> list[Effect]:
    base = _base_logs(measured)
    scatter = _scatter(base)
    found = []
    for arm, rounds in measured.items():
        if is_base(arm):
            continue
        differences = _differences(base, rounds)
        if not differences:
            continue
        mean = fmean(differences)
        count = sum(len(base[n]) for n in rounds if n in base)
        error = scatter * math.sqrt(1 / len(differences) + 1 / count)
        z = mean / error if error else math.copysign(math.inf, mean) if mean else 0.0
        found.append(Effect(arm=arm, rounds=len(differences), ratio=math.exp(mean), z=z))
    return found


def goes_on(arms: Iterable[str], effects: Sequence[Effect]) -> list[str]:
    """The arms that could still be something: the strongest first, before them those that failed.

    An arm without any usable trial has no effect in `effects`.
    """
    by_arm = {e.arm: e for e in effects}
    failed = [a for a in arms if not is_base(a) and a not in by_arm]
    suspicious = sorted(filter(is_suspicious, effects), key=lambda e: -abs(e.z or 0))
    return [*failed, *(e.arm for e in suspicious)]


def to_test(arms: Iterable[str], effects: Sequence[Effect]) -> list[str]:
    """What goes on, of each key only the arm that stands out most to either side."""
    z = {e.arm: e.z or 0.0 for e in effects}
    chosen: dict[tuple[str, float], str] = {}
    for arm in goes_on(arms, effects):
        side = math.copysign(1.0, z[arm]) if arm in z else 0.0
        chosen.setdefault((key_of(arm), side), arm)
    return list(chosen.values())


def is_suspicious(effect: Effect) -> bool:
    """Whether a scan finds it far enough from the base to go on."""
    return abs(effect.z or 0) > SUSPICION


def _base_logs(p99: Rounds) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for arm, rounds in p99.items():
        if is_base(arm):
            for number, values in rounds.items():
                found.setdefault(number, []).extend(math.log(v) for v in values)
    if not found:
        raise ValueError("the base has no usable trial")
    return found


def _scatter(base: Mapping[int, Sequence[float]]) -> float:
    """The standard deviation of the base's log P99 within rounds."""
    many = [(variance(logs), len(logs) - 1) for logs in base.values() if len(logs) > 1]
    if not many:
        raise ValueError("the base needs two trials in a round")
    return math.sqrt(sum(v * df for v, df in many) / sum(df for _, df in many))


def _by_round(
    base: Mapping[int, Sequence[float]], rounds: Mapping[int, Sequence[float]]
) -> dict[int, float]:
    """An arm's log ratio in each of the rounds that both have."""
    return {
        n: fmean(base[n]) - fmean(math.log(v) for v in values)
        for n, values in rounds.items()
        if n in base and values
    }


def _differences(
    base: Mapping[int, Sequence[float]], rounds: Mapping[int, Sequence[float]]
) -> list[float]:
    return list(_by_round(base, rounds).values())


# -- test ----------------------------------------------------------------------------------------


def tested(p99: Rounds) -> tuple[list[Effect], float]:
    """The effects of all arms with two usable rounds or more, and the level of their intervals."""
    base = _base_logs(p99)
    all_of = {a: _differences(base, rounds) for a, rounds in p99.items() if not is_base(a)}
    differences = {a: found for a, found in all_of.items() if len(found) >= 2}
    ps = {a: _p_value(found) for a, found in differences.items()}
    level = _level(list(ps.values()))
    return [_effect(a, found, ps[a], level) for a, found in differences.items()], level


def paired_up(p99: Rounds) -> tuple[list[Effect], float]:
    """The same with intervals that hold together with 1 - RATE, by Bonferroni."""
    base = _base_logs(p99)
    all_of = {a: _differences(base, rounds) for a, rounds in p99.items() if not is_base(a)}
    differences = {a: found for a, found in all_of.items() if len(found) >= 2}
    level = bonferroni(1 - RATE, len(differences))
    found = [_effect(a, d, _p_value(d), level) for a, d in differences.items()]
    return found, level


def interactions(p99: Rounds) -> list[Effect]:
    """By pair: what it does beyond the product of its arms alone; above 1 is better than that.

    The intervals of all pairs hold together with 1 - RATE, by Bonferroni.
    """
    base = _base_logs(p99)
    logs = {a: _by_round(base, rounds) for a, rounds in p99.items() if not is_base(a)}
    beyond: dict[str, list[float]] = {}
    for name, own in logs.items():
        one, _, other = name.partition(TOGETHER)
        if one in logs and other in logs:
            common = [n for n in own if n in logs[one] and n in logs[other]]
            beyond[name] = [own[n] - logs[one][n] - logs[other][n] for n in common]
    level = bonferroni(1 - RATE, len(beyond))
    return [_effect(a, d, _p_value(d), level) for a, d in beyond.items() if len(d) >= 2]


def _level(ps: Sequence[float]) -> float:
    """1 - R RATE / m, with R the number that Benjamini and Hochberg call among m."""
    count = len(ps)
    called = max((k for k, p in enumerate(sorted(ps), 1) if p <= k * RATE / count), default=1)
    return 1 - called * RATE / max(count, 1)


def _p_value(differences: Sequence[float]) -> float:
    """Two-sided, of Student's t."""
    from scipy import stats

    mean, error = fmean(differences), math.sqrt(variance(differences) / len(differences))
    if not error:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / error, len(differences) - 1))


def _effect(arm: str, differences: Sequence[float], p: float, level: float) -> Effect:
    from scipy import stats

    mean, count = fmean(differences), len(differences)
    error = math.sqrt(variance(differences) / count)
    half = float(stats.t.ppf((1 + level) / 2, count - 1)) * error
    low, high = math.exp(mean - half), math.exp(mean + half)
    return Effect(arm=arm, rounds=count, ratio=math.exp(mean), p=p, low=low, high=high)


def least_called(scatter: float, *, arms: int, rounds: int) -> float:
    """The smallest ratio that a test calls with a chance of 90 %, if no other arm in it acts.

    `scatter` is the standard deviation of a trial's log P99.
    """
    from scipy import stats

    wanted = stats.t.ppf(1 - RATE / (2 * arms), rounds - 1) + stats.t.ppf(0.9, rounds - 1)
    return math.exp(scatter * float(wanted) * math.sqrt((1 + 1 / TEST_BASES) / rounds))


# -- pairs ---------------------------------------------------------------------------------------


def strongest(effects: Sequence[Effect]) -> list[str]:
    """The best arm of each of up to PAIRED keys that act, gains first, then by strength."""
    acting = [e for e in effects if e.acts]
    acting.sort(key=lambda e: (-e.acts, -abs(math.log(e.ratio))))
    chosen: dict[str, str] = {}
    for effect in acting:
        chosen.setdefault(key_of(effect.arm), effect.arm)
    return list(chosen.values())[:PAIRED]


def gains(effects: Sequence[Effect]) -> list[str]:
    """The best arm of each key that gains, the strongest first."""
    better = sorted((e for e in effects if e.acts > 0), key=lambda e: -e.ratio)
    chosen: dict[str, str] = {}
    for effect in better:
        chosen.setdefault(key_of(effect.arm), effect.arm)
    return list(chosen.values())


ALL_GAINS = "all gains"
TOGETHER = " & "


def pairs(
    space: Space,
    base: Configuration,
    singles: Mapping[str, Configuration],
    effects: Sequence[Effect],
) -> Arms:
    """The strongest arms alone and two by two, and all gains together; none where nothing acts.

    Combinations that break a constraint which the base meets are left out.
    """
    accepted = set(space.broken(base))
    chosen = strongest(effects)
    arms: Arms = {name: singles[name] for name in chosen}
    for one, other in combinations(chosen, 2):
        arms[f"{one}{TOGETHER}{other}"] = _together(base, [singles[one], singles[other]])
    better = gains(effects)
    while len(better) > 1:
        together = _together(base, [singles[name] for name in better])
        if set(space.broken(together)) <= accepted:
            arms[ALL_GAINS] = together
            break
        better = better[:-1]
    return {n: c for n, c in arms.items() if set(space.broken(c)) <= accepted}


def _together(base: Configuration, parts: Sequence[Configuration]) -> Configuration:
    """The base with the changes of all parts, where the first part's has precedence."""
    values = dict(base.values)
    for part in reversed(parts):
        values |= _changes(part, base)
    return Configuration(values)
