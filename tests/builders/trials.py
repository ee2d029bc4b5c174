"""What several tests need an example of."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from intop.domain.cluster import Cluster, HostAddress
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.encoding import Matrix, Variable
from intop.domain.histogram import Histogram
from intop.domain.probing import HostFacts
from intop.domain.ranking import Effect, Importance, Ranking, Screening, State
from intop.domain.search import Convergence, Search
from intop.domain.training import ModelError, Training
from intop.domain.trial import USABLE, Conditions, HostMetrics, PlannedTrial, Status, Trial
from intop.learn.samples import Samples

CONDITIONS = Conditions(
    arch="x86",
    machine="x86_64",
    kernel="6.18.0-28-cloud-amd64",
    cpu="EPYC",
    nginx="nginx/1.22.1",
    load_tool="engine LuaJIT 2.1.0",
    workload="slt",
    script="0123456789abcdef",
    rate_rps=100.0,
    connections=8,
    threads=2,
    duration_s=10,
    timeout_s=2,
    link="tbf",
    paths="/",
    cpus=4,
    nginx_conf="0a1b2c3d",
    generator="EPYC, 8 CPUs, Linux 6.1.0",
    backends="2 x EPYC, 4 CPUs, Linux 6.1.0, nginx 1.22.1",
    congestion_control="cubic",
    peers_congestion_control="clients cubic, backends cubic",
    server_cpus="all",
)

FACTS = HostFacts(
    machine="x86_64",
    kernel="6.1.0",
    cpu="EPYC",
    cpus=4,
    memory_bytes=1 << 30,
    page_bytes=4096,
    in_namespace=False,
    is_root=True,
    nginx="nginx/1.22.1",
    clock_s=0.0,
)

METRICS = HostMetrics(
    cpu=0.25,
    steal=0.01,
    memory_mib=100.5,
    time_wait=3,
    listen_overflows=1,
    listen_drops=2,
    retransmits=4,
    cpu_pressure=0.125,
    memory_before_mib=90.5,
    time_wait_before=2,
)
HOSTS = {"lg": METRICS, "lb": METRICS, "b1": METRICS}


def cluster(**changes: Any) -> Cluster:
    """One host in each role: lg, lb and b1."""
    hosts = {
        name: HostAddress(name=name, role=role, hostname=name)
        for name, role in (("lg", "load-generator"), ("lb", "load-balancer"), ("b1", "backend"))
    }
    made = Cluster(
        arch="x86",
        load_generator=hosts["lg"],
        load_balancer=hosts["lb"],
        backends=(hosts["b1"],),
        url="http://198.18.0.20",
        server_restart="systemctl restart nginx",
        static_paths=("/index.html",),
        dynamic_path="/dynamic",
    )
    return replace(made, **changes)


def trial(
    configuration: Configuration = DEFAULT,
    p99_us: int = 1000,
    *,
    stage: str = "collect",
    index: int = 0,
    arm: str = "",
    number: int | None = None,
    status: Status = "ok",
    conditions: Conditions = CONDITIONS,
) -> Trial:
    """A trial whose requests all took `p99_us`; below 2048 its histogram keeps that exactly.

    It is of an `arm` in the round of this `number`, if any.
    """
    good = status in USABLE
    return Trial(
        planned=PlannedTrial(
            index=index, role="design", configuration=configuration, arm=arm, round=number
        ),
        stage=stage,
        attempt=0,
        status=status,
        detail="" if good else "because",
        conditions=conditions,
        started_at="2026-01-01T00:00:00+00:00",
        seconds=12.0,
        seed=1,
        tool_version="0.1.0",
        replica="lb",
        histogram=Histogram.from_pairs([(p99_us, 100)]) if good else None,
        achieved_rps=conditions.rate_rps,
        metrics=HOSTS if good else {},
    )


def importance(key: str, weight: float = 0.1, **changes: Any) -> Importance:
    """A parameter of this weight, by permutation and by the splits, that doesn't pass."""
    result = Importance(
        key=key,
        mean=weight,
        sd=0.0,
        permutation=weight,
        permutation_sd=0.0,
        above=0.5,
        passes=False,
    )
    return replace(result, **changes)


def ranking(*importances: Importance, chosen: Sequence[str] = (), **changes: Any) -> Ranking:
    """A ranking of nine trials."""
    result = Ranking(
        importances=importances,
        chosen=tuple(chosen),
        trials=9,
        probe_level=0.0,
        error_rate=0.05,
        keep=9,
    )
    return replace(result, **changes)


def screening(
    chosen: Sequence[str] = (),
    still: Sequence[str] = (),
    frozen: Sequence[str] = (),
    **changes: Any,
) -> Screening:
    """What a screening of nine configurations found: these act, can't be told, don't matter."""
    states: tuple[tuple[State, Sequence[str]], ...] = (
        ("chosen", chosen),
        ("open", still),
        ("frozen", frozen),
    )
    sizes = {
        "chosen": (1.5, 1.75, 0.001, 0.9),
        "open": (1.1, 1.4, 0.3, 0.1),
        "frozen": (1.05, 1.125, 0.8, 0.05),
    }
    effects = tuple(
        Effect(key=key, ratio=ratio, high=high, p_value=p_value, probability=likely, state=state)
        for state, keys in states
        for key in keys
        for ratio, high, p_value, likely in [sizes[state]]
    )
    result = Screening(
        effects=effects,
        configurations=9,
        responses=("P99", "tail"),
        discovery_rate=0.05,
        matters=1.2,
        level=0.95,
        power=0.9,
        detectable=1.25,
    )
    return replace(result, **changes)


def model_error(family: str, mape: float = 20.0, **changes: Any) -> ModelError:
    """What a family errs by, without the rows that were held out."""
    result = ModelError(
        family=family,
        mape=mape,
        r2=0.5,
        spearman=0.5,
        trials=9,
        seconds=1.0,
        coverage=0.9,
        level=0.95,
        regret=3.5,
    )
    return replace(result, **changes)


def training(*errors: ModelError, **changes: Any) -> Training:
    """A training of nine trials."""
    result = Training(keys=(), fitted=(), errors=errors, trials=9, configurations=9)
    return replace(result, **changes)


def run(model: str = "RFR", *best_ms: float, **changes: Any) -> Convergence:
    """How the search of a model went that improved until its last generation."""
    result = Convergence(
        model=model,
        best_ms=best_ms,
        converged_at=max(0, len(best_ms) - 1),
        seconds=0.5,
        algorithm="genetic",
        predictions=200,
        restarts=0,
    )
    return replace(result, **changes)


def search(*convergences: Convergence, **changes: Any) -> Search:
    """A search without candidates."""
    return replace(Search(candidates=(), convergences=convergences, winners=()), **changes)


def table(values: Matrix, log_target: Matrix) -> Samples:
    """Rows of numbers from 0 to 1, each measured once."""
    return Samples(
        variables=tuple(Variable(name=f"x{n}", key=f"x{n}") for n in range(values.shape[1])),
        values=values,
        measured=tuple((value,) for value in np.exp(log_target).tolist()),
    )


def places(count: int, *, rounds: bool = False) -> list[PlannedTrial]:
    """Places of a plan with configurations of their own, two to a round where there are rounds."""
    return [
        PlannedTrial(
            index=n,
            role="design",
            configuration=Configuration({"net.core.somaxconn": str(n + 1)}),
            arm=f"arm {n % 2}" if rounds else "",
            round=n // 2 + 1 if rounds else None,
            series=2 if rounds else 1,
        )
        for n in range(count)
    ]


def judged_trials(
    configuration: Configuration,
    default_us: Sequence[int],
    tuned_us: Sequence[int],
    conditions: Conditions = CONDITIONS,
) -> list[Trial]:
    """The trials of a verdict: pairs of the default and the configuration, round by round."""
    made: list[Trial] = []
    for number, pair in enumerate(zip(default_us, tuned_us, strict=True), start=1):
        for arm, configured, p99_us in (
            ("default", DEFAULT, pair[0]),
            ("candidate 1", configuration, pair[1]),
        ):
            made.append(
                trial(
                    configured,
                    p99_us,
                    stage="judge",
                    index=len(made),
                    arm=arm,
                    number=number,
                    conditions=conditions,
                )
            )
    return made
