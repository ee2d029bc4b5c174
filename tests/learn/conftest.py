"""A space with every kind of parameter and constraint, and a P99 whose causes are known."""

from collections.abc import Callable

import numpy as np
import pytest

from intop.domain.configuration import Configuration
from intop.domain.constraints import Order, Requirement
from intop.domain.encoding import Matrix
from intop.domain.parameter import Component, Kind, Parameter, Scale
from intop.domain.space import Space

PORTS = "net.ipv4.ip_local_port_range"
RMEM = "net.ipv4.tcp_rmem"
WMEM = "net.ipv4.tcp_wmem"
CONGESTION = "net.ipv4.tcp_congestion_control"
QDISC = "net.core.default_qdisc"
OUTPUT = "net.ipv4.tcp_limit_output_bytes"
TIMESTAMPS = "net.ipv4.tcp_timestamps"
REUSE = "net.ipv4.tcp_tw_reuse"
BACKLOG = "net.core.netdev_max_backlog"
BUDGET = "net.core.netdev_budget"

DEFAULTS = {
    RMEM: "4096 131072 6291456",
    WMEM: "4096 16384 4194304",
    PORTS: "32768 60999",
    CONGESTION: "bbr",
    QDISC: "fq",
    OUTPUT: "1048576",
    TIMESTAMPS: "1",
    REUSE: "1",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_fin_timeout": "60",
    BACKLOG: "1000",
    BUDGET: "300",
}


def parameter(
    key: str,
    kind: Kind,
    *ranges: tuple[str, int, int],
    choices: tuple[str, ...] = (),
    scale: Scale = "linear",
) -> Parameter:
    return Parameter(
        key=key,
        kind=kind,
        unit="",
        scope="namespace",
        risk="low",
        mechanism="test",
        document="test",
        components=tuple(Component(name=n, low=low, high=high) for n, low, high in ranges),
        choices=choices,
        scale=scale,
    )


def sizes(*names: str) -> tuple[tuple[str, int, int], ...]:
    return tuple((name, 4096, 1 << 24) for name in names)


@pytest.fixture
def space() -> Space:
    three = sizes("min", "default", "max")
    switch = ("0", "1")
    return Space(
        (
            parameter(RMEM, "vector", *three, scale="log"),
            parameter(WMEM, "vector", *three, scale="log"),
            parameter(PORTS, "vector", ("low", 1024, 60000), ("high", 2000, 65535)),
            parameter(CONGESTION, "choice", choices=("cubic", "reno", "bbr")),
            parameter(QDISC, "choice", choices=("pfifo_fast", "fq", "fq_codel")),
            parameter(OUTPUT, "integer", ("", 4096, 1 << 22), scale="log"),
            parameter(TIMESTAMPS, "boolean", choices=switch),
            parameter(REUSE, "boolean", choices=switch),
            parameter("net.ipv4.tcp_sack", "boolean", choices=switch),
            parameter("net.ipv4.tcp_fin_timeout", "integer", ("", 5, 120)),
            parameter(BACKLOG, "integer", ("", 100, 20000), scale="log"),
            parameter(BUDGET, "integer", ("", 50, 2000)),
        ),
        (
            *(Order(columns=tuple(f"{k}[{n}]" for n, *_ in three)) for k in (RMEM, WMEM)),
            Order(columns=(f"{PORTS}[low]", f"{PORTS}[high]"), gap=1000),
            Requirement(key=REUSE, values=("1",), needs=TIMESTAMPS, to_be=("1",)),
            Requirement(key=CONGESTION, values=("bbr",), needs=QDISC, to_be=("fq",)),
        ),
        DEFAULTS,
    )


@pytest.fixture
def is_feasible() -> Callable[[Configuration], bool]:
    """The space's constraints, said a second time and on what would be written to a kernel."""

    def check(configuration: Configuration) -> bool:
        values = configuration.values
        low, high = (int(part) for part in values[PORTS].split())
        return (
            all(
                [int(p) for p in values[k].split()] == sorted(int(p) for p in values[k].split())
                for k in (RMEM, WMEM)
            )
            and low + 1000 <= high
            and (values[REUSE] == "0" or values[TIMESTAMPS] == "1")
            and (values[CONGESTION] != "bbr" or values[QDISC] == "fq")
        )

    return check


@pytest.fixture
def planted() -> tuple[str, ...]:
    """The parameters that act on `log_latency`."""
    return (RMEM, CONGESTION, OUTPUT)


@pytest.fixture
def log_latency(space: Space) -> Callable[[Matrix], Matrix]:
    """Features (n, f) to log P99 (n,): a step, a choice, and a bow that only some choices feel."""
    names = space.feature_names
    receive = names.index(f"{RMEM}[default]")
    bbr = names.index(f"{CONGESTION}=bbr")
    output = names.index(OUTPUT)

    def truth(features: Matrix) -> Matrix:
        window = np.where(features[:, receive] > 0.5, 1.5, 0.0)
        bow = 4 * (features[:, output] - 0.3) ** 2
        return 3 + window + 1.0 * features[:, bbr] + bow * (1 - 0.5 * features[:, bbr])

    return truth
