"""Examples of what campaigns find: verdicts with their causes, sweeps, deployments, soaks."""

from dataclasses import replace
from typing import Any

from builders.trials import CONDITIONS
from intop.domain.across import Across, UnderWorkload
from intop.domain.artefact import Origin
from intop.domain.canary import DELIVERY, Canary, SideRatio
from intop.domain.causes import Cause, Causes, Moved
from intop.domain.comparison import Measured, Provenance
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.deployment import Change, Deployment
from intop.domain.encoding import Variable
from intop.domain.explanation import Contribution
from intop.domain.guardrails import Guardrail
from intop.domain.soak import Limits, Soak, SoakBlock, Trend
from intop.domain.speedups import ModelSpeedUp, SpeedUps
from intop.domain.stats import Interval
from intop.domain.sweep import Arm, ArmAt, Knee, Point, Sweep
from intop.domain.trimmed import MeasuredSet, SlowChange, Trimmed
from intop.domain.verdict import Pairwise, PairwiseLatency, SideBySide, Verdict

MODELS = SpeedUps(
    models=(
        ModelSpeedUp(
            model="RFR", arm="RFR", rounds=3, judged_ms=155.0, ratio=Interval(2.0, 1.4, 2.86)
        ),
        ModelSpeedUp(
            model="XGBoost",
            arm="candidate 1",
            rounds=3,
            judged_ms=70.0,
            ratio=Interval(4.5, 2.5, 8.1),
        ),
        ModelSpeedUp(model="LightGBM", arm="LightGBM", rounds=2, failures=1, judged_ms=90.0),
    ),
    level=0.95,
    rounds=3,
    mean=Interval(3.0, 1.8, 5.0),
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
        "P50": PairwiseLatency(default=2.0, tuned=2.0, ratio=Interval(1.0, 0.9, 1.1)),
        "P90": PairwiseLatency(default=40.0, tuned=20.0, ratio=Interval(2.0, 1.5, 2.5)),
        "P99": PairwiseLatency(default=310.0, tuned=100.0, ratio=Interval(3.1, 2.2, 4.4)),
        "P99.9": PairwiseLatency(default=400.0, tuned=300.0, ratio=Interval(1.2, 0.7, 2.0)),
        "max": PairwiseLatency(default=500.0, tuned=800.0),
    },
    requests=Pairwise(default=3000, tuned=2990),
    achieved_rps=Pairwise(default=150.0, tuned=149.6, ratio=Interval(1.0, 0.99, 1.01)),
    error_share=Pairwise(default=0.0, tuned=0.0123),
    balancer_cpu=Pairwise(default=0.25, tuned=0.2, ratio=Interval(1.25, 1.1, 1.4)),
)

VERDICT = Verdict(
    configuration=Configuration(
        {"net.core.somaxconn": "64", "net.ipv4.tcp_rmem": "4096 8192 65536"}
    ),
    origin="candidate 2",
    default_ms=310.0,
    tuned_ms=100.0,
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
TRIMMED = Trimmed(
    origin="candidate 1",
    candidate=Configuration(
        {
            **VERDICT.configuration.values,
            "net.ipv4.tcp_fin_timeout": "30",
            "net.ipv4.tcp_rto_min_us": "990000",
        }
    ),
    configuration=VERDICT.configuration,
    sets=(
        MeasuredSet(
            keys=("net.core.somaxconn",),
            ratio=Interval(1.6, 1.4, 1.9),
            tail=Interval(1.5, 1.4, 1.6),
        ),
    ),
    left_out=(
        MeasuredSet(
            keys=("net.core.somaxconn",),
            ratio=Interval(1.3, 1.1, 1.5),
            tail=Interval(1.3, 1.2, 1.4),
        ),
        MeasuredSet(
            keys=("net.ipv4.tcp_fin_timeout",),
            ratio=Interval(1.0, 0.9, 1.1),
            tail=Interval(1.01, 0.97, 1.05),
        ),
    ),
    trials=24,
    slow=(
        SlowChange(
            keys=("net.ipv4.tcp_rto_min_us",),
            limit_ms=620.0,
            slow=8,
            trials=33,
            slow_others=0,
            others=98,
        ),
    ),
    level=0.95,
)
CAUSES = Causes(
    pairs=8,
    counters=40,
    mechanisms=(
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
                    times=Interval(52.0, 48.0, 56.0),
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


def swept(arm: str, rate: float, judged_ms: float, **changes: Any) -> ArmAt:
    """An arm at a rate: five trials, all of them ok."""
    result = ArmAt(
        arm=arm,
        is_reference=arm == "default",
        trials=5,
        overloaded=0,
        failed=0,
        fails_more=False,
        judged_ms=Interval(judged_ms, 0.9 * judged_ms, 1.1 * judged_ms),
        mean_ms=judged_ms / 2,
        achieved_rps=rate,
        received_mb_s=rate / 50,
        cpu=0.25,
        memory_mib=512.0,
        ratio=None if arm == "default" else Interval(2.0, 1.5, 2.5),
        fewest_requests=2000,
    )
    return replace(result, **changes)


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
            ratio=Interval(0.05, 0.01, 0.2),
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
        Knee(arm="tuned", value=Interval(121.0, 118.0, 124.0)),
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
                left_out=Interval(3.0, 2.1, 4.3),
                alone=Interval(2.9, 2.0, 4.2),
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
            per_hour=Interval(0.1, -0.2, 0.4),
        ),
        Trend(
            quantity="nginx files",
            unit="files",
            floor=60.0,
            blocks=50,
            first=40.0,
            last=40.0,
            per_hour=Interval(0.0, 0.0, 0.0),
        ),
    ),
    broken="",
    pause_s=0.45,
    interruptions=0,
    restarts=0,
)
"""An hour without a leak."""

CANARY = Canary(
    hosts=("web1",),
    title="the winner",
    configuration=Configuration({"net.ipv4.tcp_congestion_control": "bbr"}),
    outcome="gain",
    stopped="",
    judged_by=DELIVERY,
    sides=(
        SideRatio(
            quantity=DELIVERY,
            unit="ms/MB",
            default=120.0,
            canary=80.0,
            ratio=2 / 3,
            low=None,
            high=0.8,
            fixed_low=0.6,
            fixed_high=0.75,
            limit=1.05,
        ),
    ),
    pairs=9,
    planned=60,
    left_out=(),
    block_s=60,
    washout_s=10,
    requests=90_000,
    canary_requests=80_000,
    blurred=("net.ipv4.tcp_congestion_control",),
    only_new=True,
    slow_ms=240.0,
    margin=1.05,
    level=0.95,
)
"""A canary that delivery time judged."""
