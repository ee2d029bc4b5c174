"""x"""

import sys, time
import numpy as np
from intop.domain.ablation import ablate, kept_share


def logp(s, kind):
    e = {"a": 0.9, "b": 0.6}
    v = sum(e[k] for k in e if k in s)
    if "c" in s or "d" in s:
        v += 0.5
    return 3 - v


def run(seed, sd=0.3, n=14, judge=10):
    rng = np.random.default_rng(seed)
    names = "abcdefghijklmnopqrst"[:n]
    g = ablate(names, rounds=4, level=0.95)
    asked = next(g)
    trials = 0
    per = {}
    try:
        while True:
            told = []
            for _ in range(asked.rounds):
                drift = rng.normal() * 0.1
                told.append({s: logp(s, 0) + drift + rng.normal() * sd for s in asked.sets})
            trials += asked.rounds * len(asked.sets)
            asked = g.send(told)
    except StopIteration as e:
        f = e.value
    m = set(f.minimal)
    bad = m - set("abcd")
    full = logp(frozenset(names), 0)
    d = 3
    kept = kept_share(d - full, logp(frozenset(m), 0) - full)
    return m, bad, kept, trials


t = time.time()
res = [run(s, float(sys.argv[1]) if len(sys.argv) > 1 else 0.3) for s in range(200)]
print(
    "irrelevant kept",
    sum(bool(r[1]) for r in res),
    "lost",
    sum(r[2] < 0.9 for r in res),
    "redundant kept both",
    sum({"c", "d"} <= r[0] for r in res),
    "trials",
    np.mean([r[3] for r in res]),
    np.percentile([r[3] for r in res], [5, 50, 95, 100]),
    "kept",
    np.mean([r[2] for r in res]),
    time.time() - t,
)
from collections import Counter

print(Counter("".join(sorted(r[0])) for r in res).most_common(12))
