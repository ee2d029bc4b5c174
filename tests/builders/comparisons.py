"""Made-up comparisons of two architectures, for the tests of what is made of them."""

from dataclasses import replace
from typing import Any

from builders import results as findings
from builders import trials as samples
from builders.results import MEASURED, PROVENANCE
from builders.trials import CONDITIONS
from intop.domain.comparison import (
    Compared,
    ComparedParameter,
    ComparedValue,
    Comparison,
    Contrast,
    Converged,
    Latency,
    Side,
)
from intop.domain.configuration import Configuration
from intop.domain.ranking import Importance, RankAgreement, RankPair
from intop.domain.stats import Interval
from intop.domain.training import Training

LONGEST = "net.netfilter.nf_conntrack_tcp_timeout_unacknowledged"
VERDICT = replace(findings.VERDICT, configuration=Configuration({"net.core.somaxconn": "64"}))


def latency(value: float, low: float, high: float, trials: int = 8) -> Latency:
    return Latency(mean_ms=Interval(value, low, high), trials_ms=(value,) * trials)


def share(mean: float) -> Importance:
    return samples.importance("a", mean, sd=0.0625)


def training(**mape: float) -> Training:
    errors = (samples.model_error(f, m, spearman=0.75) for f, m in mape.items())
    return samples.training(*errors, keys=("a", "b"), trials=24)


X86 = Side(
    name="x86",
    arch="x86",
    conditions=CONDITIONS,
    trials=30,
    measured=MEASURED,
    default=latency(310, 250, 384.4),
    tuned=latency(99.96, 80, 124.9),
    verdict=VERDICT,
    ranking=samples.ranking(),
    training=training(RFR=40, DNN=80),
    convergences=(
        Converged(model="RFR", generations=29, seconds=0.5),
        Converged(model="XGBoost", generations=7, seconds=12.0),
    ),
)
ARM = replace(
    X86,
    name="arm",
    arch="arm",
    conditions=replace(CONDITIONS, arch="arm", machine="aarch64", cpu=""),
    default=latency(620, 500, 768.8),
    tuned=latency(5.5, 5, 6.05),
    training=training(RFR=50, SVR=70),
    convergences=(Converged(model="RFR", generations=31, seconds=0.25),),
)
BARE = replace(
    ARM,
    trials=5,
    default=latency(620, 500, 768.8, trials=4),
    tuned=None,
    verdict=None,
    ranking=None,
    training=None,
    convergences=(),
)
HIGHER = Contrast(difference_ms=Interval(310, 142.1, 470.5), ratio=Interval(2, 1.5, 2.667))
LOWER = Contrast(difference_ms=Interval(-94.5, -119, -74), ratio=Interval(0.055, 0.04, 0.075))


def comparison(**changes: Any) -> Comparison:
    values: dict[str, Any] = {
        "workload": "slt",
        "level": 0.95,
        "sides": (X86, ARM),
        "default": HIGHER,
        "tuned": LOWER,
        "rank_agreement": RankAgreement(
            first="x86",
            second="arm",
            spearman=0.456,
            kendall=0.3,
            common=("b",),
            ranks=(
                RankPair(
                    key="b", rank_first=2, rank_second=7, passes_first=True, passes_second=False
                ),
            ),
            chosen_first=("a", "b"),
            chosen_second=("a",),
        ),
        "parameters": (
            ComparedParameter(
                key="a",
                importances=(share(0.5), share(0.25)),
                chosen=(True, True),
                refused=("", ""),
            ),
            ComparedParameter(
                key="b",
                importances=(share(0.25), share(0.001)),
                chosen=(True, False),
                refused=("", ""),
            ),
            ComparedParameter(
                key="vm.c",
                importances=(None, share(0.5)),
                chosen=(False, True),
                refused=("this kernel doesn't have it", ""),
            ),
        ),
        "values": (
            ComparedValue(
                key=LONGEST,
                defaults=("4096 131072 6291456", None),
                tuned=("4677 29946 66011", None),
            ),
            ComparedValue(key="b", defaults=("1", "2"), tuned=(None, "3")),
        ),
        "differences": (),
        "warnings": (),
    }
    return Comparison(**(values | changes))


def compared(*comparisons: Comparison, missing: tuple[str, ...] = ()) -> Compared:
    return Compared(
        comparisons=comparisons or (comparison(),),
        missing=missing,
        provenance=(PROVENANCE, PROVENANCE),
    )
