"""Hints: values that take away what the kernel counts while the default makes clients wait.

Parameters that do so are expected to act before a screening has looked, and configurations of them
are a place to begin with. A hint is no more than that: it is tested and measured as any other one.
So a wrong one costs little, and the models learn from it.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from intop.campaign.verify.causes import own_total
from intop.config.counters import load_counters
from intop.domain.configuration import Configuration
from intop.domain.counters import CounterCatalogue
from intop.domain.histogram import slower_share
from intop.domain.space import Space
from intop.domain.trial import Trial
from intop.domain.workload import Workload
from intop.resources import shipped
from intop.run.context import Task

MOST = 4
SHARE = 4
"""Configurations for each hint, at least."""
OF_TIME_MS = 1.0
"""A shorter wait of all connections together, by request, makes no slow request."""
INITIAL_WINDOW = 10
"""Segments (RFC 6928). Levels of which more is better are congestion windows."""
IDLE = "slow-start-after-idle"
RTO_MS = "clients.rto_ms.p50"
LEAST_RTO_MS = 200.0
"""Linux's own. A connection that was idle for its time-out begins with a small window again."""


def hinted(task: Task, trials: Sequence[Trial], space: Space) -> tuple[str, ...]:
    """Return the parameters of a space that take away what the default shows in these trials.

    Empty where the study wants no hints.
    """
    if not task.context.study.hints:
        return ()
    catalogue = load_counters(shipped("configs") / "counters.toml")
    shown = _shown(trials, catalogue, task.workload)
    wanted = {
        key
        for mechanism, blocks in catalogue.blocks.items()
        for values in blocks
        for key in values
        if mechanism in shown
    }
    return tuple(p.key for p in space.parameters if p.key in wanted)


def hints(task: Task, space: Space, count: int) -> list[Configuration]:
    """Return the first configurations of a design of `count`: all hints together, then each alone.

    Empty where the study wants none, or where no mechanism shows that something takes away.
    """
    most = min(MOST, count // SHARE)
    if not task.context.study.hints or not most:
        return []
    catalogue = load_counters(shipped("configs") / "counters.toml")
    shown = _shown(task.trials("screen"), catalogue, task.workload)
    chosen: dict[str, Mapping[str, str]] = {}
    for mechanism, blocks in catalogue.blocks.items():
        possible = [values for values in blocks if _is_in(space, values)]
        if mechanism in shown and possible and possible[0] not in chosen.values():
            chosen[mechanism] = possible[0]
    if not chosen:
        return []
    task.context.progress.say(
        f"{task.title}: the default shows {', '.join(chosen)}; first are configurations that take "
        f"this away (hints = false in [study] leaves them out)"
    )
    together = {key: value for values in chosen.values() for key, value in values.items()}
    every = [together, *chosen.values()] if len(chosen) > 1 else [together]
    return [Configuration(dict(values)) for values in every[:most]]


def _shown(trials: Sequence[Trial], catalogue: CounterCatalogue, workload: Workload) -> set[str]:
    """Return the mechanisms that the default shows in these trials, by the balancers' counters.

    The load tells whether connections are idle for longer than their time-outs. Their windows alone
    don't: they have grown again by the end of an answer.
    """
    counted = [
        (trial.histogram.total if trial.histogram else 0, trial.counters[trial.replica])
        for trial in trials
        if trial.usable and trial.configuration.is_default and trial.replica in trial.counters
    ]
    # An event of fewer requests does not show in what is judged.
    of_requests = slower_share(workload.judged_by)
    shown: set[str] = set()
    for name in {name for _, counters in counted for name in counters.totals}:
        entry = catalogue.find(name)
        if entry is None or not entry.mechanism:
            continue
        if not all(counters.shows(name) for _, counters in counted):
            continue
        # Windows towards upstreams stay small since requests are.
        if entry.size or (entry.direction == "better" and name.startswith("upstreams.")):
            continue
        mean = fmean(own_total(counters, name) for _, counters in counted)
        if entry.direction == "better":
            is_sign = entry.level and mean <= INITIAL_WINDOW
        else:
            each = OF_TIME_MS if name.endswith("_ms") else of_requests
            least = 1.0 if entry.level else each * fmean(total for total, _ in counted)
            is_sign = entry.direction == "worse" and mean >= least
        if is_sign:
            shown.add(entry.mechanism)
    # On an emulated machine no sockets are listed. Its time-outs are as short as Linux has them.
    rtos_ms = [own_total(counters, RTO_MS) for _, counters in counted if RTO_MS in counters.totals]
    if counted and _idles(workload, fmean(rtos_ms) if rtos_ms else LEAST_RTO_MS):
        shown.add(IDLE)
    return shown


def _idles(workload: Workload, rto_ms: float) -> bool:
    """Whether connections that are kept wait longer for a request than for a time-out."""
    is_kept = any(clients.requests_per_connection != 1 for clients in workload.clients)
    return is_kept and 1_000 * workload.connections / workload.rate_rps > rto_ms


def _is_in(space: Space, values: Mapping[str, str]) -> bool:
    """Whether the space has these values, and they are not the default's."""
    genes = space.genes(space.values([Configuration(dict(values))]))
    (decoded,) = space.configurations(space.decode(genes))
    is_kept = values.items() <= decoded.values.items()
    return is_kept and any(space.defaults[key] != value for key, value in values.items())
