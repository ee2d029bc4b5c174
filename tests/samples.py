"""What several tests need an example of."""

import select
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from intop.domain.across import Across, UnderWorkload
from intop.domain.artefact import Origin
from intop.domain.causes import Cause, Causes, Moved
from intop.domain.cluster import Cluster, HostAddress
from intop.domain.comparison import Measured, Provenance
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.deployment import Change, Deployment
from intop.domain.encoding import Matrix, Variable
from intop.domain.explanation import Contribution
from intop.domain.guardrails import Guardrail
from intop.domain.histogram import Histogram
from intop.domain.probing import HostFacts
from intop.domain.ranking import Effect, Importance, Ranking, Screening, State
from intop.domain.search import Convergence, Search
from intop.domain.soak import Limits, Soak, SoakBlock, Trend
from intop.domain.speedups import ModelSpeedUp, SpeedUps
from intop.domain.stats import DifferenceInterval, MeanInterval, RatioInterval
from intop.domain.sweep import Arm, ArmAt, Knee, Point, Sweep
from intop.domain.training import ModelError, Training
from intop.domain.trial import USABLE, Conditions, HostMetrics, PlannedTrial, Status, Trial
from intop.domain.verdict import Pairwise, PairwiseLatency, SideBySide, Verdict
from intop.errors import UnreachableError
from intop.hosts.host import Completed, Conversation, Host
from intop.hosts.metrics import Counters
from intop.hosts.reader import Reader, Wanted
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


class LocalConversation:
    """A conversation with a command that runs here."""

    def __init__(self, name: str, words: Sequence[str]) -> None:
        self._name = name
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request: str, end: str, timeout_s: float) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        said: list[str] = []
        with suppress(BrokenPipeError):
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
        for line in self.process.stdout:
            said.append(line.decode(errors="replace"))
            if said[-1] == f"{end}\n":
                return "".join(said)
        raise UnreachableError(self._name, "exec ended: it says nothing")

    def heard(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 0)
        return self.process.stdout.read1().decode(errors="replace") if ready else ""

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait(timeout=10)


@dataclass
class Told:
    """A conversation in which a reader's answers are these texts, each its only section."""

    name: str
    answer: Callable[[], str]
    asked: list[str] = field(default_factory=list)

    def ask(self, request: str, end: str, timeout_s: float) -> str:
        self.asked.append(request.splitlines()[-1].removesuffix(";"))
        return f"{end} host\n{self.answer()}{end}\n"

    def heard(self) -> str:
        return ""

    def close(self) -> None:
        pass


def read_counters(host: Host, *, processes: bool = False) -> Counters:
    """One reading of a host's counters."""
    reader = Reader(host)
    try:
        return reader.read(Wanted(processes=processes)).counters
    finally:
        reader.close()


class LocalHost:
    """A host that runs commands here, or gives a text for an answer.

    With a `setup` they run in network and mount namespaces of their own, after it.
    """

    def __init__(self, answer: str | None = None, setup: str | None = None) -> None:
        self.address = HostAddress(name="lb", role="load-balancer", hostname="192.0.2.1")
        self._answer = answer
        self._inside = [] if setup is None else ["unshare", "--mount", "--net", "sh", "-c"]
        self._inside += [] if setup is None else [f'{setup}\nexec sh -c "$0"']

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        if self._answer is not None:
            return Completed(0, self._answer, "")
        done = subprocess.run(
            [*(self._inside or ["sh", "-c"]), command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        return Completed(done.returncode, done.stdout, done.stderr)

    def converse(self, command: str) -> Conversation:
        if (answer := self._answer) is not None:
            return Told(self.address.name, lambda: answer)
        return LocalConversation(self.address.name, [*(self._inside or ["sh", "-c"]), command])

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


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
    found = Importance(
        key=key,
        mean=weight,
        sd=0.0,
        permutation=weight,
        permutation_sd=0.0,
        above=0.5,
        passes=False,
    )
    return replace(found, **changes)


def ranking(*importances: Importance, chosen: Sequence[str] = (), **changes: Any) -> Ranking:
    """A ranking of nine trials."""
    found = Ranking(
        importances=importances,
        chosen=tuple(chosen),
        trials=9,
        probe_level=0.0,
        error_rate=0.05,
        keep=9,
    )
    return replace(found, **changes)


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
    found = Screening(
        effects=effects,
        configurations=9,
        responses=("P99", "tail"),
        discovery_rate=0.05,
        matters=1.2,
        level=0.95,
        power=0.9,
        detectable=1.25,
    )
    return replace(found, **changes)


def model_error(family: str, mape: float = 20.0, **changes: Any) -> ModelError:
    """What a family errs by, without the rows that were held out."""
    found = ModelError(
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
    return replace(found, **changes)


def training(*errors: ModelError, **changes: Any) -> Training:
    """A training of nine trials."""
    found = Training(keys=(), fitted=(), errors=errors, trials=9, configurations=9)
    return replace(found, **changes)


def run(model: str = "RFR", *best_ms: float, **changes: Any) -> Convergence:
    """How the search of a model went that improved until its last generation."""
    found = Convergence(
        model=model,
        best_ms=best_ms,
        converged_at=max(0, len(best_ms) - 1),
        seconds=0.5,
        algorithm="genetic",
        predictions=200,
        restarts=0,
    )
    return replace(found, **changes)


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


MODELS = SpeedUps(
    models=(
        ModelSpeedUp(
            model="RFR", arm="RFR", rounds=3, p99_ms=155.0, ratio=RatioInterval(2.0, 1.4, 2.86)
        ),
        ModelSpeedUp(
            model="XGBoost",
            arm="candidate 1",
            rounds=3,
            p99_ms=70.0,
            ratio=RatioInterval(4.5, 2.5, 8.1),
        ),
        ModelSpeedUp(model="LightGBM", arm="LightGBM", rounds=2, failures=1, p99_ms=90.0),
    ),
    level=0.95,
    rounds=3,
    mean=RatioInterval(3.0, 1.8, 5.0),
)
"""What three models' own winners were worth: XGBoost's is the first candidate, one failed."""

MEASURED = Measured(
    attempts=34,
    first_at="2026-11-22T08:00:00+00:00",
    last_at="2026-11-22T08:13:00+00:00",
    tool_versions=("0.1.0",),
)
PROVENANCE = Provenance(
    study="lab",
    campaign=3,
    seed=7,
    started_at="2026-11-22T07:59:00+00:00",
    finished_at="2026-11-22T09:01:00+00:00",
    tool_version="0.1.0",
)

SIDES = SideBySide(
    latencies_ms={
        "P50": PairwiseLatency(default=2.0, tuned=2.0, ratio=RatioInterval(1.0, 0.9, 1.1)),
        "P90": PairwiseLatency(default=40.0, tuned=20.0, ratio=RatioInterval(2.0, 1.5, 2.5)),
        "P99": PairwiseLatency(default=310.0, tuned=100.0, ratio=RatioInterval(3.1, 2.2, 4.4)),
        "P99.9": PairwiseLatency(default=400.0, tuned=300.0, ratio=RatioInterval(1.2, 0.7, 2.0)),
        "max": PairwiseLatency(default=500.0, tuned=800.0),
    },
    requests=Pairwise(default=3000, tuned=2990),
    achieved_rps=Pairwise(default=150.0, tuned=149.6, ratio=RatioInterval(1.0, 0.99, 1.01)),
    error_share=Pairwise(default=0.0, tuned=0.0123),
    balancer_cpu=Pairwise(default=0.25, tuned=0.2, ratio=RatioInterval(1.25, 1.1, 1.4)),
)

VERDICT = Verdict(
    configuration=Configuration(
        {"net.core.somaxconn": "64", "net.ipv4.tcp_rmem": "4096 8192 65536"}
    ),
    origin="candidate 2",
    default_p99_ms=310.0,
    tuned_p99_ms=100.0,
    ratio=3.1,
    ratio_low=2.2,
    ratio_high=4.4,
    level=0.95,
    pairs=8,
    rounds=8,
    planned_rounds=8,
    looks=1,
    sides=SIDES,
)

CPU = Guardrail(
    quantity="CPU",
    unit="points",
    worse="higher",
    default=20.0,
    tuned=22.0,
    effect=2.0,
    low=1.0,
    high=3.0,
    margin=5.0,
)
UNCLEAR_CPU = replace(CPU, tuned=24.0, effect=4.0, low=0.5, high=8.0)
BROKEN_CPU = replace(CPU, tuned=32.0, effect=12.0, low=9.0, high=15.0)
P50 = Guardrail(
    quantity="P50",
    unit="times",
    worse="higher",
    default=2.0,
    tuned=2.1,
    effect=1.05,
    low=1.0,
    high=1.1,
    margin=1.1,
)
CAUSES = Causes(
    pairs=8,
    counters=40,
    found=(
        Cause(
            mechanism="syn-backlog",
            about="More handshakes are under way than the listening socket may remember.",
            eased=True,
            counters=(
                Moved(
                    name="TcpExt.ListenDrops",
                    meaning="A connection request was dropped.",
                    mechanism="syn-backlog",
                    default=51.25,
                    tuned=0.0,
                    times=RatioInterval(52.0, 48.0, 56.0),
                    p_value=1e-9,
                ),
            ),
        ),
    ),
)
"""A full queue of handshakes, which the tuned side has not."""

DOUBTED = replace(VERDICT, guardrails=(P50, UNCLEAR_CPU))
COSTLY = replace(VERDICT, guardrails=(P50, BROKEN_CPU))
"""The verdict that a guardrail puts in doubt, and the one that it makes no gain."""


def swept(arm: str, rate: float, p99_ms: float, **changes: Any) -> ArmAt:
    """An arm at a rate: five trials, all of them ok."""
    found = ArmAt(
        arm=arm,
        is_reference=arm == "default",
        trials=5,
        overloaded=0,
        failed=0,
        fails_more=False,
        p99_ms=MeanInterval(p99_ms, 0.9 * p99_ms, 1.1 * p99_ms),
        mean_ms=p99_ms / 2,
        achieved_rps=rate,
        received_mb_s=rate / 50,
        cpu=0.25,
        memory_mib=512.0,
        ratio=None if arm == "default" else RatioInterval(2.0, 1.5, 2.5),
        fewest_requests=2000,
    )
    return replace(found, **changes)


AT_HALF, AT_ONCE = (
    Point(
        value=rate,
        label=f"{rate:g}",
        times=rate / 100,
        arms=(swept("default", rate, 40.0), swept("tuned", rate, 20.0)),
    )
    for rate in (50.0, 100.0)
)
TOO_MUCH = Point(
    value=150.0,
    label="150",
    times=1.5,
    arms=(
        swept("default", 150.0, 40.0),
        swept(
            "tuned",
            120.0,
            900.0,
            overloaded=2,
            failed=1,
            fails_more=True,
            ratio=RatioInterval(0.05, 0.01, 0.2),
            fewest_requests=600,
        ),
    ),
)
SWEEP = Sweep(
    axis="rate",
    loop="open",
    arms=(
        Arm(name="default", configuration=DEFAULT),
        Arm(name="tuned", configuration=VERDICT.configuration),
    ),
    points=(AT_HALF, AT_ONCE, TOO_MUCH),
    rounds=5,
    level=0.95,
    limit_ms=None,
    capacities=(),
    knees=(
        Knee(arm="default", value=None),
        Knee(arm="tuned", value=MeanInterval(121.0, 118.0, 124.0)),
    ),
)
"""The winner is better up to the workload's rate, and worse beyond it."""

BETTER = UnderWorkload(
    workload="small",
    load="150 requests/s on 64 connections",
    verdict=replace(VERDICT, origin="winner"),
    timeouts=Pairwise(default=3, tuned=0),
    trials=8,
    default_failed=0,
    tuned_failed=0,
)
COSTLIER = replace(BETTER, workload="api", verdict=replace(COSTLY, origin="winner"))
SLOWER = replace(
    BETTER,
    workload="large",
    verdict=replace(VERDICT, origin="winner", ratio=0.5, ratio_low=0.4, ratio_high=0.8),
)
UNMEASURED = replace(
    BETTER, workload="tls", verdict=None, trials=2, tuned_failed=2, problem="0 pairs: refused"
)
ACROSS = Across(
    name="winner",
    configuration=VERDICT.configuration,
    against="",
    rounds=8,
    level=0.95,
    each_level=0.9875,
    workloads=(BETTER, COSTLIER, SLOWER, UNMEASURED),
)
"""The winner gains in one workload, costs too much in the next, and is worse in two."""

ORIGIN = Origin(
    study="lab",
    campaign="2026-01-01T00:00:00+00:00",
    arch="x86",
    workload="slt",
    target="P99",
    unit="ms",
    variables=(Variable(name="size", key="size", low=16, high=65536, scale="log"),),
    defaults={"size": "64"},
    conditions=CONDITIONS,
    replicas=("lb",),
    configurations=24,
    trials=24,
    samples="0123",
)

DEPLOYMENT = Deployment(
    study="lab",
    campaign=1,
    started_at="2026-11-21T20:00:00+00:00",
    arch="x86",
    workload="slt",
    origin="winner",
    verdict=VERDICT,
    kept=None,
    changes=(
        Change(
            key="net.ipv4.tcp_rmem",
            value="4096 8192 65536",
            default="4096 131072 6291456",
            contribution=Contribution(
                keys=("net.ipv4.tcp_rmem",),
                before=("4096 131072 6291456",),
                after=("4096 8192 65536",),
                left_out=RatioInterval(3.0, 2.1, 4.3),
                alone=RatioInterval(2.9, 2.0, 4.2),
            ),
            mechanism="size of receive buffers",
            risk="medium",
            document="Documentation/networking/ip-sysctl.rst",
        ),
        Change(
            key="net.core.somaxconn",
            value="64",
            default="4096",
            contribution=None,
            mechanism="ceiling of the accept queue",
            risk="low",
            document="Documentation/admin-guide/sysctl/net.rst",
        ),
    ),
)


SOAK_BLOCK = SoakBlock(
    hours=0.0,
    seconds=61.5,
    status="ok",
    detail="",
    achieved_rps=50.0,
    p50_ms=10.0,
    p99_ms=20.0,
    requests=3000,
    errors=0,
    nginx_memory_mib=30.0,
    nginx_files=40,
    nginx_started_s=100.0,
    host_memory_mib=900.0,
    host_files=1200,
    time_wait=4,
    connections=60,
)
SOAK = Soak(
    applied="",
    host="lb",
    rate_rps=50.0,
    block_s=60.0,
    warmup_s=1.0,
    planned=60,
    limits=Limits(p99_ms=80.0),
    level=0.95,
    blocks=tuple(replace(SOAK_BLOCK, hours=n / 58) for n in range(60)),
    trends=(
        Trend(
            quantity="nginx memory",
            unit="MiB",
            floor=5.0,
            blocks=50,
            first=30.0,
            last=30.1,
            per_hour=DifferenceInterval(0.1, -0.2, 0.4),
        ),
        Trend(
            quantity="nginx files",
            unit="files",
            floor=60.0,
            blocks=50,
            first=40.0,
            last=40.0,
            per_hour=DifferenceInterval(0.0, 0.0, 0.0),
        ),
    ),
    broken="",
    pause_s=0.45,
    interruptions=0,
    restarts=0,
)
"""An hour without a leak."""
